//===- Cast.td - another element type -------------------------------------===//

def Net_CastOp : Net_Pointwise<"Cast", ["x"], [Net_Differentiable]> {
  let summary = "the same values in another element type";
  let description = [{
    Numbers are rounded to nearest even (to f16, bf16, f32) or cut towards zero (float to integer); bool is 0 or 1;
    a number becomes true where it is not 0. The gradient of a cast from or to an integer or bool is zero.

    Constraints: (C1) `dst_type` is one of f16, bf16, f32, f64, i32, i64, bool.
  }];
  let arguments = (ins Net_Tensor:$x, TypeAttr:$dst_type);
  let exampleAttributes = "dst_type: f64";
  let specs = [{
    {.name = "dst_type", .kind = Type, .required = true, .positional = true, .summary = "element type of the result"}
  }];
  let inference = "";
}
