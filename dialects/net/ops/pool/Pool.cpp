#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Images.h"
#include "dialects/net/ops/support/Rules.h"
#include "runtime/plan/calls/PoolingSide.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

static std::vector<int64_t> listOf(ArrayRef<int64_t> list) {
  return {list.begin(), list.end()};
}

template <typename Pool> static WindowAttributes attributesOf(Pool op) {
  WindowAttributes attributes;
  attributes.kernel = listOf(op.getKernelSize());
  attributes.stride = listOf(op.getStrides());
  attributes.padMode = op.getPadMode().str();
  attributes.pad = listOf(op.getPad());
  attributes.strideName = "strides";
  return attributes;
}

/// The windows of an operator with the attributes of pooling over images of `shape`.
template <typename Adaptor>
static FailureOr<std::array<Window, 2>> poolWindows(const Inference &at, Adaptor op, ArrayRef<int64_t> shape) {
  FailureOr<std::array<Window, 2>> windows = windowsOf(at, 0, shape, attributesOf(op)); // C2, C3
  if (failed(windows))
    return failure();
  for (const Window &window : *windows)
    if (op.getPadMode() == "pad" && std::max(window.before, window.after) >= window.kernel)
      return at.error("'" + at.opName + "' of " + at.text(0) + ": 'pad' of " +
                      Twine(std::max(window.before, window.after)) + " leaves windows without an element, the kernel has " +
                      Twine(window.kernel));
  return windows;
}

template <typename Adaptor>
static LogicalResult inferPool(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkImage(at, 0, op.getDataFormat()))) // C1, C4
    return failure();
  FailureOr<std::array<Window, 2>> windows = poolWindows(at, op, at.shape(0));
  if (failed(windows))
    return failure();
  results.push_back(tensorOf({at.shape(0)[0], at.shape(0)[1], (*windows)[0].output, (*windows)[1].output}, at.element(0)));
  return success();
}

LogicalResult MaxPoolOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferPool(at, op, results);
}
LogicalResult AvgPoolOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferPool(at, op, results);
}

/// The gradient of the result has one element per window over `input`.
template <typename Adaptor>
static LogicalResult inferPoolGrad(const Inference &at, Adaptor op, unsigned dout, ArrayRef<int64_t> input,
                                   SmallVectorImpl<Type> &results) {
  if (failed(checkImage(at, dout, op.getDataFormat())))
    return failure();
  if (input.size() != 4)
    return at.error("'input_size' of '" + at.opName + "' has " + Twine(input.size()) + " numbers, expected 4");
  FailureOr<std::array<Window, 2>> windows = poolWindows(at, op, input);
  if (failed(windows))
    return failure();
  SmallVector<int64_t> wanted = {input[0], input[1], (*windows)[0].output, (*windows)[1].output};
  if (at.shape(dout) != ArrayRef(wanted))
    return at.error("'" + at.opName + "' takes a 'dout' of " + shapeText(wanted) + ", but " + at.text(dout) + " is given", {dout});
  results.push_back(tensorOf(input, at.element(dout)));
  return success();
}

LogicalResult MaxPoolGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float)) || failed(checkImage(at, 0, op.getDataFormat())))
    return failure();
  return inferPoolGrad(at, op, 1, at.shape(0), results);
}
LogicalResult AvgPoolGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferPoolGrad(at, op, 0, op.getInputSize(), results);
}

LogicalResult AdaptiveAvgPool2DOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkImage(at, 0, "NCHW"))) // C1
    return failure();
  if (at.shape(0)[2] == 0 || at.shape(0)[3] == 0) // C1
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to reduce", {0});
  auto size = bothDirections(listOf(op.getOutputSize()));
  if (!size || std::min((*size)[0], (*size)[1]) < 1) // C2
    return at.error("'output_size' of '" + at.opName + "' is one number or (rows, columns), at least 1");
  results.push_back(tensorOf({at.shape(0)[0], at.shape(0)[1], (*size)[0], (*size)[1]}, at.element(0)));
  return success();
}

