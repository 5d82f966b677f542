//===- BroadcastTo.td - repeats dimensions of size 1 ----------------------===//

def Net_BroadcastToOp : Net_Operator<"BroadcastTo", ["x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "repeats dimensions of size 1 up to a shape";
  let description = [{
    The dimensions of `x` are aligned with `shape` at the right; missing ones and those of size 1 are repeated. An entry
    -1 of `shape` keeps the size of `x`.

    Constraints:
    - (C1) `shape` has at least as many entries as `x` has dimensions; leading new ones are not -1.
    - (C2) a dimension of `x` is 1 or equal to its entry.
  }];
  let arguments = (ins Net_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[32]";
  let exampleAttributes = "shape: (16, 32)";
  let specs = [{
    {.name = "shape", .kind = IntTuple, .required = true, .positional = true, .summary = "shape of the result"}
  }];
}
