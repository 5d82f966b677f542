#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

static LogicalResult inferSoftmax(const Inference &at, int64_t axis, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Float))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, axis); // C2
  if (failed(dims))
    return failure();
  if (at.shape(0)[dims->front()] == 0)
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to reduce", {0});
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult SoftmaxOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferSoftmax(at, op.getAxis(), results);
}
LogicalResult LogSoftmaxOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferSoftmax(at, op.getAxis(), results);
}

template <typename Op> static int64_t dimensionOf(Op op) {
  int64_t rank = cast<RankedTensorType>(op.getX().getType()).getRank(), axis = op.getAxis();
  return axis < 0 ? axis + rank : axis;
}
int64_t SoftmaxOp::dimension() {
  return dimensionOf(*this);
}
int64_t LogSoftmaxOp::dimension() {
  return dimensionOf(*this);
}

//===-- gradients ---------------------------------------------------------===//

LogicalResult SoftmaxOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                       MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  Value weighted = builder.create<MulOp>(loc, dy[0], getOutput());
  Value mean = builder.create<ReduceSumOp>(loc, weighted, dimension(), /*keep_dims=*/true);
  gradients[0] = builder.create<MulOp>(loc, getOutput(), builder.create<SubOp>(loc, dy[0], mean));
  return success();
}

LogicalResult LogSoftmaxOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                          MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  Value sum = builder.create<ReduceSumOp>(loc, dy[0], dimension(), /*keep_dims=*/true);
  Value share = builder.create<MulOp>(loc, builder.create<ExpOp>(loc, getOutput()), sum);
  gradients[0] = builder.create<SubOp>(loc, dy[0], share);
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

ShardingRule SoftmaxOp::shardingRule() {
  return pointwiseRule(*this);
}
ShardingRule LogSoftmaxOp::shardingRule() {
  return pointwiseRule(*this);
}

/// Maximum, subtract, exp, sum, divide.
static OperatorCost softmaxCost(Operation *op, ArrayRef<std::vector<int64_t>> operands,
                                ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = 5 * static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}
OperatorCost SoftmaxOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return softmaxCost(*this, operands, results);
}
OperatorCost LogSoftmaxOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return softmaxCost(*this, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind SoftmaxOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> SoftmaxOp::expand(OpBuilder &builder, ValueRange operands) {
  Value numerator = builder.create<ExpOp>(getLoc(), shiftedByMaximum(builder, getLoc(), operands[0], dimension()));
  Value sum = builder.create<ReduceSumOp>(getLoc(), numerator, dimension(), /*keep_dims=*/true);
  return {builder.create<RealDivOp>(getLoc(), numerator, sum)};
}

LoweringKind LogSoftmaxOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> LogSoftmaxOp::expand(OpBuilder &builder, ValueRange operands) {
  Value shifted = shiftedByMaximum(builder, getLoc(), operands[0], dimension());
  Value terms = builder.create<ExpOp>(getLoc(), shifted);
  Value sum = builder.create<ReduceSumOp>(getLoc(), terms, dimension(), /*keep_dims=*/true);
  return {builder.create<SubOp>(getLoc(), shifted, builder.create<LogOp>(getLoc(), sum))};
}