LogicalResult AdaptiveAvgPool2DGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkImage(at, 0, "NCHW")))
    return failure();
  ArrayRef<int64_t> input = op.getInputSize();
  if (input.size() != 4 || input.take_front(2) != at.shape(0).take_front(2))
    return at.error("'input_size' of '" + at.opName + "' does not fit " + at.text(0), {0});
  results.push_back(tensorOf(input, at.element(0)));
  return success();
}

//===-- gradients ---------------------------------------------------------===//

LogicalResult MaxPoolOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  if (wanted[0])
    gradients[0] = builder.create<MaxPoolGradOp>(getLoc(), getX(), resultGradients[0], getKernelSize(), getStrides(),
                                                 getPadMode(), getPad(), getDataFormat());
  return success();
}

LogicalResult AvgPoolOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  if (wanted[0])
    gradients[0] = builder.create<AvgPoolGradOp>(getLoc(), resultGradients[0], cast<RankedTensorType>(getX().getType()).getShape(),
                                                 getKernelSize(), getStrides(), getPadMode(), getPad(), getDataFormat(),
                                                 getCountIncludePad());
  return success();
}

LogicalResult AdaptiveAvgPool2DOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                                 const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  if (wanted[0])
    gradients[0] = builder.create<AdaptiveAvgPool2DGradOp>(getLoc(), resultGradients[0],
                                                           cast<RankedTensorType>(getX().getType()).getShape());
  return success();
}

//===-- rules -------------------------------------------------------------===//

/// Windows of a pooling operator over images of `large`.
template <typename Pool> static std::array<Window, 2> slidingWindows(Pool op, Value large) {
  std::string why;
  std::vector<int64_t> shape = shapeOf(large);
  return *windowsOver(attributesOf(op), shape[2], shape[3], why); // verified
}

/// Batch and channels of all tensors belong together; so do rows and columns of `large` and `small`, the images on the two
/// sides of the windows.
static ShardingRule poolRule(Operation *op, Value large, Value small, std::array<bool, 2> reaches) {
  ShardingRule rule;
  std::vector<int64_t> shape = shapeOf(large);
  rule.add({.name = "n", .size = shape[0]});
  rule.add({.name = "c", .size = shape[1]});
  addImage(rule, shape, shapeOf(small), reaches);
  rule.operands.assign(op->getNumOperands(), identityDims(4));
  rule.results = {identityDims(4)};
  return rule;
}

template <typename Pool> static ShardingRule slidingRule(Pool op, Value large, Value small) {
  std::array<Window, 2> windows = slidingWindows(op, large);
  return poolRule(op, large, small, {!isPointwise(windows[0]), !isPointwise(windows[1])});
}

/// A direction with a single window that covers all: the mean is a sum of shares, and its gradient the same everywhere.
static ShardingRule adaptiveRule(Operation *op, Value large, Value small) {
  std::vector<int64_t> from = shapeOf(large), to = shapeOf(small);
  ShardingRule rule = poolRule(op, large, small, {from[2] != to[2], from[3] != to[3]});
  for (size_t dim : {2, 3}) {
    if (to[dim] != 1)
      continue;
    bool isSum = op->getResult(0) == small;
    FactorKind kind = isSum ? FactorKind::Reduction : FactorKind::PassThrough;
    rule.factors[dim] = {.name = rule.factors[dim].name, .size = from[dim], .kind = kind};
    (isSum ? rule.results : rule.operands)[0][dim] = {};
  }
  return rule;
}

