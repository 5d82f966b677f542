#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

LogicalResult GroupNormOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float))) // C1
    return failure();
  if (at.rank(0) < 2) // C2
    return at.error("'GroupNorm' of " + at.text(0) + " has no dimension of channels: it takes at least 2 dimensions", {0});
  for (unsigned operand : {1, 2}) // C2
    if (at.shape(operand) != at.shape(0).slice(1, 1))
      return at.error("'GroupNorm' of " + at.text(0) + " takes a '" + at.inputNames[operand] + "' of " +
                          shapeText(at.shape(0).slice(1, 1)) + ", but " + at.text(operand) + " is given",
                      {operand});
  if (llvm::is_contained(at.shape(0).drop_front(1), 0)) // C2
    return at.error("'GroupNorm' of " + at.text(0) + " has no elements to reduce", {0});
  int64_t groups = op.getNumGroups(), channels = at.shape(0)[1];
  if (groups < 1 || channels % groups != 0) // C3
    return at.error("'num_groups' of 'GroupNorm' is " + Twine(groups) + ", which does not divide the " + Twine(channels) +
                        " channels of " + at.name(0),
                    {0});
  if (!(op.getEps().convertToDouble() >= 0)) // C4
    return at.error("'eps' of 'GroupNorm' is negative");
  if (op.getEps().convertToDouble() > 1) // C4
    return at.error("'eps' of 'GroupNorm' is above 1", {}, Inference::smallEpsilon);
  Type statistics = tensorOf({at.shape(0)[0], groups}, at.element(0));
  results.append({tensorOf(at.shape(0), at.element(0)), statistics, statistics});
  return success();
}

//===-- building blocks ---------------------------------------------------===//

namespace {

/// Between elements, channels (N, C) and groups (N, G). What moves between ranks where groups are cut has one number per
/// channel.
struct Groups {
  OpBuilder &builder;
  Location loc;
  SmallVector<int64_t> shape, behind;     ///< of the input; its dimensions behind the channels
  int64_t samples, channels, groups, each; ///< each: channels of a group
  double count;                           ///< elements of a group

  Groups(OpBuilder &builder, GroupNormOp op, Value input)
      : builder(builder), loc(op.getLoc()), shape(cast<RankedTensorType>(input.getType()).getShape()),
        behind(llvm::to_vector(llvm::seq<int64_t>(2, shape.size()))), samples(shape[0]), channels(shape[1]), groups(op.getNumGroups()),
        each(channels / groups), count(static_cast<double>(each * ShapedType::getNumElements(ArrayRef(shape).drop_front(2)))) {}

  Value mul(Value x, Value y) { return builder.create<MulOp>(loc, x, y); }
  Value add(Value x, Value y) { return builder.create<AddOp>(loc, x, y); }
  Value sub(Value x, Value y) { return builder.create<SubOp>(loc, x, y); }

  /// The mean of every group.
  Value mean(Value x) {
    Value ofChannels = behind.empty() ? x : builder.create<ReduceSumOp>(loc, x, behind, /*keep_dims=*/false).getResult();
    Value parted = builder.create<ReshapeOp>(loc, ofChannels, ArrayRef<int64_t>{samples, groups, each});
    Value sum = builder.create<ReduceSumOp>(loc, parted, 2, /*keep_dims=*/false);
    return scaled(builder, loc, sum, 1 / count);
  }
  /// One number per group for each of its channels: (N, C, 1, 1).
  Value spread(Value x) {
    Value parted = builder.create<ReshapeOp>(loc, x, ArrayRef<int64_t>{samples, groups, 1});
    Value repeated = builder.create<BroadcastToOp>(loc, parted, ArrayRef<int64_t>{samples, groups, each});
    SmallVector<int64_t> wide(shape.size(), 1), factors(shape.size(), -1);
    wide[0] = samples, wide[1] = channels;
    factors[0] = 0, factors[1] = 1; // cut as the input is
    Value result = builder.create<ReshapeOp>(loc, repeated, wide);
    setResultFactors(result.getDefiningOp(), factors);
    return result;
  }
  /// One number per channel: (1, C, 1, 1).
  Value ofChannels(Value x) {
    SmallVector<int64_t> wide(shape.size(), 1);
    wide[1] = channels;
    return reshaped(builder, loc, x, wide);
  }
  /// Sums over everything but the channels.
  Value toChannels(Value x) {
    SmallVector<int64_t> dims{0};
    llvm::append_range(dims, behind);
    return builder.create<ReduceSumOp>(loc, x, dims, /*keep_dims=*/false);
  }
};

} // namespace

