#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Images.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

using Sizes = ArrayRef<int64_t>;

//===-- constraints and result types --------------------------------------===//

/// Attributes of windows with the kernel of weights of shape (O, C / group, rows, columns).
template <typename Conv> static WindowAttributes attributesOf(Conv op, Sizes filter) {
  WindowAttributes attributes;
  attributes.kernel = {filter[2], filter[3]};
  attributes.stride.assign(op.getStride().begin(), op.getStride().end());
  attributes.dilation.assign(op.getDilation().begin(), op.getDilation().end());
  attributes.pad.assign(op.getPad().begin(), op.getPad().end());
  attributes.padMode = op.getPadMode().str();
  return attributes;
}

/// What would fit: weights for these channels and groups, or the number of groups for these weights.
static std::string channelRepair(int64_t channels, int64_t group, Sizes filter) {
  if (group < 1 || channels % group != 0 || filter[0] % group != 0)
    return "'group' divides the channels of the input and of the output: " + std::to_string(channels) + " and " + std::to_string(filter[0]);
  std::string repair = "weights of " + shapeText({filter[0], channels / group, filter[2], filter[3]}) + " fit";
  if (int64_t groups = filter[1] > 0 ? channels / filter[1] : 0; groups > 1 && channels % filter[1] == 0 && filter[0] % groups == 0)
    repair += "; so does 'group: " + std::to_string(groups) + "'";
  return repair;
}

/// Attributes that repeat what the weights say, and groups of channels that fit them (C4, C5).
template <typename Adaptor>
static LogicalResult checkFilter(const Inference &at, Adaptor op, Sizes filter, int64_t channels) {
  int64_t group = op.getGroup();
  if (static_cast<int64_t>(op.getMode()) != 1)
    return at.error("'mode' of '" + at.opName + "' is " + Twine(static_cast<int64_t>(op.getMode())) +
                    ", but only 1, the cross correlation, exists");
  if (group < 1 || filter[0] % group != 0 || channels != filter[1] * group)
    return at.error("'" + at.opName + "': " + Twine(channels) + " channels in " + Twine(group) +
                        (group == 1 ? " group" : " groups") + " do not fit weights of " + shapeText(filter),
                    {}, channelRepair(channels, group, filter));
  if (auto out = op.getOutChannel(); out && static_cast<int64_t>(*out) != filter[0])
    return at.error("'out_channel' of '" + at.opName + "' is " + Twine(static_cast<int64_t>(*out)) + ", the weights have " + Twine(filter[0]),
                    {}, "leave out 'out_channel', or write " + Twine(filter[0]));
  if (auto size = op.getKernelSize()) {
    auto both = bothDirections({size->begin(), size->end()});
    if (!both || (*both)[0] != filter[2] || (*both)[1] != filter[3])
      return at.error("'kernel_size' of '" + at.opName + "' is another than that of the weights, " + shapeText(filter.drop_front(2)), {},
                      "leave out 'kernel_size'");
  }
  return success();
}

/// The shape of the output for an input and weights; reports at operand `operand`.
template <typename Adaptor>
static FailureOr<SmallVector<int64_t>> outputShape(const Inference &at, Adaptor op, unsigned operand, Sizes input, Sizes filter) {
  if (failed(checkFilter(at, op, filter, input[1])))
    return failure();
  FailureOr<std::array<Window, 2>> windows = windowsOf(at, operand, input, attributesOf(op, filter)); // C2, C3
  if (failed(windows))
    return failure();
  return SmallVector<int64_t>{input[0], filter[0], (*windows)[0].output, (*windows)[1].output};
}

template <typename Adaptor> static LogicalResult checkTensors(const Inference &at, Adaptor op) {
  if (failed(at.checkSameElement(ElementSet::Float))) // C1
    return failure();
  return failed(checkImage(at, 0, op.getDataFormat())) ? failure() : checkImage(at, 1, op.getDataFormat());
}

LogicalResult Conv2DOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkTensors(at, op)))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = outputShape(at, op, 0, at.shape(0), at.shape(1));
  if (failed(shape))
    return failure();
  results.push_back(tensorOf(*shape, at.element(0)));
  return success();
}

