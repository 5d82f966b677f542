//===- Transpose.td - dimensions in another order -------------------------===//

def Net_TransposeOp : Net_Operator<"Transpose", ["x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "dimensions in another order";
  let description = [{
    Dimension i of the output is dimension `perm[i]` of `x`.

    Constraints: (C1) `perm` names every dimension of `x` exactly once; negative entries count from the end.
  }];
  let arguments = (ins Net_Tensor:$x, DenseI64ArrayAttr:$perm);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "perm: (1, 0)";
  let specs = [{
    {.name = "perm", .kind = IntTuple, .required = true, .positional = true, .summary = "which dimension comes where"}
  }];
}
