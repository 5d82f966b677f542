//===- Norm.td - normalisation over the last dimensions -------------------===//
//
// Expanded: cut normalised dimensions cost a sum of one number per row and statistic.

def Net_LayerNormOp : Net_Operator<"LayerNorm", ["input_x", "gamma", "beta"], ["output_x", "mean", "variance"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_IsNorm]> {
  let summary = "normalises to mean 0 and variance 1, then scales and shifts";
  let description = [{
    `output_x = (input_x - mean) / sqrt(variance + epsilon) * gamma + beta`. Mean and variance (of the population) run
    over the dimensions from `begin_norm_axis` on and keep them with size 1; `gamma` and `beta` have the dimensions from
    `begin_params_axis` on.

    Constraints:
    - (C1) all operands have the same float element type.
    - (C2) both axes lie in [-rank, rank), and the normalised dimensions have elements.
    - (C3) `gamma` and `beta` have the shape of `input_x` from `begin_params_axis` on.
    - (C4) `epsilon` is from 0 to 1.
  }];
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$gamma, Net_Tensor:$beta,
                       DefaultValuedAttr<I64Attr, "1">:$begin_norm_axis,
                       DefaultValuedAttr<I64Attr, "1">:$begin_params_axis, DefaultValuedAttr<F64Attr, "1e-7">:$epsilon);
  let results = (outs Net_Tensor:$output_x, Net_Tensor:$mean, Net_Tensor:$variance);
  let exampleInputs = "%input_x: f32[16, 32], %gamma: f32[32], %beta: f32[32]";
  let exampleAttributes = "begin_norm_axis: -1, begin_params_axis: -1, epsilon: 1e-5";
  let specs = [{
    {.name = "begin_norm_axis", .kind = Int, .summary = "the first dimension that is normalised"},
    {.name = "begin_params_axis", .kind = Int, .summary = "the first dimension that gamma and beta have"},
    {.name = "epsilon", .kind = Float, .summary = "added to the variance"}
  }];
}

def Net_RmsNormOp : Net_Operator<"RmsNorm", ["x", "gamma"], ["y", "rstd"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_IsNorm]> {
  let summary = "divides by the root mean square over the last dimensions, then scales";
  let description = [{
    `rstd = 1 / sqrt(mean x^2 + epsilon)`, the mean over the dimensions of `gamma`, which are kept with size 1;
    `y = x * rstd * gamma`.

    Constraints:
    - (C1) both operands have the same float element type.
    - (C2) `gamma` has the shape of the last dimensions of `x`, at least one, with elements.
    - (C3) `epsilon` is from 0 to 1.
  }];
  let arguments = (ins Net_Tensor:$x, Net_Tensor:$gamma, DefaultValuedAttr<F64Attr, "1e-6">:$epsilon);
  let results = (outs Net_Tensor:$y, Net_Tensor:$rstd);
  let exampleInputs = "%x: f32[16, 32], %gamma: f32[32]";
  let specs = [{
    {.name = "epsilon", .kind = Float, .summary = "added to the mean square"}
  }];
}

def Net_GroupNormOp : Net_Operator<"GroupNorm", ["input", "weight", "bias"], ["output", "mean", "rstd"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_IsNorm]> {
  let summary = "normalises groups of channels to mean 0 and variance 1, then scales and shifts";
  let description = [{
    The channels (dimension 1) are `num_groups` groups of neighbours. `output = (input - mean) * rstd * weight + bias` with
    `rstd = 1 / sqrt(variance + eps)`; mean and variance (of the population) of every sample and group, over its channels
    and all dimensions behind them, `weight` and `bias` of every channel. `mean` and `rstd` are (N, `num_groups`).

    Constraints:
    - (C1) all operands have the same float element type.
    - (C2) `input` has at least 2 dimensions, a group has elements, `weight` and `bias` have its number of channels.
    - (C3) `num_groups` divides the number of channels.
    - (C4) `eps` is not negative.

    Rule: all dimensions of `input` pass through. A cut within a group, or of the dimensions behind, costs sums of one
    number per channel and statistic.
  }];
  let arguments = (ins Net_Tensor:$input, Net_Tensor:$weight, Net_Tensor:$bias, I64Attr:$num_groups,
                       DefaultValuedAttr<F64Attr, "1e-5">:$eps);
  let results = (outs Net_Tensor:$output, Net_Tensor:$mean, Net_Tensor:$rstd);
  let exampleInputs = "%input: f32[8, 16, 4, 4], %weight: f32[16], %bias: f32[16]";
  let exampleAttributes = "num_groups: 4";
  let specs = [{
    {.name = "num_groups", .kind = Int, .required = true, .positional = true, .summary = "groups that the channels are parted into"},
    {.name = "eps", .kind = Float, .summary = "added to the variance"}
  }];
}