/// The fewest rows and columns that have as many windows as `small`; with padding `same`, as many as its windows cover.
template <typename Adaptor>
static FailureOr<SmallVector<int64_t>> smallestInput(const Inference &at, Adaptor op, Sizes small, Sizes filter) {
  WindowAttributes attributes = attributesOf(op, filter);
  auto stride = bothDirections(attributes.stride), dilation = bothDirections(attributes.dilation);
  std::vector<int64_t> pad = attributes.pad;
  pad.resize(4, pad.empty() ? 0 : pad[0]);
  if (!stride || !dilation) {
    (void)windowsOf(at, 0, small, attributes); // says what is wrong
    return failure();
  }
  SmallVector<int64_t> shape{small[0], filter[1] * static_cast<int64_t>(op.getGroup())};
  for (size_t d : {0, 1}) {
    int64_t reach = (filter[2 + d] - 1) * (*dilation)[d] + 1;
    int64_t padding = attributes.padMode == "pad" ? pad[2 * d] + pad[2 * d + 1] : 0;
    shape.push_back(attributes.padMode == "same" ? small[2 + d] * (*stride)[d]
                                                 : std::max<int64_t>(0, (small[2 + d] - 1) * (*stride)[d] + reach - padding));
  }
  return shape;
}

template <typename Adaptor>
static LogicalResult inferToInput(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkTensors(at, op)))
    return failure();
  SmallVector<int64_t> input;
  if (auto size = op.getInputSize()) {
    input.assign(size->begin(), size->end());
  } else {
    FailureOr<SmallVector<int64_t>> smallest = smallestInput(at, op, at.shape(0), at.shape(1));
    if (failed(smallest))
      return failure();
    input = *smallest;
  }
  if (input.size() != 4)
    return at.error("'input_size' of '" + at.opName + "' has " + Twine(input.size()) + " numbers, expected 4");
  FailureOr<SmallVector<int64_t>> shape = outputShape(at, op, 0, input, at.shape(1));
  if (failed(shape))
    return failure();
  if (at.shape(0) != ArrayRef(*shape))
    return at.error("'" + at.opName + "' to " + shapeText(input) + " takes " + shapeText(*shape) + ", but " + at.text(0) + " is given", {0});
  results.push_back(tensorOf(input, at.element(0)));
  return success();
}

LogicalResult Conv2DTransposeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferToInput(at, op, results);
}
LogicalResult Conv2DBackpropInputOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferToInput(at, op, results);
}

LogicalResult Conv2DBackpropFilterOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkTensors(at, op)))
    return failure();
  if (op.getFilterSize().size() != 4)
    return at.error("'filter_size' of '" + at.opName + "' has " + Twine(op.getFilterSize().size()) + " numbers, expected 4");
  FailureOr<SmallVector<int64_t>> shape = outputShape(at, op, 1, at.shape(1), op.getFilterSize());
  if (failed(shape))
    return failure();
  if (at.shape(0) != ArrayRef(*shape))
    return at.error("'" + at.opName + "' takes a 'dout' of " + shapeText(*shape) + ", but " + at.text(0) + " is given", {0});
  results.push_back(tensorOf(op.getFilterSize(), at.element(0)));
  return success();
}

//===-- gradients ---------------------------------------------------------===//

static DenseI64ArrayAttr shapeAttr(OpBuilder &builder, Value value) {
  return builder.getDenseI64ArrayAttr(cast<RankedTensorType>(value.getType()).getShape());
}

/// The sum over windows that belongs to weights `w`: of slopes `dout` with the shape of the output, and the input.
template <typename Conv> static Value filterGradient(OpBuilder &builder, Conv op, Value dout, Value x, Value w) {
  return builder.create<Conv2DBackpropFilterOp>(op.getLoc(), dout, x, shapeAttr(builder, w), op.getOutChannelAttr(), op.getKernelSizeAttr(),
                                                op.getModeAttr(), op.getPadModeAttr(), op.getPadAttr(), op.getStrideAttr(),
                                                op.getDilationAttr(), op.getGroupAttr(), op.getDataFormatAttr());
}

