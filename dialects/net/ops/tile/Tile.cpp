#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

LogicalResult TileOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  SmallVector<int64_t> shape(op.getMultiples());
  int64_t added = static_cast<int64_t>(shape.size()) - at.rank(0);
  if (added < 0) // C1
    return at.error("'multiples' of 'Tile' has " + Twine(shape.size()) + " entries, but " + at.text(0) + " has " +
                        Twine(at.rank(0)) + " dimensions",
                    {0});
  constexpr int64_t most = 16384;
  int64_t copies = 1; // of what is not broadcast
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size < 1) // C2
      return at.error("'multiples' of 'Tile' has the number " + Twine(size) + " for dimension " + Twine(dim));
    if (static_cast<int64_t>(dim) < added)
      continue;
    const int64_t own = at.shape(0)[dim - added];
    if (own != 1)
      copies = size > most / copies ? most + 1 : copies * size;
    if (copies > most) // C3
      return at.error("'Tile' puts more than " + Twine(most) + " copies of " + at.text(0) + " side by side", {0},
                      "repeat dimensions of size 1, of which there may be any number: Reshape " + at.name(0) + " in front, and back behind");
    size *= own;
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

//===-- the way: broadcast dimensions of size 1, then copy the others -----===//

static ArrayRef<int64_t> typeShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The operand's shape with new dimensions in front.
static SmallVector<int64_t> alignedShape(TileOp op) {
  SmallVector<int64_t> shape(op.getMultiples().size() - typeShape(op.getInputX()).size(), 1);
  llvm::append_range(shape, typeShape(op.getInputX()));
  return shape;
}

/// That shape with its dimensions of size 1 repeated.
static SmallVector<int64_t> broadcastShape(TileOp op) {
  SmallVector<int64_t> shape = alignedShape(op);
  for (auto [size, times] : llvm::zip(shape, op.getMultiples()))
    size = size == 1 ? times : size;
  return shape;
}

/// From the broadcast shape to the output.
static RegionCopy copyOf(TileOp op) {
  std::vector<std::vector<msc::CopyRange>> ranges;
  SmallVector<int64_t> from = broadcastShape(op);
  for (auto [size, whole] : llvm::zip(from, typeShape(op.getOutput()))) {
    auto &list = ranges.emplace_back();
    for (int64_t at = 0; at < whole; at += size)
      list.push_back({0, at, size});
  }
  return {{{from.begin(), from.end()}}, {typeShape(op.getOutput()).vec()}, {allRegions(ranges)}};
}

//===-- gradient, rule, cost, lowering ------------------------------------===//

msc::CopyRegions TileOp::copyRegions(unsigned) {
  return copyOf(*this).regions[0];
}

LogicalResult TileOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  constexpr int64_t manyCopies = 64; // the gradient of copied regions takes time that grows with the square of their number
  const SmallVector<int64_t> broadcast = broadcastShape(*this);
  SmallVector<int64_t> parted, ofCopies; // of every dimension that has copies those, then its elements
  int64_t copies = 1;
  for (auto [size, whole] : llvm::zip(broadcast, typeShape(getOutput()))) {
    if (whole != size) {
      ofCopies.push_back(static_cast<int64_t>(parted.size()));
      parted.push_back(whole / size);
      copies *= whole / size;
    }
    parted.push_back(size);
  }
  if (copies > manyCopies) {
    Value sum = builder.create<ReduceSumOp>(getLoc(), reshaped(builder, getLoc(), dy[0], parted), ofCopies, /*keep_dims=*/false);
    gradients[0] = sumTo(builder, getLoc(), sum, getInputX().getType());
    return success();
  }
  const bool repeats = llvm::ArrayRef(broadcast) != typeShape(getOutput());
  Value gradient = repeats ? gradientOfRegions(builder, getLoc(), copyOf(*this), dy, 0) : dy[0];
  gradients[0] = sumTo(builder, getLoc(), gradient, getInputX().getType());
  return success();
}

ShardingRule TileOp::shardingRule() {
  ShardingRule rule = regionsRule(copyOf(*this));
  SmallVector<int64_t> own = alignedShape(*this), wide = broadcastShape(*this);
  for (size_t dim = 0; dim < own.size(); ++dim)
    if (own[dim] != wide[dim])
      rule.operands[0][dim].clear(); // broadcast
  rule.operands[0].erase(rule.operands[0].begin(),
                         rule.operands[0].begin() + (own.size() - typeShape(getInputX()).size()));
  return rule;
}

OperatorCost TileOp::cost(ArrayRef<std::vector<int64_t>>, ArrayRef<std::vector<int64_t>> results) {
  return copyCost(*this, results);
}

LoweringKind TileOp::loweringKind() {
  bool copiesOnly = llvm::ArrayRef(broadcastShape(*this)) == typeShape(getInputX());
  return copiesOnly ? LoweringKind::Regions : LoweringKind::Expanded;
}

SmallVector<Value> TileOp::expand(OpBuilder &builder, ValueRange operands) {
  RegionCopy copy = copyOf(*this);
  Value wide = builder.create<BroadcastToOp>(getLoc(), operands[0], copy.operands[0]);
  if (copy.operands[0] == copy.results[0])
    return {wide};
  return {builder.create<CopyRegionsOp>(getLoc(), ValueRange(wide), copy.results[0], msc::flattened(copy.regions[0]),
                                        llvm::APFloat(0.0))};
}
