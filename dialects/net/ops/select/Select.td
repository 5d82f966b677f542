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

def Net_MaskedFillOp : Net_Pointwise<"MaskedFill", ["input_x", "mask", "value"], [Net_Differentiable]> {
  let summary = "value where the mask holds, else the input";
  let description = [{
    `output = mask ? value : input_x`, element by element with NumPy broadcasting of all three.

    Constraints:
    - (C1) `mask` is bool.
    - (C2) `input_x` and `value` have the same element type.
    - (C3) dimensions, aligned at the right, are equal or 1.
  }];
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$mask, Net_Tensor:$value);
  let exampleInputs = "%input_x: f32[16, 32], %mask: bool[16, 32], %value: f32[]";
  let inference = "";
}

def Net_SelectEqualOp : Net_Pointwise<"SelectEqual", ["a", "b", "x", "y"], [Net_Differentiable]> {
  let summary = "x where a equals b, else y";
  let description = [{
    `output = a == b ? x : y`, element by element with NumPy broadcasting of all four. It is `Select(Equal(a, b), x, y)` in one
    operator: the bools, as large as what is chosen, are in no tensor. Where `a` or `b` is NaN, `y` is taken.

    Constraints:
    - (C1) `a` and `b` have the same element type.
    - (C2) `x` and `y` have the same element type.
    - (C3) dimensions, aligned at the right, are equal or 1.
  }];
  let arguments = (ins Net_Tensor:$a, Net_Tensor:$b, Net_Tensor:$x, Net_Tensor:$y);
  let exampleInputs = "%a: i32[16, 1], %b: i32[32], %x: f32[16, 32], %y: f32[]";
  let inference = "";
}