LogicalResult Conv2DOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, const llvm::SmallBitVector &wanted,
                                      MutableArrayRef<Value> gradients) {
  Value dout = resultGradients[0];
  if (wanted[0])
    gradients[0] = builder.create<Conv2DBackpropInputOp>(getLoc(), dout, getW(), shapeAttr(builder, getX()), getOutChannelAttr(),
                                                         getKernelSizeAttr(), getModeAttr(), getPadModeAttr(), getPadAttr(),
                                                         getStrideAttr(), getDilationAttr(), getGroupAttr(), getDataFormatAttr());
  if (wanted[1])
    gradients[1] = filterGradient(builder, *this, dout, getX(), getW());
  return success();
}

LogicalResult Conv2DTransposeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                               const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  Value slopes = resultGradients[0]; // with the shape of the input of the convolution that this one transposes
  if (wanted[0])
    gradients[0] = builder.create<Conv2DOp>(getLoc(), slopes, getW(), getOutChannelAttr(), getKernelSizeAttr(), getModeAttr(),
                                            getPadModeAttr(), getPadAttr(), getStrideAttr(), getDilationAttr(), getGroupAttr(),
                                            getDataFormatAttr());
  if (wanted[1])
    gradients[1] = filterGradient(builder, *this, getX(), slopes, getW());
  return success();
}

//===-- rules -------------------------------------------------------------===//

namespace {

/// The three tensors of a convolution: input, weights, output. One of them is the result, the others are operands.
struct Tensors {
  Value x, w, y;
  int64_t group;
  std::array<Window, 2> windows; ///< over x, one per element of y
};

} // namespace

/// Verified, so that the windows fit.
template <typename Conv> static Tensors tensorsOf(Conv op, Value x, Value w, Value y) {
  std::string why;
  std::vector<int64_t> image = shapeOf(x);
  return {x, w, y, static_cast<int64_t>(op.getGroup()), *windowsOver(attributesOf(op, shapeOf(w)), image[2], image[3], why)};
}
static Tensors tensorsOf(Conv2DOp op) { return tensorsOf(op, op.getX(), op.getW(), op.getOutput()); }
static Tensors tensorsOf(Conv2DTransposeOp op) { return tensorsOf(op, op.getOutput(), op.getW(), op.getX()); }
static Tensors tensorsOf(Conv2DBackpropInputOp op) { return tensorsOf(op, op.getOutput(), op.getW(), op.getDout()); }
static Tensors tensorsOf(Conv2DBackpropFilterOp op) { return tensorsOf(op, op.getX(), op.getOutput(), op.getDout()); }

/// The factors of channels: of x, of the weights in and out, of y.
struct ChannelFactors {
  DimFactors x, in, out, y;
};

/// Channels in groups: depthwise they belong together one by one, else whole groups do.
static ChannelFactors addGroups(ShardingRule &rule, int64_t group, Sizes x, Sizes w, Sizes y) {
  if (x[1] == group && y[1] == group) {
    int32_t c = rule.add({.name = "c", .size = x[1]});
    return {{c}, {}, {c}, {c}};
  }
  int64_t block = w[1] * (w[0] / group);
  int32_t g = rule.add({.name = "g", .size = group * block, .kind = FactorKind::Blocked, .block = block});
  if (w[1] == 1)
    return {{g}, {}, {g}, {g}};
  int32_t c = rule.add({.name = "c", .size = w[1], .kind = FactorKind::Replicated, .reason = "the channels of a group stay together"});
  return {{g}, {c}, {g}, {g}};
}

