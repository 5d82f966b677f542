//===- Pool.td - maxima and means over windows of images ------------------===//
//
// Kernels of the runtime: runtime/plan/calls, runtime/device/cpu/calls. The gradient operators have no gradient of
// their own.

defvar Net_PoolWindowText = [{
    Window (i, j) covers `kernel_size` rows and columns from row `i * strides[0] - top` and column `j * strides[1] - left`
    on. `pad_mode` valid: no padding; same: `ceil(size / strides)` windows, padding spread evenly with the odd one behind;
    pad: as `pad` says. Padding never counts as a maximum, and in a mean only with `count_include_pad`.
}];

defvar Net_PoolConstraints = [{
    - (C1) `x` is a float tensor (N, C, H, W).
    - (C2) `kernel_size` and `strides` are one number or (rows, columns), at least 1; `pad` is one number or (top, bottom,
      left, right), at least 0 and less than the kernel.
    - (C3) a window is not larger than the padded image.
    - (C4) `data_format` is NCHW.
}];

defvar Net_PoolRuleText = [{
    Rule: batch, channels, rows and columns may be cut. A rank gathers the rows and columns beyond its piece that its own
    windows reach.
}];

defvar Net_PoolAttributes = (ins DenseI64ArrayAttr:$kernel_size, DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$strides,
                       DefaultValuedAttr<StrAttr, "\"valid\"">:$pad_mode, DefaultValuedAttr<DenseI64ArrayAttr, "{0}">:$pad,
                       DefaultValuedAttr<StrAttr, "\"NCHW\"">:$data_format);
defvar Net_PoolSpecs = [{
    {.name = "kernel_size", .kind = IntTuple, .required = true, .positional = true, .summary = "rows and columns of a window"},
    {.name = "strides", .kind = IntTuple, .positional = true, .summary = "rows and columns from one window to the next"},
    {.name = "pad_mode", .kind = String, .positional = true, .words = kPadModes, .summary = "padding at the edges"},
    {.name = "pad", .kind = IntTuple, .summary = "with pad_mode pad: all sides, or (top, bottom, left, right)"},
    {.name = "data_format", .kind = String, .words = kImageFormats, .summary = "order of the dimensions"}
}];

class Net_Pool<string mnemonic, string what, dag more = (ins), code moreSpecs = "">
    : Net_Operator<mnemonic, ["x"], ["output"], [Net_Differentiable, Net_Rule, Net_Halo, Net_OwnCost, Net_Library]> {
  let summary = what # " over windows";
  let description = !strconcat("    `output[n, c, i, j]` is the ", what, " of `x[n, c, h, w]` over window (i, j).\n\n",
                               Net_PoolWindowText, "\n    Constraints:", Net_PoolConstraints, "\n", Net_PoolRuleText);
  let arguments = !con((ins Net_Tensor:$x), Net_PoolAttributes, more);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[8, 16, 32, 32]";
  let exampleAttributes = "kernel_size: 3, strides: 2, pad_mode: same";
  let specs = !strconcat(Net_PoolSpecs, moreSpecs);
}

defvar Net_CountIncludePad = (ins DefaultValuedAttr<BoolAttr, "false">:$count_include_pad);
defvar Net_CountIncludePadSpec = [{,
    {.name = "count_include_pad", .kind = Bool, .summary = "padding counts in the mean"}
}];

def Net_MaxPoolOp : Net_Pool<"MaxPool", "maximum">;
def Net_AvgPoolOp : Net_Pool<"AvgPool", "mean", Net_CountIncludePad, Net_CountIncludePadSpec>;

def Net_MaxPoolGradOp : Net_Operator<"MaxPoolGrad", ["x", "dout"], ["output"], [Net_Rule, Net_Halo, Net_OwnCost, Net_Library]> {
  let summary = "gradient of MaxPool";
  let description = [{
    Every `dout[n, c, i, j]` is added where `x` has the maximum of window (i, j), the first one in row-major order.
    The attributes are those of the MaxPool; `dout` has the shape of its result.
  }];
  let arguments = !con((ins Net_Tensor:$x, Net_Tensor:$dout), Net_PoolAttributes);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[8, 16, 32, 32], %dout: f32[8, 16, 16, 16]";
  let exampleAttributes = "kernel_size: 3, strides: 2, pad_mode: same";
  let specs = Net_PoolSpecs;
}

def Net_AvgPoolGradOp : Net_Operator<"AvgPoolGrad", ["dout"], ["output"], [Net_Rule, Net_Halo, Net_OwnCost, Net_Library]> {
  let summary = "gradient of AvgPool";
  let description = [{
    Every element of the input, whose shape is `input_size`, gets `dout` of the windows that cover it, divided by the
    count of each window. The other attributes are those of the AvgPool.
  }];
  let arguments = !con((ins Net_Tensor:$dout, DenseI64ArrayAttr:$input_size), Net_PoolAttributes, Net_CountIncludePad);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%dout: f32[8, 16, 16, 16]";
  let exampleAttributes = "input_size: (8, 16, 32, 32), kernel_size: 3, strides: 2, pad_mode: same";
  let specs = !strconcat([{
    {.name = "input_size", .kind = IntTuple, .required = true, .summary = "shape of the input of the AvgPool"},}],
    Net_PoolSpecs, Net_CountIncludePadSpec);
}

def Net_AdaptiveAvgPool2DOp : Net_Operator<"AdaptiveAvgPool2D", ["x"], ["output"],
    [Net_Differentiable, Net_Rule, Net_Halo, Net_OwnCost, Net_Library]> {
  let summary = "mean over windows that cover an image with a given number of rows and columns";
  let description = [{
    `output[n, c, i, j]` is the mean of `x[n, c, h, w]` over rows `floor(i H / R) <= h < ceil((i + 1) H / R)` and columns
    alike, where `output_size` is (R, C).

    Constraints:
    - (C1) `x` is a float tensor (N, C, H, W) with rows and columns.
    - (C2) `output_size` is one number or (rows, columns), at least 1.

    Rule: batch, channels, rows and columns may be cut, the latter as for AvgPool; a direction with one window leaves a
    partial sum.
  }];
  let arguments = (ins Net_Tensor:$x, DenseI64ArrayAttr:$output_size);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%x: f32[8, 16, 7, 7]";
  let exampleAttributes = "output_size: 1";
  let specs = [{
    {.name = "output_size", .kind = IntTuple, .required = true, .positional = true, .summary = "rows and columns of the result"}
  }];
}

def Net_AdaptiveAvgPool2DGradOp : Net_Operator<"AdaptiveAvgPool2DGrad", ["dout"], ["output"],
    [Net_Rule, Net_Halo, Net_OwnCost, Net_Library]> {
  let summary = "gradient of AdaptiveAvgPool2D";
  let description = [{
    Every element of the input, whose shape is `input_size`, gets `dout` of the windows that cover it, divided by the
    size of each window.
  }];
  let arguments = (ins Net_Tensor:$dout, DenseI64ArrayAttr:$input_size);
  let results = (outs Net_Tensor:$output);
  let exampleInputs = "%dout: f32[8, 16, 1, 1]";
  let exampleAttributes = "input_size: (8, 16, 7, 7)";
  let specs = [{
    {.name = "input_size", .kind = IntTuple, .required = true, .summary = "shape of the input of the AdaptiveAvgPool2D"}
  }];
}