//===-- gradient ----------------------------------------------------------===//

LogicalResult GroupNormOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                         MutableArrayRef<Value> gradients) {
  Groups g(builder, *this, getInput());
  Value centred = g.sub(getInput(), g.spread(getMean())), dx;
  auto arrives = [&](Value term) { dx = dx ? g.add(dx, term) : term; };
  if (dy[0]) {
    Value rstd = g.spread(getRstd()), normalised = g.mul(centred, rstd);
    if (wanted[0]) { // what arrives at mean and variance spreads over the group
      Value dn = g.mul(dy[0], g.ofChannels(getWeight()));
      Value share = g.mul(normalised, g.spread(g.mean(g.mul(dn, normalised))));
      arrives(g.mul(rstd, g.sub(g.sub(dn, g.spread(g.mean(dn))), share)));
    }
    if (wanted[1])
      gradients[1] = g.toChannels(g.mul(dy[0], normalised));
    if (wanted[2])
      gradients[2] = g.toChannels(dy[0]);
  }
  if (dy[1] && wanted[0]) {
    Value share = g.spread(scaled(builder, getLoc(), dy[1], 1 / g.count));
    arrives(builder.create<BroadcastToOp>(getLoc(), share, g.shape));
  }
  if (dy[2] && wanted[0]) { // d rstd / d x = -rstd^3 * centred / count
    Value cube = g.mul(builder.create<SquareOp>(getLoc(), getRstd()), getRstd());
    arrives(g.mul(centred, g.spread(scaled(builder, getLoc(), g.mul(dy[2], cube), -1 / g.count))));
  }
  gradients[0] = dx;
  return success();
}

//===-- rule, cost --------------------------------------------------------===//

ShardingRule GroupNormOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getInput());
  ShardingRule rule = ruleWithFactors(shape);
  int32_t groups = rule.add({.name = factorName(static_cast<int64_t>(shape.size())),
                             .size = static_cast<int64_t>(getNumGroups()),
                             .kind = FactorKind::Replicated,
                             .reason = "every rank has the statistics of all groups"});
  rule.operands = {identityDims(shape.size()), {{1}}, {{1}}};
  rule.results = {identityDims(shape.size()), {{0}, {groups}}, {{0}, {groups}}};
  return rule;
}

OperatorCost GroupNormOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = 7 * static_cast<double>(msc::elementCount(operands[0])); // sum, subtract, square, sum, subtract, scale, shift
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind GroupNormOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> GroupNormOp::expand(OpBuilder &builder, ValueRange x) {
  Groups g(builder, *this, x[0]);
  Value mean = g.mean(x[0]), centred = g.sub(x[0], g.spread(mean));
  Value variance = g.mean(builder.create<SquareOp>(getLoc(), centred));
  Value epsilon = scalarLike(builder, getLoc(), getEps().convertToDouble(), variance);
  Value rstd = builder.create<RsqrtOp>(getLoc(), g.add(variance, epsilon));
  Value scaledByWeight = g.mul(g.mul(centred, g.spread(rstd)), g.ofChannels(x[1]));
  return {g.add(scaledByWeight, g.ofChannels(x[2])), mean, rstd};
}