ShardingRule MaxPoolOp::shardingRule() {
  return slidingRule(*this, getX(), getOutput());
}
ShardingRule AvgPoolOp::shardingRule() {
  return slidingRule(*this, getX(), getOutput());
}
ShardingRule MaxPoolGradOp::shardingRule() {
  return slidingRule(*this, getX(), getDout());
}
ShardingRule AvgPoolGradOp::shardingRule() {
  return slidingRule(*this, getOutput(), getDout());
}
ShardingRule AdaptiveAvgPool2DOp::shardingRule() {
  return adaptiveRule(*this, getX(), getOutput());
}
ShardingRule AdaptiveAvgPool2DGradOp::shardingRule() {
  return adaptiveRule(*this, getOutput(), getDout());
}

//===-- halos -------------------------------------------------------------===//

/// Of the images, for some windows.
static NeededIndices underWindows(const PoolingSide &side) {
  return [side](const Range &windows) { return side.under(windows); };
}
/// Of the windows, for some elements of the images.
static NeededIndices overElements(const PoolingSide &side) {
  return [side](const Range &elements) { return side.over(elements); };
}
template <typename Pool> static PoolingSide slidingSide(Pool op, Value large, unsigned dim) {
  return PoolingSide(slidingWindows(op, large)[dim - 2], /*countPadding=*/false);
}
static PoolingSide adaptiveSide(Value large, Value small, unsigned dim) {
  return PoolingSide(shapeOf(large)[dim], shapeOf(small)[dim]);
}

NeededIndices MaxPoolOp::neededIndices(unsigned, unsigned dim) {
  return underWindows(slidingSide(*this, getX(), dim));
}
NeededIndices AvgPoolOp::neededIndices(unsigned, unsigned dim) {
  return underWindows(slidingSide(*this, getX(), dim));
}
/// Of x, all among which the maxima of those windows were found.
NeededIndices MaxPoolGradOp::neededIndices(unsigned operand, unsigned dim) {
  PoolingSide side = slidingSide(*this, getX(), dim);
  if (operand == 1)
    return overElements(side);
  return [side](const Range &elements) { return side.under(side.over(elements)); };
}
NeededIndices AvgPoolGradOp::neededIndices(unsigned, unsigned dim) {
  return overElements(slidingSide(*this, getOutput(), dim));
}
NeededIndices AdaptiveAvgPool2DOp::neededIndices(unsigned, unsigned dim) {
  return underWindows(adaptiveSide(getX(), getOutput(), dim));
}
NeededIndices AdaptiveAvgPool2DGradOp::neededIndices(unsigned, unsigned dim) {
  return overElements(adaptiveSide(getOutput(), getDout(), dim));
}

//===-- costs -------------------------------------------------------------===//

/// One operation per element of every window; `small`: the local shape of the images with one element per window.
static OperatorCost poolCost(Operation *op, ArrayRef<int64_t> kernel, const std::vector<int64_t> &small,
                             ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  auto size = bothDirections(listOf(kernel)).value_or(std::array<int64_t, 2>{1, 1});
  cost.flops = static_cast<double>(elementCount(small)) * static_cast<double>(size[0] * size[1]);
  return cost;
}
OperatorCost MaxPoolOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return poolCost(*this, getKernelSize(), results[0], operands, results);
}
OperatorCost AvgPoolOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return poolCost(*this, getKernelSize(), results[0], operands, results);
}
OperatorCost MaxPoolGradOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return poolCost(*this, getKernelSize(), operands[1], operands, results);
}
OperatorCost AvgPoolGradOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return poolCost(*this, getKernelSize(), operands[0], operands, results);
}
OperatorCost AdaptiveAvgPool2DOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = static_cast<double>(elementCount(operands[0])); // every element belongs to about one window
  return cost;
}
OperatorCost AdaptiveAvgPool2DGradOp::cost(ArrayRef<std::vector<int64_t>> operands,
                                           ArrayRef<std::vector<int64_t>> results) {
  return defaultCost(*this, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind MaxPoolOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AvgPoolOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind MaxPoolGradOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AvgPoolGradOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AdaptiveAvgPool2DOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AdaptiveAvgPool2DGradOp::loweringKind() {
  return LoweringKind::Library;
}
