//===- Softmax.td - probabilities and their logarithms --------------------===//
//
// Expanded: a cut of the normalised dimension costs a maximum and a sum of one number per row.

class Net_SoftmaxFamily<string mnemonic, string formula>
    : Net_Operator<mnemonic, ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded]> {
  let description = formula # "\n\nConstraints: (C1) `x` holds floats; (C2) `axis` lies in [-rank, rank) and has elements.";
  let arguments = (ins Net_Tensor:$x, DefaultValuedAttr<I64Attr, "-1">:$axis);
  let results = (outs Net_Tensor:$output);
  let exampleAttributes = "axis: -1";
  let specs = [{
    {.name = "axis", .kind = Int, .positional = true, .summary = "the dimension that sums to 1"}
  }];
  let declarations = [{
    /// `axis` as a dimension of `x`.
    int64_t dimension();
  }];
}

def Net_SoftmaxOp : Net_SoftmaxFamily<"Softmax",
    "`output[i, j] = exp(x[i, j] - m[i]) / sum_k exp(x[i, k] - m[i])`, m the maximum over j, which runs along `axis`."> {
  let summary = "exponentials that sum to 1 along a dimension";
}

def Net_LogSoftmaxOp : Net_SoftmaxFamily<"LogSoftmax",
    "`output[i, j] = x[i, j] - m[i] - log(sum_k exp(x[i, k] - m[i]))`, m the maximum over j, which runs along `axis`."> {
  let summary = "logarithm of Softmax";
}
