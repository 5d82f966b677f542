//===- MSELoss.td - mean squared error ------------------------------------===//

def Net_MSELossOp : Net_Operator<"MSELoss", ["logits", "labels"], ["output"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Generic, Net_IsLoss]> {
  let summary = "squared error of two tensors";
  let description = [{
    `reduction: mean`: `output = sum (logits - labels)^2 * (1 / n)`, n the global number of elements; `sum`: without the
    factor; `none`: `output = (logits - labels)^2`, element by element.

    Constraints:
    - (C1) both operands have the same float element type.
    - (C2) both operands have the same shape.
    - (C3) `reduction` is mean, sum or none; a mean needs at least one element.
  }];
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs Net_Tensor:$output);
  let specs = [{
    {.name = "reduction", .kind = String, .words = kLossReductions, .summary = "what becomes of the elements"}
  }];
}

def Net_MSELossGradOp : Net_Operator<"MSELossGrad", ["logits", "labels", "dloss"], ["output"],
    [Net_Rule, Net_DefaultCost, Net_Generic]> {
  let summary = "gradient of MSELoss with respect to its logits";
  let description = [{
    `output = dloss * c * (logits - labels)`, c = 2 / n for `reduction: mean` (n the global number of elements), else 2.
    A backward helper without a gradient of its own.

    Constraints: C1, C2 and C3 of MSELoss; (C4) `dloss` is a scalar, for `none` a tensor like `logits`.
  }];
  let arguments = (ins Net_Tensor:$logits, Net_Tensor:$labels, Net_Tensor:$dloss,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%logits: f32[16, 32], %labels: f32[16, 32], %dloss: f32[]";
  let specs = [{
    {.name = "reduction", .kind = String, .words = kLossReductions, .summary = "as in MSELoss"}
  }];
}
