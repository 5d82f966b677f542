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

LogicalResult ReduceMinOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Number, true, op.getAxis(), op.getKeepDims(), results);
}
LogicalResult ReduceProdOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Number, false, op.getAxis(), op.getKeepDims(), results);
}
LogicalResult ReduceAllOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Bool, false, op.getAxis(), op.getKeepDims(), results);
}
LogicalResult ReduceAnyOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferReduce(at, ElementSet::Bool, false, op.getAxis(), op.getKeepDims(), results);
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

/// dy, in equal shares, where x is the extremum.
template <typename Op> static Value sharedByWinners(OpBuilder &builder, Op op, Value dy) {
  Location loc = op.getLoc();
  Type element = cast<RankedTensorType>(op.getX().getType()).getElementType();
  Value wins = builder.create<EqualOp>(loc, op.getX(), keptDims(builder, op, op.getOutput()));
  Value mask = builder.create<CastOp>(loc, wins, element);
  Value winners = builder.create<ReduceSumOp>(loc, mask, dimsOf(op), op.getKeepDims());
  Value share = keptDims(builder, op, builder.create<RealDivOp>(loc, dy, winners));
  return builder.create<MulOp>(loc, mask, share);
}

LogicalResult ReduceMaxOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> gradients) {
  gradients[0] = sharedByWinners(builder, *this, dy[0]);
  return success();
}

LogicalResult ReduceMinOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> gradients) {
  gradients[0] = sharedByWinners(builder, *this, dy[0]);
  return success();
}

LogicalResult ReduceProdOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                          MutableArrayRef<Value> gradients) {
  // The product of the others: output / x without zeros; with one zero it is not 0 only there; with two it is 0.
  Location loc = getLoc();
  Value zero = scalarLike(builder, loc, 0, getX()), one = scalarLike(builder, loc, 1, getX());
  Value isZero = builder.create<EqualOp>(loc, getX(), zero);
  Value mask = builder.create<CastOp>(loc, isZero, cast<RankedTensorType>(getX().getType()).getElementType());
  Value zeros = builder.create<ReduceSumOp>(loc, mask, dimsOf(*this), /*keep_dims=*/true);
  Value filled = builder.create<SelectOp>(loc, isZero, one, getX());
  Value rest = builder.create<ReduceProdOp>(loc, filled, dimsOf(*this), /*keep_dims=*/true);
  Value among = builder.create<SelectEqualOp>(loc, zeros, zero, rest, zero);
  Value only = builder.create<SelectEqualOp>(loc, zeros, one, rest, zero);
  Value others = builder.create<SelectOp>(loc, isZero, only, builder.create<RealDivOp>(loc, among, filled));
  gradients[0] = builder.create<MulOp>(loc, others, keptDims(builder, *this, dy[0]));
  return success();
}

LogicalResult ReduceAllOp::buildGradient(OpBuilder &, ValueRange, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value>) {
  return success();
}
LogicalResult ReduceAnyOp::buildGradient(OpBuilder &, ValueRange, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value>) {
  return success();
}

//===-- rules -------------------------------------------------------------===//

/// Without `reduce` the reduced dimensions are completed on the way.
template <typename Op> static ShardingRule reduceRule(Op op, std::optional<msc::ReduceKind> reduce) {
  std::vector<int64_t> shape = shapeOf(op.getX());
  ShardingRule rule = ruleWithFactors(shape);
  SmallVector<int64_t> dims = dimsOf(op);
  for (int64_t dim : dims)
    if (reduce) {
      rule.factors[dim].kind = FactorKind::Reduction;
      rule.factors[dim].reduce = *reduce;
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
ShardingRule ReduceMinOp::shardingRule() {
  return reduceRule(*this, msc::ReduceKind::Min);
}
ShardingRule ReduceProdOp::shardingRule() {
  return reduceRule(*this, msc::ReduceKind::Prod);
}
ShardingRule ReduceAllOp::shardingRule() {
  return reduceRule(*this, std::nullopt);
}
ShardingRule ReduceAnyOp::shardingRule() {
  return reduceRule(*this, std::nullopt);
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
OperatorCost ReduceMinOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return reduceCost(*this, operands, results);
}
OperatorCost ReduceProdOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return reduceCost(*this, operands, results);
}
OperatorCost ReduceAllOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return reduceCost(*this, operands, results);
}
OperatorCost ReduceAnyOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
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

/// -inf or inf; the smallest or largest integer.
static TypedAttr extremeOf(Type element, bool largest) {
  if (auto integer = dyn_cast<IntegerType>(element)) {
    unsigned width = integer.getWidth();
    return IntegerAttr::get(element, largest ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
  }
  double infinity = std::numeric_limits<double>::infinity();
  return FloatAttr::get(element, largest ? infinity : -infinity);
}

LogicalResult ReduceMaxOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                         SmallVectorImpl<Value> &results) {
  auto type = cast<RankedTensorType>(resultTypes[0]);
  results.push_back(buildReduction(builder, getLoc(), operands, type, dimsOf(*this),
                                   extremeOf(type.getElementType(), /*largest=*/false), theElement, maximum));
  return success();
}

LogicalResult ReduceMinOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                         SmallVectorImpl<Value> &results) {
  auto type = cast<RankedTensorType>(resultTypes[0]);
  results.push_back(buildReduction(builder, getLoc(), operands, type, dimsOf(*this),
                                   extremeOf(type.getElementType(), /*largest=*/true), theElement, minimum));
  return success();
}

LogicalResult ReduceProdOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                          SmallVectorImpl<Value> &results) {
  auto type = cast<RankedTensorType>(resultTypes[0]);
  results.push_back(buildReduction(builder, getLoc(), operands, type, dimsOf(*this),
                                   numberAttr(type.getElementType(), 1), theElement, mul));
  return success();
}

/// The number of elements that are true, or of those that are not, compared with 0.
template <typename Op> static Value countIs(OpBuilder &builder, Op op, Value x, bool isZero) {
  Location loc = op.getLoc();
  Value ones = builder.create<CastOp>(loc, x, builder.getI32Type());
  Value count = builder.create<ReduceSumOp>(loc, ones, dimsOf(op), op.getKeepDims());
  Value zero = scalarLike(builder, loc, 0, count);
  return isZero ? builder.create<EqualOp>(loc, count, zero).getResult() : builder.create<GreaterOp>(loc, count, zero);
}

LoweringKind ReduceAllOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ReduceAllOp::expand(OpBuilder &builder, ValueRange operands) {
  return {countIs(builder, *this, builder.create<LogicalNotOp>(getLoc(), operands[0]), /*isZero=*/true)};
}
LoweringKind ReduceAnyOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ReduceAnyOp::expand(OpBuilder &builder, ValueRange operands) {
  return {countIs(builder, *this, operands[0], /*isZero=*/false)};
}
