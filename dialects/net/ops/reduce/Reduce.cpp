#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

#include <limits>

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

/// Axes that were checked before, ascending and not negative.
static SmallVector<int64_t> reducedDims(ArrayRef<int64_t> axis, int64_t rank) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (axis.empty() || llvm::is_contained(axis, dim) || llvm::is_contained(axis, dim - rank))
      dims.push_back(dim);
  return dims;
}

static SmallVector<int64_t> reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, bool keepDims) {
  SmallVector<int64_t> result;
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
    if (!llvm::is_contained(dims, dim))
      result.push_back(shape[dim]);
    else if (keepDims)
      result.push_back(1);
  return result;
}

static int64_t countOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shape[dim];
  return count;
}

static LogicalResult inferReduce(const Inference &at, ElementSet allowed, bool needsElements, ArrayRef<int64_t> axis,
                                 bool keepDims, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, allowed))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, axis); // C2
  if (failed(dims))
    return failure();
  if (needsElements && countOf(at.shape(0), *dims) == 0) // C3
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to reduce", {0});
  results.push_back(tensorOf(reducedShape(at.shape(0), *dims, keepDims), at.element(0)));
  return success();
}

LogicalResult ReduceSumOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Number, false, op.getAxis(), op.getKeepDims(), results);
}
LogicalResult ReduceMeanOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Float, true, op.getAxis(), op.getKeepDims(), results);
}
LogicalResult ReduceMaxOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Number, true, op.getAxis(), op.getKeepDims(), results);
}

//===-- gradients ---------------------------------------------------------===//

template <typename Op> static SmallVector<int64_t> dimsOf(Op op) {
  return reducedDims(op.getAxis(), cast<RankedTensorType>(op.getX().getType()).getRank());
}

/// Brings a tensor shaped like the result of a reduction back to the shape of `x`, with size 1 in reduced dimensions.
template <typename Op> static Value keptDims(OpBuilder &builder, Op op, Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getX().getType()).getShape();
  return reshaped(builder, op.getLoc(), value, reducedShape(shape, dimsOf(op), true));
}

template <typename Op> static Value spread(OpBuilder &builder, Op op, Value dy) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getX().getType()).getShape();
  Value kept = keptDims(builder, op, dy);
  if (cast<RankedTensorType>(kept.getType()).getShape() == shape)
    return kept;
  return builder.create<BroadcastToOp>(op.getLoc(), kept, shape);
}

LogicalResult ReduceSumOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> gradients) {
  gradients[0] = spread(builder, *this, dy[0]);
  return success();
}

LogicalResult ReduceMeanOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                          MutableArrayRef<Value> gradients) {
  int64_t count = countOf(cast<RankedTensorType>(getX().getType()).getShape(), dimsOf(*this));
  gradients[0] = spread(builder, *this, scaled(builder, getLoc(), dy[0], 1.0 / static_cast<double>(count)));
  return success();
}

LogicalResult ReduceMaxOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  Type element = cast<RankedTensorType>(getX().getType()).getElementType();
  Value isMax = builder.create<EqualOp>(loc, getX(), keptDims(builder, *this, getOutput()));
  Value mask = builder.create<CastOp>(loc, isMax, element);
  Value winners = builder.create<ReduceSumOp>(loc, mask, dimsOf(*this), getKeepDims());
  Value share = keptDims(builder, *this, builder.create<RealDivOp>(loc, dy[0], winners));
  gradients[0] = builder.create<MulOp>(loc, mask, share);
  return success();
}

//===-- rules -------------------------------------------------------------===//

template <typename Op> static ShardingRule reduceRule(Op op, msc::ReduceKind reduce) {
  std::vector<int64_t> shape = shapeOf(op.getX());
  ShardingRule rule = ruleWithFactors(shape);
  SmallVector<int64_t> dims = dimsOf(op);
  for (int64_t dim : dims) {
    rule.factors[dim].kind = FactorKind::Reduction;
    rule.factors[dim].reduce = reduce;
  }
  std::vector<DimFactors> result;
  for (int32_t dim = 0; dim < static_cast<int32_t>(shape.size()); ++dim)
    if (!llvm::is_contained(dims, dim))
      result.push_back({dim});
    else if (op.getKeepDims())
      result.push_back({});
  rule.operands = {identityDims(shape.size())};
  rule.results = {result};
  return rule;
}

ShardingRule ReduceSumOp::shardingRule() {
  return reduceRule(*this, msc::ReduceKind::Sum);
}
ShardingRule ReduceMeanOp::shardingRule() {
  return reduceRule(*this, msc::ReduceKind::Sum);
}
ShardingRule ReduceMaxOp::shardingRule() {
  return reduceRule(*this, msc::ReduceKind::Max);
}

//===-- costs -------------------------------------------------------------===//

static OperatorCost reduceCost(Operation *op, ArrayRef<std::vector<int64_t>> operandShapes,
                               ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost = defaultCost(op, operandShapes, resultShapes);
  cost.flops = static_cast<double>(msc::elementCount(operandShapes[0]));
  return cost;
}

OperatorCost ReduceSumOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return reduceCost(*this, operands, results);
}
OperatorCost ReduceMeanOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return reduceCost(*this, operands, results);
}
OperatorCost ReduceMaxOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return reduceCost(*this, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

static SmallVector<Value> theElement(ImplicitLocOpBuilder &, ValueRange x) {
  return {x[0]};
}

LogicalResult ReduceSumOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                         SmallVectorImpl<Value> &results) {
  auto type = cast<RankedTensorType>(resultTypes[0]);
  results.push_back(buildReduction(builder, getLoc(), operands, type, dimsOf(*this),
                                   numberAttr(type.getElementType(), 0), theElement, add));
  return success();
}

LogicalResult ReduceMeanOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                          SmallVectorImpl<Value> &results) {
  auto type = cast<RankedTensorType>(resultTypes[0]);
  Value sum = buildReduction(builder, getLoc(), operands, type, dimsOf(*this), numberAttr(type.getElementType(), 0),
                             theElement, add);
  int64_t count = countOf(cast<RankedTensorType>(getX().getType()).getShape(), dimsOf(*this)); // global
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    return {mul(b, x[0], number(b, 1.0 / static_cast<double>(count), type.getElementType()))};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), sum, resultTypes, body));
  return success();
}

/// -inf, or the smallest integer.
static TypedAttr lowest(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerAttr::get(element, APInt::getSignedMinValue(integer.getWidth()));
  return FloatAttr::get(element, -std::numeric_limits<double>::infinity());
}

LogicalResult ReduceMaxOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                         SmallVectorImpl<Value> &results) {
  auto type = cast<RankedTensorType>(resultTypes[0]);
  results.push_back(buildReduction(builder, getLoc(), operands, type, dimsOf(*this), lowest(type.getElementType()),
                                   theElement, maximum));
  return success();
}
