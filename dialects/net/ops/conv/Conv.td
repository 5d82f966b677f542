//===- Conv.td - convolutions over images ---------------------------------===//
//
// Kernels of the runtime: runtime/plan/calls, runtime/device/cpu/calls. Conv2DBackpropInput and Conv2DBackpropFilter are
// gradients and have none of their own.

defvar Net_ConvAttributes = (ins OptionalAttr<I64Attr>:$out_channel, OptionalAttr<DenseI64ArrayAttr>:$kernel_size,
                       DefaultValuedAttr<I64Attr, "1">:$mode, DefaultValuedAttr<StrAttr, "\"valid\"">:$pad_mode,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{0}">:$pad, DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$stride,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$dilation, DefaultValuedAttr<I64Attr, "1">:$group,
                       DefaultValuedAttr<StrAttr, "\"NCHW\"">:$data_format);
defvar Net_ConvSpecs = [{
    {.name = "out_channel", .kind = Int, .summary = "output channels, as the weights say"},
    {.name = "kernel_size", .kind = IntTuple, .summary = "rows and columns of the kernel, as the weights say"},
    {.name = "mode", .kind = Int, .summary = "1: cross correlation, the only one"},
    {.name = "pad_mode", .kind = String, .words = kPadModes, .summary = "padding at the edges"},
    {.name = "pad", .kind = IntTuple, .summary = "with pad_mode pad: all sides, or (top, bottom, left, right)"},
    {.name = "stride", .kind = IntTuple, .summary = "rows and columns from one window to the next"},
    {.name = "dilation", .kind = IntTuple, .summary = "rows and columns from one element of the kernel to the next"},
    {.name = "group", .kind = Int, .summary = "groups of channels that are convolved apart"},
    {.name = "data_format", .kind = String, .words = kImageFormats, .summary = "order of the dimensions"}
}];

defvar Net_ConvText = [{
    Window (i, j) begins at row `i * stride[0] - top` and column `j * stride[1] - left`. `pad_mode` valid: no padding; same:
    `ceil(size / stride)` windows, padding spread evenly with the odd one behind; pad: as `pad` says.

    Constraints:
    - (C1) all tensors have 4 dimensions and the same float element type.
    - (C2) `stride` and `dilation` are one number or (rows, columns), at least 1; `pad` is one number or (top, bottom, left,
      right), at least 0.
    - (C3) a window is not larger than the padded image.
    - (C4) weights are (O, C / group, rows, columns); `group` divides C and O; `out_channel` and `kernel_size` say the same.
    - (C5) `mode` is 1, `data_format` is NCHW.
}];

def Net_Conv2DOp : Net_Operator<"Conv2D", ["x", "w"], ["output"],
    [Net_Differentiable, Net_Rule, Net_Halo, Net_OwnCost, Net_Library, Net_NarrowOperands]> {
  let summary = "convolution of images";
  let description = !strconcat([{
    `output[n, o, i, j] = sum_c,s,t x[n, c, i * stride + s * dilation - top, j * stride + t * dilation - left] * w[o, c, s, t]`,
    c over the input channels of o's group; what lies in the padding is 0.
}], Net_ConvText, [{
    Rule: `(n c h w, o c s t) -> (n o h w), reduce c, halo h, halo w`: batch, output channels, rows and columns may be cut,
    and input channels leave a partial sum. With groups, whole groups are cut on both sides. A rank gathers the rows and
    columns beyond its piece that its own windows reach.
}]);
  let arguments = !con((ins Net_Tensor:$x, Net_Tensor:$w), Net_ConvAttributes);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[8, 3, 32, 32], %w: f32[16, 3, 3, 3]";
  let exampleAttributes = "pad_mode: same, stride: 2";
  let specs = Net_ConvSpecs;
}

class Net_ConvToInput<string mnemonic, list<string> inputs, dag tensors, dag size, string what, list<Trait> traits>
    : Net_Operator<mnemonic, inputs, ["output"], !listconcat(traits, [Net_Rule, Net_Halo, Net_OwnCost, Net_Library, Net_NarrowOperands])> {
  let summary = what;
  let arguments = !con(tensors, size, Net_ConvAttributes);
  let results = (outs Net_Tensor:$output);
  let specs = !strconcat([{
    {.name = "input_size", .kind = IntTuple, .positional = true, .summary = "shape of the result"},}], Net_ConvSpecs);
}

def Net_Conv2DTransposeOp : Net_ConvToInput<"Conv2DTranspose", ["x", "w"], (ins Net_Tensor:$x, Net_Tensor:$w),
    (ins OptionalAttr<DenseI64ArrayAttr>:$input_size), "transposed convolution of images", [Net_Differentiable]> {
  let description = !strconcat([{
    The gradient of a Conv2D with respect to its input, as an operator: every `x[n, o, i, j] * w[o, c, s, t]` is added to
    `output[n, c, i * stride + s * dilation - top, j * stride + t * dilation - left]`. Without `input_size` the result has
    `i * stride` rows with pad_mode same, else the fewest that have as many windows as `x` has rows; columns alike.
}], Net_ConvText, [{
    Rule: `(n o h w, o c s t) -> (n c h w), reduce o, halo h, halo w`, otherwise as for Conv2D.
}]);
  let exampleInputs = "%x: f32[8, 16, 16, 16], %w: f32[16, 3, 2, 2]";
  let exampleAttributes = "stride: 2";
}

def Net_Conv2DBackpropInputOp : Net_ConvToInput<"Conv2DBackpropInput", ["dout", "w"],
    (ins Net_Tensor:$dout, Net_Tensor:$w), (ins OptionalAttr<DenseI64ArrayAttr>:$input_size),
    "gradient of Conv2D with respect to its input", []> {
  let description = [{
    Every `dout[n, o, i, j] * w[o, c, s, t]` is added to the element of the input, whose shape is `input_size`, that they
    were multiplied with. The other attributes are those of the Conv2D.
  }];
  let exampleInputs = "%dout: f32[8, 16, 16, 16], %w: f32[16, 3, 3, 3]";
  let exampleAttributes = "input_size: (8, 3, 32, 32), pad_mode: same, stride: 2";
}

def Net_Conv2DBackpropFilterOp : Net_Operator<"Conv2DBackpropFilter", ["dout", "x"], ["output"],
    [Net_Rule, Net_HaloOfOperand, Net_OwnCost, Net_Library]> {
  let summary = "gradient of Conv2D with respect to its weights";
  let description = [{
    `output[o, c, s, t]` is the sum of `dout[n, o, i, j]` times the element of `x` that w[o, c, s, t] was multiplied with;
    `filter_size` is the shape of the weights. The other attributes are those of the Conv2D. Batch, rows and columns that
    are cut leave a partial sum.
  }];
  let arguments = !con((ins Net_Tensor:$dout, Net_Tensor:$x, DenseI64ArrayAttr:$filter_size), Net_ConvAttributes);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%dout: f32[8, 16, 16, 16], %x: f32[8, 3, 32, 32]";
  let exampleAttributes = "filter_size: (16, 3, 3, 3), pad_mode: same, stride: 2";
  let specs = !strconcat([{
    {.name = "filter_size", .kind = IntTuple, .required = true, .positional = true, .summary = "shape of the weights"},}], Net_ConvSpecs);
}
