#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t normalised(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

/// The shape of one element per row.
static SmallVector<int64_t> rowShape(ArrayRef<int64_t> shape, int64_t dim, bool keepDims) {
  SmallVector<int64_t> rows(shape);
  if (keepDims)
    rows[dim] = 1;
  else
    rows.erase(rows.begin() + dim);
  return rows;
}

static FailureOr<SmallVector<int64_t>> checkedRows(const Inference &at, int64_t axis, bool keepDims) {
  if (failed(at.checkElement(0, ElementSet::Number))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, axis); // C2
  if (failed(dims))
    return failure();
  if (int64_t size = at.shape(0)[dims->front()]; size == 0) {
    (void)at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to reduce", {0});
    return failure();
  } else if (failed(at.checkPlaces(0, size)))
    return failure();
  return rowShape(at.shape(0), dims->front(), keepDims);
}

template <typename Adaptor>
static LogicalResult inferWithValue(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> rows = checkedRows(at, op.getAxis(), op.getKeepDims());
  if (failed(rows))
    return failure();
  results.append({tensorOf(*rows, IntegerType::get(at.context, 32)), tensorOf(*rows, at.element(0))});
  return success();
}

template <typename Adaptor>
static LogicalResult inferIndex(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> rows = checkedRows(at, op.getAxis(), false);
  if (failed(rows))
    return failure();
  Type type = op.getOutputType().value_or(IntegerType::get(at.context, 32));
  if (!type.isInteger(32) && !type.isInteger(64)) // C3
    return at.error("'output_type' of '" + at.opName + "' is i32 or i64, not " + elementText(type));
  results.push_back(tensorOf(*rows, type));
  return success();
}

LogicalResult ArgMaxWithValueOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferWithValue(at, op, results);
}
LogicalResult ArgMinWithValueOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferWithValue(at, op, results);
}
LogicalResult ArgmaxOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferIndex(at, op, results);
}
LogicalResult ArgminOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferIndex(at, op, results);
}

//===-- building blocks ---------------------------------------------------===//

template <typename Op> static int64_t dimensionOf(Op op) {
  return normalised(op.getAxis(), typeOf(op.getX()).getRank());
}
int64_t ArgMaxWithValueOp::dimension() {
  return dimensionOf(*this);
}
int64_t ArgMinWithValueOp::dimension() {
  return dimensionOf(*this);
}
int64_t ArgmaxOp::dimension() {
  return dimensionOf(*this);
}
int64_t ArgminOp::dimension() {
  return dimensionOf(*this);
}

/// 0, 1, ... along `dim`, to be repeated along the others.
static Value placesAlong(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, int64_t dim) {
  SmallVector<int64_t> along(shape.size() - dim, 1);
  along.front() = shape[dim];
  return reshaped(builder, loc, builder.create<RangeOp>(loc, 0, shape[dim], 1), along);
}

namespace {
struct Extremum {
  Value index, value; ///< of each row, the searched dimension kept with size 1
};
} // namespace

static Extremum extremumOf(OpBuilder &builder, Location loc, Value x, int64_t dim, bool largest) {
  ArrayRef<int64_t> shape = typeOf(x).getShape();
  Value value = largest ? builder.create<ReduceMaxOp>(loc, x, dim, /*keep_dims=*/true).getResult()
                        : builder.create<ReduceMinOp>(loc, x, dim, /*keep_dims=*/true);
  Value wins = builder.create<EqualOp>(loc, x, value);
  if (isa<FloatType>(typeOf(x).getElementType())) // where one is NaN, the extremum is, and equals none
    wins = builder.create<LogicalOrOp>(loc, wins, builder.create<IsNanOp>(loc, x));
  Value places = placesAlong(builder, loc, shape, dim);
  Value nowhere = scalarLike(builder, loc, static_cast<double>(shape[dim]), places);
  Value candidates = builder.create<SelectOp>(loc, wins, places, nowhere);
  return {builder.create<ReduceMinOp>(loc, candidates, dim, /*keep_dims=*/true), value};
}

//===-- gradients ---------------------------------------------------------===//

