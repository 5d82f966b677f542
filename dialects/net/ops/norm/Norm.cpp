#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

static int64_t rankOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank();
}

/// The shape of statistics: `shape` with size 1 from dimension `first` on.
static SmallVector<int64_t> statisticsShape(ArrayRef<int64_t> shape, int64_t first) {
  SmallVector<int64_t> result(shape);
  std::fill(result.begin() + first, result.end(), 1);
  return result;
}

static LogicalResult checkNormalised(const Inference &at, int64_t first, double epsilon) {
  if (llvm::is_contained(at.shape(0).drop_front(first), 0))
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to reduce", {0});
  if (!(epsilon >= 0))
    return at.error("'epsilon' of '" + at.opName + "' is negative");
  if (epsilon > 1)
    return at.error("'epsilon' of '" + at.opName + "' is above 1", {}, Inference::smallEpsilon);
  return success();
}

/// The help where `given` has as many last dimensions of `shape` as both axes of LayerNorm could name.
static std::string axesFor(ArrayRef<int64_t> shape, ArrayRef<int64_t> given, StringRef name) {
  if (given.empty() || given.size() > shape.size() || shape.take_back(given.size()) != given)
    return "";
  const std::string axis = "-" + std::to_string(given.size());
  return "begin_norm_axis: " + axis + ", begin_params_axis: " + axis + " fit a '" + name.str() + "' of " + shapeText(given);
}

LogicalResult LayerNormOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> norm = resolveAxes(at, 0, op.getBeginNormAxis()); // C2
  FailureOr<SmallVector<int64_t>> params = failed(norm) ? norm : resolveAxes(at, 0, op.getBeginParamsAxis());
  if (failed(params))
    return failure();
  for (unsigned operand : {1, 2}) // C3
    if (ArrayRef<int64_t> wanted = at.shape(0).drop_front(params->front()); at.shape(operand) != wanted)
      return at.error("'" + at.opName + "' of " + at.text(0) + " takes a '" + at.inputNames[operand] + "' of " +
                          shapeText(wanted) + ", but " + at.text(operand) + " is given",
                      {operand}, at.shape(1) == at.shape(2) ? axesFor(at.shape(0), at.shape(operand), at.inputNames[operand]) : "");
  if (failed(checkNormalised(at, norm->front(), op.getEpsilon().convertToDouble()))) // C2, C4
    return failure();
  Type statistics = tensorOf(statisticsShape(at.shape(0), norm->front()), at.element(0));
  results.append({tensorOf(at.shape(0), at.element(0)), statistics, statistics});
  return success();
}

LogicalResult RmsNormOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float))) // C1
    return failure();
  int64_t first = at.rank(0) - at.rank(1);
  if (first < 0 || at.rank(1) == 0 || at.shape(0).drop_front(first) != at.shape(1)) // C2
    return at.error("'RmsNorm' of " + at.text(0) + " takes a 'gamma' of its last dimensions, but " + at.text(1) +
                        " is given",
                    {1});
  if (failed(checkNormalised(at, first, op.getEpsilon().convertToDouble()))) // C2, C3
    return failure();
  results.append({tensorOf(at.shape(0), at.element(0)), tensorOf(statisticsShape(at.shape(0), first), at.element(0))});
  return success();
}

//===-- gradients ---------------------------------------------------------===//

static int64_t firstNormalised(LayerNormOp op) {
  int64_t axis = op.getBeginNormAxis();
  return axis < 0 ? axis + rankOf(op.getInputX()) : axis;
}
static int64_t firstNormalised(RmsNormOp op) {
  return rankOf(op.getX()) - rankOf(op.getGamma());
}

template <typename Op> static SmallVector<int64_t> normalisedDims(Op op) {
  return llvm::to_vector(llvm::seq<int64_t>(firstNormalised(op), rankOf(op->getOperand(0))));
}

static Value mean(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> dims) {
  return builder.create<ReduceMeanOp>(loc, x, dims, /*keep_dims=*/true);
}

static Value inverseRoot(OpBuilder &builder, Location loc, Value square, double epsilon) {
  return builder.create<RsqrtOp>(
      loc, builder.create<AddOp>(loc, square, scalarLike(builder, loc, epsilon, square)));
}

/// What arrives at x through n = x * rstd, where rstd normalises n: rstd * (dn - n * mean(dn * n)).
static Value throughScale(OpBuilder &builder, Location loc, Value dn, Value n, Value rstd, ArrayRef<int64_t> dims) {
  Value share = builder.create<MulOp>(loc, n, mean(builder, loc, builder.create<MulOp>(loc, dn, n), dims));
  return builder.create<MulOp>(loc, rstd, builder.create<SubOp>(loc, dn, share));
}

/// Adds `term` to `sum`, which may be null.
static Value plus(OpBuilder &builder, Location loc, Value sum, Value term) {
  return sum ? builder.create<AddOp>(loc, sum, term).getResult() : term;
}

