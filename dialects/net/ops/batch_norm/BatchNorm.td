//===- BatchNorm.td - normalisation of channels over the batch ------------===//
//
// Expanded: every cut of batch, rows and columns costs a sum of one number per channel and statistic, so that mean and
// variance are those of the whole batch under any strategy.

def Net_BatchNormOp : Net_Operator<"BatchNorm", ["input_x", "scale", "bias", "mean", "variance"],
    ["output_x", "batch_mean", "batch_variance"],
    [Net_Differentiable, Net_Rule, Net_OwnCost, Net_Expanded, Net_State, Net_IsNorm]> {
  let summary = "normalises every channel to mean 0 and variance 1, then scales and shifts";
  let description = [{
    `output_x = (input_x - m) / sqrt(v + epsilon) * scale + bias`, per channel (dimension 1). With `is_training` m and v are
    the mean and variance of the channel over the whole batch, on all devices, and the other results are the new running
    values: `batch_mean = (1 - momentum) * mean + momentum * m`, and `batch_variance` alike with v * n / (n - 1), the
    variance that a sample of n elements estimates. Where `mean` and `variance` are parameters with
    `requires_grad: false`, a step of training writes the new values back. Without `is_training` m and v are `mean` and
    `variance`, which are passed through. A network that is trained has it, unless it is written.

    Constraints:
    - (C1) all operands have the same float element type.
    - (C2) `input_x` has at least 2 dimensions, and the others its number of channels.
    - (C3) with `is_training` a channel has elements.
    - (C4) `epsilon` and `momentum` lie in [0, 1].
    - (C5) `data_format` is NCHW.
    - (C6) `group_size` is at least 1 and divides the number of devices, whose groups each have a sample.

    With `group_size` mean and variance are those of a part of the batch: of `devices / group_size` parts of neighbouring
    samples, as if so many devices each had a share of the batch, under any strategy. The new running values are then the
    means over these parts. On one device, and without training, it has no effect.
  }];
  let arguments = (ins Net_Tensor:$input_x, Net_Tensor:$scale, Net_Tensor:$bias, Net_Tensor:$mean, Net_Tensor:$variance,
                       OptionalAttr<BoolAttr>:$is_training, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon,
                       DefaultValuedAttr<F64Attr, "0.1">:$momentum, DefaultValuedAttr<StrAttr, "\"NCHW\"">:$data_format,
                       OptionalAttr<I64Attr>:$group_size);
  let results = (outs Net_Tensor:$output_x, Net_Tensor:$batch_mean, Net_Tensor:$batch_variance);
  let exampleInputs = "%input_x: f32[8, 16, 4, 4], %scale: f32[16], %bias: f32[16], %mean: f32[16], %variance: f32[16]";
  let exampleAttributes = "is_training: true, momentum: 0.1";
  let specs = [{
    {.name = "is_training", .kind = Bool, .summary = "normalise by the batch; left out: where the network is trained"},
    {.name = "epsilon", .kind = Float, .summary = "added to the variance"},
    {.name = "momentum", .kind = Float, .summary = "how much of the batch goes into the running values"},
    {.name = "data_format", .kind = String, .words = kImageFormats, .summary = "order of the dimensions"},
    {.name = "group_size", .kind = Int, .summary = "devices that share statistics; all unless given"}
  }];
}