/// dy at the elements that were chosen, 0 elsewhere.
template <typename Op> static Value toChosen(OpBuilder &builder, Op op, Value dy) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> shape = typeOf(op.getX()).getShape();
  SmallVector<int64_t> kept = rowShape(shape, op.dimension(), true);
  Value places = placesAlong(builder, loc, shape, op.dimension());
  auto chosen = builder.create<SelectEqualOp>(loc, reshaped(builder, loc, op.getIndex(), kept), places, reshaped(builder, loc, dy, kept),
                                              scalarLike(builder, loc, 0, dy));
  setResultFactors(chosen, llvm::to_vector(llvm::seq<int64_t>(0, shape.size())));
  return chosen;
}

LogicalResult ArgMaxWithValueOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                               MutableArrayRef<Value> gradients) {
  gradients[0] = toChosen(builder, *this, dy[1]);
  return success();
}
LogicalResult ArgMinWithValueOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                               MutableArrayRef<Value> gradients) {
  gradients[0] = toChosen(builder, *this, dy[1]);
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

/// One factor per dimension; the searched one is completed on the way.
static ShardingRule extremumRule(Operation *op, int64_t dim, bool keepDims) {
  std::vector<int64_t> shape = shapeOf(op->getOperand(0));
  ShardingRule rule = ruleWithFactors(shape);
  std::vector<DimFactors> dims = identityDims(shape.size()), rows = dims;
  rule.operands = {dims};
  if (keepDims)
    rows[dim] = {};
  else
    rows.erase(rows.begin() + dim);
  rule.results.assign(op->getNumResults(), rows);
  return rule;
}

ShardingRule ArgMaxWithValueOp::shardingRule() {
  return extremumRule(*this, dimension(), getKeepDims());
}
ShardingRule ArgMinWithValueOp::shardingRule() {
  return extremumRule(*this, dimension(), getKeepDims());
}
ShardingRule ArgmaxOp::shardingRule() {
  return extremumRule(*this, dimension(), false);
}
ShardingRule ArgminOp::shardingRule() {
  return extremumRule(*this, dimension(), false);
}

/// Compare, compare with the extremum, choose, compare indices.
static OperatorCost searchCost(Operation *op, ArrayRef<std::vector<int64_t>> operands,
                               ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = 4 * static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}
OperatorCost ArgMaxWithValueOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}
OperatorCost ArgMinWithValueOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}
OperatorCost ArgmaxOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}
OperatorCost ArgminOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

template <typename Op>
static SmallVector<Value> expandWithValue(OpBuilder &builder, Op op, Value x, bool largest) {
  Extremum found = extremumOf(builder, op.getLoc(), x, op.dimension(), largest);
  ArrayRef<int64_t> rows = typeOf(op.getValues()).getShape();
  return {reshaped(builder, op.getLoc(), found.index, rows), reshaped(builder, op.getLoc(), found.value, rows)};
}

template <typename Op> static SmallVector<Value> expandIndex(OpBuilder &builder, Op op, Value x, bool largest) {
  Value index = extremumOf(builder, op.getLoc(), x, op.dimension(), largest).index;
  index = reshaped(builder, op.getLoc(), index, typeOf(op.getOutput()).getShape());
  if (Type type = typeOf(op.getOutput()).getElementType(); type.isInteger(64))
    index = builder.create<CastOp>(op.getLoc(), index, type);
  return {index};
}

LoweringKind ArgMaxWithValueOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ArgMaxWithValueOp::expand(OpBuilder &builder, ValueRange operands) {
  return expandWithValue(builder, *this, operands[0], true);
}
LoweringKind ArgMinWithValueOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ArgMinWithValueOp::expand(OpBuilder &builder, ValueRange operands) {
  return expandWithValue(builder, *this, operands[0], false);
}
LoweringKind ArgmaxOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ArgmaxOp::expand(OpBuilder &builder, ValueRange operands) {
  return expandIndex(builder, *this, operands[0], true);
}
LoweringKind ArgminOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ArgminOp::expand(OpBuilder &builder, ValueRange operands) {
  return expandIndex(builder, *this, operands[0], false);
}
