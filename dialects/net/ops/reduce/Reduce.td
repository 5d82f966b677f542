//===- Reduce.td - sums, means and maxima over dimensions -----------------===//
//
// Every member:
//   (C1) `x` holds numbers (ReduceMean: floats).
//   (C2) every entry of `axis` lies in [-rank, rank) and none occurs twice.
//   (C3) ReduceMean and ReduceMax do not reduce over zero elements.
// An empty `axis` means all dimensions; negative entries count from the end. `keep_dims` keeps reduced dimensions with
// size 1. Reduced dimensions that are cut leave a partial result.

class Net_Reduce<string mnemonic, string formula> : Net_Operator<mnemonic, ["x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Generic]> {
  let summary = formula;
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$axis,
                       DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs Net_Tensor:$output);
  let specs = [{
    {.name = "axis", .kind = IntTuple, .positional = true, .summary = "dimensions to reduce; empty: all"},
    {.name = "keep_dims", .kind = Bool, .summary = "keep reduced dimensions with size 1"}
  }];
}

def Net_ReduceSumOp : Net_Reduce<"ReduceSum", "sum over dimensions"> {
  let description = [{ `output[i] = sum_j x[i, j]`, j over the reduced dimensions. Constraints: C1, C2 of the family. }];
}
def Net_ReduceMeanOp : Net_Reduce<"ReduceMean", "mean over dimensions"> {
  let description = [{
    `output[i] = sum_j x[i, j] * (1 / n)`, n the global number of reduced elements: a rank multiplies its own sum by
    1 / n, so that uneven pieces weigh right. Constraints: C1 to C3 of the family.
  }];
}
def Net_ReduceMaxOp : Net_Reduce<"ReduceMax", "maximum over dimensions"> {
  let description = [{
    `output[i] = max_j x[i, j]`; NaN if one is NaN. Elements that share the maximum share its gradient equally.
    Constraints: C1 to C3 of the family.
  }];
}
