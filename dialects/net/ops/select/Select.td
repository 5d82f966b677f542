//===- Select.td - one of two values by a condition -----------------------===//

def Net_SelectOp : Net_Pointwise<"Select", ["condition", "x", "y"], [Net_Differentiable]> {
  let summary = "x where the condition holds, else y";
  let description = [{
    `output = condition ? x : y`, element by element with NumPy broadcasting of all three.

    Constraints:
    - (C1) `condition` is bool.
    - (C2) `x` and `y` have the same element type.
    - (C3) dimensions, aligned at the right, are equal or 1.
  }];
  let arguments = (ins Net_Tensor:$condition, Net_Tensor:$x, Net_Tensor:$y);
  let exampleInputs = "%condition: bool[16, 32], %x: f32[16, 32], %y: f32[16, 32]";
  let inference = "";
}
