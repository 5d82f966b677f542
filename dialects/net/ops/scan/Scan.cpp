#include "dialects/net/NetOps.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t normalised(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

//===-- constraints and result types --------------------------------------===//

static LogicalResult inferSums(const Inference &at, int64_t axis, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Number)) || // C1
      failed(resolveAxes(at, 0, axis)) ||               // C2
      failed(at.checkPlacesOf(0)))
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

static LogicalResult checkPieces(const Inference &at, int64_t pieces) {
  if (pieces >= 1)
    return success();
  return at.error("'pieces' of '" + at.opName + "' is " + Twine(pieces) + ", but there is at least 1");
}

LogicalResult CumSumOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferSums(at, op.getAxis(), results);
}
LogicalResult CumSumPiecesOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkPieces(at, op.getPieces()))) // C3
    return failure();
  return inferSums(at, op.getAxis(), results);
}

/// `count` elements of the last dimension, with their places, out of at least `k`.
static LogicalResult inferChosen(const Inference &at, int64_t k, int64_t count, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Number))) // C1
    return failure();
  if (at.rank(0) == 0) // C2
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no dimension to search", {0});
  if (failed(at.checkPlacesOf(0)))
    return failure();
  if (k < 0 || k > at.shape(0).back()) // C3
    return at.error("'k' of '" + at.opName + "' is " + Twine(k) + ", but the last dimension of " + at.text(0) + " has " +
                        Twine(at.shape(0).back()) + (at.shape(0).back() == 1 ? " element" : " elements"),
                    {0}, "'k' lies in [0, " + Twine(at.shape(0).back()) + "]");
  SmallVector<int64_t> shape(at.shape(0));
  shape.back() = count;
  results.append({tensorOf(shape, at.element(0)), tensorOf(shape, IntegerType::get(at.context, 32))});
  return success();
}

LogicalResult TopKOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferChosen(at, op.getK(), op.getK(), results);
}
LogicalResult TopKPiecesOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkPieces(at, op.getPieces()))) // C4
    return failure();
  return inferChosen(at, op.getK(), op.getK() * op.getPieces(), results);
}
LogicalResult TopKMergeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameShape(0, 1))) // C1
    return failure();
  if (!at.element(1).isInteger(32)) // C1
    return at.error("'places' of 'TopKMerge' are i32, but " + at.name(1) + " is " + elementText(at.element(1)), {1});
  return inferChosen(at, op.getK(), op.getK(), results);
}

//===-- gradients ---------------------------------------------------------===//

LogicalResult CumSumOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                      MutableArrayRef<Value> gradients) {
  // Every element is a term of its own sum and of those behind it.
  gradients[0] = builder.create<CumSumOp>(getLoc(), dy[0], getAxis(), getExclusive(), !getReverse());
  return success();
}

LogicalResult TopKOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  if (dy[0])
    gradients[0] = builder.create<GatherDGradOp>(getLoc(), getIndices(), dy[0], typeOf(getInputX()).getRank() - 1,
                                                 typeOf(getInputX()).getShape().back());
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

ShardingRule CumSumOp::shardingRule() {
  return pointwiseRule(*this);
}

/// In one piece, the axis is whole on every rank; else it is cut into its pieces.
ShardingRule CumSumPiecesOp::shardingRule() {
  ShardingRule rule = pointwiseRule(*this);
  if (getPieces() > 1)
    return rule;
  Factor &along = rule.factors[normalised(getAxis(), rule.factors.size())];
  along.kind = FactorKind::Replicated;
  along.reason = "every sum takes all elements in front of it";
  return rule;
}

/// The dimensions of `searched`, and one more factor for what is chosen from the last one.
static ShardingRule chosenRule(Value searched, int64_t k) {
  std::vector<int64_t> shape = shapeOf(searched);
  ShardingRule rule = ruleWithFactors(shape);
  std::vector<DimFactors> dims = identityDims(shape.size()), chosen = dims;
  chosen.back() = {rule.add({.name = factorName(shape.size()),
                             .size = k,
                             .kind = FactorKind::Replicated,
                             .reason = "every rank finds all that are chosen"})};
  rule.operands = {dims};
  rule.results = {chosen, chosen};
  return rule;
}

ShardingRule TopKOp::shardingRule() {
  return chosenRule(getInputX(), getK());
}

/// The same with a last dimension that is whole on every rank.
static ShardingRule chosenFromAllRule(Value searched, int64_t k) {
  ShardingRule rule = chosenRule(searched, k);
  Factor &last = rule.factors[rule.factors.size() - 2];
  last.kind = FactorKind::Replicated;
  last.reason = "the largest are chosen from all elements";
  return rule;
}