LogicalResult LayerNormOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                         MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  SmallVector<int64_t> dims = normalisedDims(*this);
  Value centred = builder.create<SubOp>(loc, getInputX(), getMean()), dx;
  if (dy[0]) {
    Value rstd = inverseRoot(builder, loc, getVariance(), getEpsilon().convertToDouble());
    Value normalised = builder.create<MulOp>(loc, centred, rstd);
    if (wanted[0]) {
      // The mean of what arrives at the centred values flows to the mean, and from there to all.
      Value scaledGradient = builder.create<MulOp>(loc, dy[0], getGamma());
      Value atCentred = throughScale(builder, loc, scaledGradient, normalised, rstd, dims);
      dx = builder.create<SubOp>(loc, atCentred, mean(builder, loc, atCentred, dims));
    }
    if (wanted[1])
      gradients[1] = sumTo(builder, loc, builder.create<MulOp>(loc, dy[0], normalised), getGamma().getType());
    if (wanted[2])
      gradients[2] = sumTo(builder, loc, dy[0], getBeta().getType());
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getInputX().getType()).getShape();
  double count = static_cast<double>(ShapedType::getNumElements(shape.drop_front(dims.front())));
  if (wanted[0] && dy[2]) {
    Value slope = builder.create<MulOp>(loc, centred, scaled(builder, loc, dy[2], 2 / count));
    dx = plus(builder, loc, dx, slope);
  }
  if (wanted[0] && dy[1]) {
    Value spread = builder.create<BroadcastToOp>(loc, scaled(builder, loc, dy[1], 1 / count), shape);
    dx = plus(builder, loc, dx, spread);
  }
  gradients[0] = dx;
  return success();
}

LogicalResult RmsNormOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                       MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  SmallVector<int64_t> dims = normalisedDims(*this);
  Value dx, normalised = builder.create<MulOp>(loc, getX(), getRstd());
  if (dy[0] && wanted[0]) {
    Value scaledGradient = builder.create<MulOp>(loc, dy[0], getGamma());
    dx = throughScale(builder, loc, scaledGradient, normalised, getRstd(), dims);
  }
  if (dy[0] && wanted[1])
    gradients[1] = sumTo(builder, loc, builder.create<MulOp>(loc, dy[0], normalised), getGamma().getType());
  if (dy[1] && wanted[0]) { // d rstd / d x = -rstd^3 x / n
    ArrayRef<int64_t> shape = cast<RankedTensorType>(getX().getType()).getShape();
    double count = static_cast<double>(ShapedType::getNumElements(shape.drop_front(dims.front())));
    Value cube = builder.create<MulOp>(loc, builder.create<SquareOp>(loc, getRstd()), getRstd());
    Value slope = scaled(builder, loc, builder.create<MulOp>(loc, dy[1], cube), -1 / count);
    dx = plus(builder, loc, dx, builder.create<MulOp>(loc, getX(), slope));
  }
  gradients[0] = dx;
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

/// Factors 0 to rank - 1 belong to the dimensions of the first operand; the statistics have those in front of `first`.
static ShardingRule normRule(Operation *op, int64_t first, int64_t firstOfParams, size_t statistics) {
  std::vector<int64_t> shape = shapeOf(op->getOperand(0));
  ShardingRule rule = ruleWithFactors(shape);
  std::vector<DimFactors> dims = identityDims(shape.size()), kept = dims;
  std::fill(kept.begin() + first, kept.end(), DimFactors());
  rule.operands.assign(op->getNumOperands(), std::vector<DimFactors>(dims.begin() + firstOfParams, dims.end()));
  rule.operands[0] = dims;
  rule.results.assign(1 + statistics, kept);
  rule.results[0] = dims;
  return rule;
}

ShardingRule LayerNormOp::shardingRule() {
  int64_t axis = getBeginParamsAxis();
  return normRule(*this, firstNormalised(*this), axis < 0 ? axis + rankOf(getInputX()) : axis, 2);
}
ShardingRule RmsNormOp::shardingRule() {
  return normRule(*this, firstNormalised(*this), firstNormalised(*this), 1);
}

static OperatorCost normCost(Operation *op, double perElement, ArrayRef<std::vector<int64_t>> operands,
                             ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = perElement * static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}
OperatorCost LayerNormOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return normCost(*this, 7, operands, results); // sum, subtract, square, sum, normalise, scale, shift
}
OperatorCost RmsNormOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return normCost(*this, 4, operands, results); // square, sum, normalise, scale
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind LayerNormOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> LayerNormOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  SmallVector<int64_t> dims = normalisedDims(*this);
  Value average = mean(builder, loc, operands[0], dims);
  Value centred = builder.create<SubOp>(loc, operands[0], average);
  Value variance = mean(builder, loc, builder.create<SquareOp>(loc, centred), dims);
  Value rstd = inverseRoot(builder, loc, variance, getEpsilon().convertToDouble());
  Value scaledByGamma = builder.create<MulOp>(loc, builder.create<MulOp>(loc, centred, rstd), operands[1]);
  return {builder.create<AddOp>(loc, scaledByGamma, operands[2]), average, variance};
}

LoweringKind RmsNormOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> RmsNormOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  Value square = mean(builder, loc, builder.create<SquareOp>(loc, operands[0]), normalisedDims(*this));
  Value rstd = inverseRoot(builder, loc, square, getEpsilon().convertToDouble());
  Value normalised = builder.create<MulOp>(loc, operands[0], rstd);
  return {builder.create<MulOp>(loc, normalised, operands[1]), rstd};
}
