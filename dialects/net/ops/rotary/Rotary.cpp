#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

using RotaryOp = RotaryPositionEmbeddingOp;

//===-- constraints and result type ---------------------------------------===//

/// Dimensions aligned at the right have the same size or 1, the last one the same.
static bool repeatsTo(ArrayRef<int64_t> shape, ArrayRef<int64_t> target) {
  if (shape.empty() || shape.size() > target.size() || shape.back() != target.back())
    return false;
  return llvm::all_of(llvm::zip(shape, target.take_back(shape.size())),
                      [](auto sizes) { return std::get<0>(sizes) == 1 || std::get<0>(sizes) == std::get<1>(sizes); });
}

LogicalResult RotaryOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float))) // C1
    return failure();
  if (at.rank(0) == 0 || at.shape(0).back() % 2 != 0) // C2
    return at.error("'RotaryPositionEmbedding' rotates pairs of the last dimension, but " + at.text(0) +
                        " has no even number of elements there",
                    {0});
  if (failed(at.checkSameShape(1, 2)) || failed(at.checkPlacesOf(0))) // C3
    return failure();
  if (!repeatsTo(at.shape(1), at.shape(0))) // C3
    return at.error("'RotaryPositionEmbedding' of " + at.text(0) + " takes angles that repeat to that, with " +
                        Twine(at.shape(0).back()) + " elements in the last dimension, but " + at.text(1) + " is given",
                    {1});
  if (int64_t mode = op.getMode(); mode != 0 && mode != 1) // C4
    return at.error("'mode' of 'RotaryPositionEmbedding' is 0 (halves) or 1 (neighbours), not " + Twine(mode));
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult RotaryOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                      MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}

//===-- rule, cost --------------------------------------------------------===//

ShardingRule RotaryOp::shardingRule() {
  ShardingRule rule = pointwiseRule(*this);
  rule.factors.back().kind = FactorKind::Exchanged;
  return rule;
}

OperatorCost RotaryOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = 3 * static_cast<double>(msc::elementCount(results[0])); // two products and their sum
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind RotaryOp::loweringKind() {
  return LoweringKind::Expanded;
}

/// Every element replaced by its partner in the pair.
static Value partners(OpBuilder &builder, Location loc, Value x, bool neighbours) {
  std::vector<int64_t> shape = shapeOf(x);
  int64_t half = shape.back() / 2;
  msc::CopyRegion first = wholeRegion(shape);
  first.ranges.back() = neighbours ? msc::CopyRange{1, 0, half, 2, 2} : msc::CopyRange{half, 0, half};
  msc::CopyRegions regions{first, msc::transposed(first)};
  return builder.create<CopyRegionsOp>(loc, x, shape, msc::flattened(regions), llvm::APFloat(0.0));
}

/// -1 at the first element of every pair, 1 at the second; of `size` elements.
static Value signs(OpBuilder &builder, RotaryOp op, Value like, int64_t size) {
  Location loc = op.getLoc();
  Value place = builder.create<RangeOp>(loc, 0, size, 1), isFirst;
  if (op.getMode() == 0) {
    isFirst = builder.create<LessOp>(loc, place, scalarLike(builder, loc, static_cast<double>(size / 2), place));
  } else {
    Value inPair = builder.create<FloorModOp>(loc, place, scalarLike(builder, loc, 2, place));
    isFirst = builder.create<EqualOp>(loc, inPair, scalarLike(builder, loc, 0, place));
  }
  setResultFactors(isFirst.getDefiningOp(), {static_cast<int64_t>(shapeOf(op.getX()).size()) - 1});
  return builder.create<SelectOp>(loc, isFirst, scalarLike(builder, loc, -1, like), scalarLike(builder, loc, 1, like));
}

SmallVector<Value> RotaryOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  Value x = operands[0];
  Value turned = builder.create<MulOp>(loc, operands[2], signs(builder, *this, x, shapeOf(x).back()));
  Value kept = builder.create<MulOp>(loc, x, operands[1]);
  Value other = builder.create<MulOp>(loc, partners(builder, loc, x, getMode() == 1), turned);
  return {builder.create<AddOp>(loc, kept, other)};
}
