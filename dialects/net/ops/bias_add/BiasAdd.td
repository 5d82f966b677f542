//===- BiasAdd.td - a bias along the channel dimension --------------------===//

def Net_BiasAddOp : Net_Operator<"BiasAdd", ["x", "b"], ["output"],
    [Net_Differentiable, Net_Rule, Net_DefaultCost, Net_GenericOrEpilogue]> {
  let summary = "adds a bias along the channel dimension";
  let description = [{
    `output[..., c, ...] = x[..., c, ...] + b[c]`. The channel dimension is the last one for `data_format` NHWC and for
    tensors of 2 or 3 dimensions (batch, sequence, channels), and 1 for NCHW (the default) and NCDHW.

    Constraints:
    - (C1) `x` and `b` have the same numeric element type.
    - (C2) `x` has at least 2 dimensions, `b` has 1.
    - (C3) the size of `b` is the size of the channel dimension of `x`.
    - (C4) `data_format` is NCHW, NCDHW or NHWC.
  }];
  let arguments = (ins Net_Tensor:$x, Net_Tensor:$b, DefaultValuedStrAttr<StrAttr, "NCHW">:$data_format);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[16, 32], %b: f32[32]";
  let specs = [{
    {.name = "data_format", .kind = String, .words = kDataFormats, .summary = "where the channel dimension is"}
  }];
  let declarations = [{
    /// The dimension of `x` along which the bias lies.
    int64_t channelDimension();
  }];
}