/// Factors in MindSpore's order: those of the input, then of the weights.
static ShardingRule convRule(Operation *op, const Tensors &t) {
  std::vector<int64_t> x = shapeOf(t.x), w = shapeOf(t.w), y = shapeOf(t.y);
  Value result = op->getResult(0);
  auto kindUnless = [&](Value carrier) { // a factor that the result does not carry is summed over
    return carrier == result ? FactorKind::Reduction : FactorKind::PassThrough;
  };
  ShardingRule rule;
  int32_t n = rule.add({.name = "n", .size = x[0], .kind = kindUnless(t.w)});
  ChannelFactors channels;
  if (t.group > 1)
    channels = addGroups(rule, t.group, x, w, y);
  else
    channels.x = channels.in = {rule.add({.name = "c", .size = x[1], .kind = kindUnless(t.y)})};
  int32_t h = addImage(rule, x, y, {!isPointwise(t.windows[0]), !isPointwise(t.windows[1])}, kindUnless(t.w));
  if (t.group == 1)
    channels.out = channels.y = {rule.add({.name = "o", .size = w[0], .kind = kindUnless(t.x)})};
  int32_t s = addWholeKernel(rule, w);
  // By their places: one value may stand in two of them.
  const std::vector<DimFactors> ofX = {{n}, channels.x, {h}, {h + 1}}, ofY = {{n}, channels.y, {h}, {h + 1}},
                                ofW = {channels.out, channels.in, {s}, {s + 1}};
  if (result == t.y) {
    rule.operands = {ofX, ofW};
    rule.results = {ofY};
  } else if (result == t.x) {
    rule.operands = {ofY, ofW};
    rule.results = {ofX};
  } else {
    rule.operands = {ofY, ofX};
    rule.results = {ofW};
  }
  return rule;
}

ShardingRule Conv2DOp::shardingRule() {
  return convRule(*this, tensorsOf(*this));
}
ShardingRule Conv2DTransposeOp::shardingRule() {
  return convRule(*this, tensorsOf(*this));
}
ShardingRule Conv2DBackpropInputOp::shardingRule() {
  return convRule(*this, tensorsOf(*this));
}
ShardingRule Conv2DBackpropFilterOp::shardingRule() {
  return convRule(*this, tensorsOf(*this));
}

//===-- halos -------------------------------------------------------------===//

/// Of x, for some elements of y.
template <typename Conv> static NeededIndices underOutputs(Conv op, unsigned dim) {
  return [window = tensorsOf(op).windows[dim - 2]](const Range &outputs) { return window.under(outputs); };
}
/// Of y, for some elements of x.
template <typename Conv> static NeededIndices overInputs(Conv op, unsigned dim) {
  return [window = tensorsOf(op).windows[dim - 2]](const Range &inputs) { return window.over(inputs); };
}

NeededIndices Conv2DOp::neededIndices(unsigned, unsigned dim) {
  return underOutputs(*this, dim);
}
NeededIndices Conv2DTransposeOp::neededIndices(unsigned, unsigned dim) {
  return overInputs(*this, dim);
}
NeededIndices Conv2DBackpropInputOp::neededIndices(unsigned, unsigned dim) {
  return overInputs(*this, dim);
}
NeededIndices Conv2DBackpropFilterOp::neededIndices(unsigned, unsigned dim) {
  return underOutputs(*this, dim);
}
Value Conv2DBackpropFilterOp::haloLeader() {
  return getDout();
}

//===-- costs -------------------------------------------------------------===//

/// Two operations per element of the output, input channel of its group and element of the kernel.
static OperatorCost convCost(Operation *op, const std::vector<int64_t> &y, const std::vector<int64_t> &w,
                             ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = 2.0 * static_cast<double>(elementCount(y)) * static_cast<double>(w[1] * w[2] * w[3]);
  return cost;
}
OperatorCost Conv2DOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return convCost(*this, results[0], operands[1], operands, results);
}
OperatorCost Conv2DTransposeOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return convCost(*this, operands[0], operands[1], operands, results);
}
OperatorCost Conv2DBackpropInputOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return convCost(*this, operands[0], operands[1], operands, results);
}
OperatorCost Conv2DBackpropFilterOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return convCost(*this, operands[0], results[0], operands, results);
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind Conv2DOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind Conv2DTransposeOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind Conv2DBackpropInputOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind Conv2DBackpropFilterOp::loweringKind() {
  return LoweringKind::Library;
}
