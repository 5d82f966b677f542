//===- CrossEntropy.td - softmax and cross entropy in one -----------------===//
//
// Expanded: cut classes (a vocabulary over several ranks) cost a maximum and two sums of one number per row.

def Net_SoftmaxCrossEntropyWithLogitsOp : Net_Operator<"SoftmaxCrossEntropyWithLogits", ["logits", "labels"],
    ["output"], [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_IsLoss]> {
  let summary = "cross entropy between labels and the softmax of logits";
  let description = [{
    With `p = Softmax(logits)` over the last dimension, the classes: `e[i] = -sum_c labels[i, c] * log p[i, c]`, or
    `e[i] = -log p[i, labels[i]]` if `sparse`. `reduction: mean`: `output = sum_i e[i] * (1 / n)`, n the global number of
    rows; `sum`: without the factor; `none`: `output = e`. A row whose sparse label is no class (-100, say)
    has `e[i] = 0`, and counts in n; one of a data set that lies behind the classes ends the run with an error.

    Constraints:
    - (C1) `logits` holds floats and has at least 1 dimension; there are classes.
    - (C2) sparse: `labels` holds i32 or i64 and has the shape of `logits` without the last dimension; else it has the type
      of `logits`.
    - (C3) `reduction` is mean, sum or none; a mean needs at least one row.
  }];
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, DefaultValuedAttr<BoolAttr, "false">:$sparse,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%logits: f32[16, 32], %labels: i32[16]";
  let exampleAttributes = "sparse: true";
  let specs = [{
    {.name = "sparse", .kind = Bool, .summary = "labels are the numbers of classes"},
    {.name = "reduction", .kind = String, .words = kLossReductions, .summary = "what becomes of the rows"}
  }];
}