ShardingRule TopKPiecesOp::shardingRule() {
  if (getPieces() == 1)
    return chosenFromAllRule(getInputX(), getK());
  std::vector<int64_t> shape = shapeOf(getInputX());
  ShardingRule rule = ruleWithFactors(shape);
  Factor &last = rule.factors.back();
  last.size = std::min(shape.back(), typeOf(getValues()).getShape().back());
  last.kind = FactorKind::Exchanged;
  rule.operands = {identityDims(shape.size())};
  rule.results = {rule.operands[0], rule.operands[0]};
  return rule;
}

ShardingRule TopKMergeOp::shardingRule() {
  ShardingRule rule = chosenFromAllRule(getCandidates(), getK());
  rule.operands.push_back(rule.operands[0]);
  return rule;
}

/// Compare, and sort what is chosen.
static OperatorCost searchCost(Operation *op, ArrayRef<std::vector<int64_t>> operands,
                               ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = 8 * static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}
OperatorCost TopKOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}
OperatorCost TopKPiecesOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}
OperatorCost TopKMergeOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return searchCost(*this, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind CumSumPiecesOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind TopKPiecesOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind TopKMergeOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind CumSumOp::loweringKind() {
  return LoweringKind::Expanded;
}
LoweringKind TopKOp::loweringKind() {
  return LoweringKind::Expanded;
}

namespace {
/// Running sums of a dimension of n elements in pieces.
struct PieceSums {
  OpBuilder &builder;
  CumSumOp op;
  int64_t axis, size, pieces;

  PieceSums(OpBuilder &builder, CumSumOp op)
      : builder(builder), op(op), axis(normalised(op.getAxis(), typeOf(op.getInput()).getRank())),
        size(typeOf(op.getInput()).getDimSize(axis)), pieces(piecesOfFactor(op, axis)) {}

  Value run(Value x, int64_t count, bool exclusive) {
    return builder.create<CumSumPiecesOp>(op.getLoc(), x, axis, count, exclusive, op.getReverse());
  }

  /// Of each piece the element where its sums end; 0 for pieces without elements.
  Value ends(Value x) {
    std::vector<int64_t> shape = shapeOf(x);
    msc::CopyRegions regions;
    for (int64_t p = 0; p < pieces; ++p) {
      msc::Range piece = msc::pieceOf(size, p, pieces);
      if (piece.size() == 0)
        continue;
      msc::CopyRegion &region = regions.emplace_back(wholeRegion(shape));
      region.ranges[axis] = {op.getReverse() ? piece.begin : piece.end - 1, p, 1};
    }
    shape[axis] = pieces;
    return builder.create<CopyRegionsOp>(op.getLoc(), x, shape, msc::flattened(regions), llvm::APFloat(0.0));
  }

  /// One number per piece for each of its elements. Element j is in piece floor((j * pieces + pieces - 1) / n).
  Value spread(Value x) {
    Location loc = op.getLoc();
    Value place = builder.create<CastOp>(loc, builder.create<RangeOp>(loc, 0, size, 1), builder.getI64Type());
    auto number = [&](int64_t value) { return scalarLike(builder, loc, static_cast<double>(value), place); };
    Value finer = builder.create<MulOp>(loc, place, number(pieces));
    Value piece = builder.create<FloorDivOp>(loc, builder.create<AddOp>(loc, finer, number(pieces - 1)), number(size));
    auto spread = builder.create<GatherOp>(loc, x, piece, axis);
    setResultFactors(spread, llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()))); // cut as the input is
    return spread;
  }
};
} // namespace

/// The sums of every piece, plus what the pieces in front of it sum to.
SmallVector<Value> CumSumOp::expand(OpBuilder &builder, ValueRange operands) {
  PieceSums sums(builder, *this);
  Value own = sums.run(operands[0], sums.pieces, getExclusive());
  if (sums.pieces == 1)
    return {own};
  Value totals = sums.ends(own);
  if (getExclusive())
    totals = builder.create<AddOp>(getLoc(), totals, sums.ends(operands[0]));
  return {builder.create<AddOp>(getLoc(), own, sums.spread(sums.run(totals, 1, /*exclusive=*/true)))};
}

/// The largest of every piece, and the largest of those.
SmallVector<Value> TopKOp::expand(OpBuilder &builder, ValueRange operands) {
  int64_t pieces = piecesOfFactor(*this, typeOf(operands[0]).getRank() - 1), k = getK();
  auto best = builder.create<TopKPiecesOp>(getLoc(), operands[0], k, pieces);
  if (pieces == 1 && getSorted())
    return {best.getValues(), best.getIndices()};
  auto merged = builder.create<TopKMergeOp>(getLoc(), best.getValues(), best.getIndices(), k, getSorted());
  return {merged.getValues(), merged.getIndices()};
}
