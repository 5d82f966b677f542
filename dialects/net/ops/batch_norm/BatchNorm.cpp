#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"
#include "dialects/net/ops/support/Words.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

LogicalResult BatchNormOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float)) ||                       // C1
      failed(checkWord(at, "data_format", op.getDataFormat(), kImageFormats))) // C5
    return failure();
  if (at.rank(0) < 2) // C2
    return at.error("'BatchNorm' of " + at.text(0) + " has no dimension of channels: it takes at least 2 dimensions", {0});
  for (unsigned operand = 1; operand < 5; ++operand) // C2
    if (at.shape(operand) != at.shape(0).slice(1, 1))
      return at.error("'BatchNorm' of " + at.text(0) + " takes a '" + at.inputNames[operand] + "' of " +
                          shapeText(at.shape(0).slice(1, 1)) + ", but " + at.text(operand) + " is given",
                      {operand});
  bool isEmpty = at.shape(0)[0] == 0 || llvm::is_contained(at.shape(0).drop_front(2), 0);
  if (op.getIsTraining().value_or(false) && isEmpty) // C3
    return at.error("'BatchNorm' of " + at.text(0) + " has no elements to reduce", {0});
  double momentum = op.getMomentum().convertToDouble();
  if (!(op.getEpsilon().convertToDouble() >= 0)) // C4
    return at.error("'epsilon' of 'BatchNorm' is negative");
  if (!(momentum >= 0 && momentum <= 1)) // C4
    return at.error("'momentum' of 'BatchNorm' is not within 0 and 1");
  if (op.getGroupSize()) // C6
    return at.error("'group_size' is not in this version: mean and variance run over all devices");
  Type channels = tensorOf(at.shape(1), at.element(0));
  results.append({tensorOf(at.shape(0), at.element(0)), channels, channels});
  return success();
}

void BatchNormOp::beginTraining() {
  if (!getIsTraining())
    setIsTraining(true);
}

SmallVector<std::pair<unsigned, unsigned>> BatchNormOp::newStates() {
  if (!getIsTraining().value_or(false))
    return {};
  return {{1, 3}, {2, 4}};
}

//===-- building blocks ---------------------------------------------------===//

namespace {

/// Values of channels with the number of dimensions of the input: (1, C, 1, 1).
struct Channels {
  OpBuilder &builder;
  Location loc;
  SmallVector<int64_t> shape, dims; ///< (1, C, 1, 1), and all dimensions but that of channels
  int64_t count = 1;                ///< elements of a channel

  Channels(OpBuilder &builder, Location loc, Value input) : builder(builder), loc(loc) {
    for (auto [dim, size] : llvm::enumerate(cast<RankedTensorType>(input.getType()).getShape())) {
      shape.push_back(dim == 1 ? size : 1);
      if (dim == 1)
        continue;
      dims.push_back(dim);
      count *= size;
    }
  }
  Value mul(Value x, Value y) { return builder.create<MulOp>(loc, x, y); }
  Value add(Value x, Value y) { return builder.create<AddOp>(loc, x, y); }
  Value sub(Value x, Value y) { return builder.create<SubOp>(loc, x, y); }
  Value times(Value x, double factor) { return scaled(builder, loc, x, factor); }
  Value mean(Value x) { return builder.create<ReduceMeanOp>(loc, x, dims, /*keep_dims=*/true); }
  Value sum(Value x) { return builder.create<ReduceSumOp>(loc, x, dims, /*keep_dims=*/true); }
  /// One value per channel in front of the other dimensions, and back.
  Value spread(Value x) { return reshaped(builder, loc, x, shape); }
  Value flat(Value x) { return reshaped(builder, loc, x, {shape[1]}); }
  Value inverseRoot(Value variance, double epsilon) {
    return builder.create<RsqrtOp>(loc, add(variance, scalarLike(builder, loc, epsilon, variance)));
  }
};

/// What the input is normalised by.
struct Statistics {
  Value mean, centred, variance, rstd;

  Statistics(Channels &c, BatchNormOp op, ValueRange x) {
    bool batch = op.getIsTraining().value_or(false);
    mean = batch ? c.mean(x[0]) : c.spread(x[3]);
    centred = c.sub(x[0], mean);
    variance = batch ? c.mean(c.builder.create<SquareOp>(c.loc, centred)) : c.spread(x[4]);
    rstd = c.inverseRoot(variance, op.getEpsilon().convertToDouble());
  }
};

} // namespace

//===-- gradient ----------------------------------------------------------===//

LogicalResult BatchNormOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  if (resultGradients[1] || resultGradients[2])
    return emitError("the new running values of 'BatchNorm' have no gradient");
  Value dy = resultGradients[0];
  if (!dy)
    return success();
  Channels c(builder, getLoc(), getInputX());
  Statistics s(c, *this, getOperands());
  bool batch = getIsTraining().value_or(false);
  Value scale = c.mul(s.rstd, c.spread(getScale())), normalised = c.mul(s.centred, s.rstd);
  Value slopeOfBias = c.sum(dy), slopeOfScale = c.sum(c.mul(dy, normalised));
  if (wanted[0] && batch) { // what arrives at mean and variance spreads over the channel
    double share = 1 / static_cast<double>(c.count);
    Value rest = c.sub(c.sub(dy, c.times(slopeOfBias, share)), c.mul(normalised, c.times(slopeOfScale, share)));
    gradients[0] = c.mul(rest, scale);
  } else if (wanted[0]) {
    gradients[0] = c.mul(dy, scale);
  }
  if (wanted[1])
    gradients[1] = c.flat(slopeOfScale);
  if (wanted[2])
    gradients[2] = c.flat(slopeOfBias);
  if (wanted[3] && !batch)
    gradients[3] = c.flat(c.times(c.mul(slopeOfBias, scale), -1));
  if (wanted[4] && !batch)
    gradients[4] = c.flat(c.times(c.mul(c.mul(slopeOfScale, scale), s.rstd), -0.5));
  return success();
}

//===-- rule, cost --------------------------------------------------------===//

ShardingRule BatchNormOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getInputX());
  ShardingRule rule = ruleWithFactors(shape);
  rule.operands.assign(5, {{1}});
  rule.operands[0] = identityDims(shape.size());
  rule.results.assign(3, {{1}});
  rule.results[0] = identityDims(shape.size());
  return rule;
}

OperatorCost BatchNormOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = 7 * static_cast<double>(msc::elementCount(operands[0])); // sum, subtract, square, sum, subtract, scale, shift
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind BatchNormOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> BatchNormOp::expand(OpBuilder &builder, ValueRange x) {
  Channels c(builder, getLoc(), x[0]);
  Statistics s(c, *this, x);
  Value y = c.add(c.mul(s.centred, c.mul(s.rstd, c.spread(x[1]))), c.spread(x[2]));
  if (!getIsTraining().value_or(false))
    return {y, c.times(x[3], 1), c.times(x[4], 1)};
  double momentum = getMomentum().convertToDouble();
  double sample = c.count > 1 ? static_cast<double>(c.count) / static_cast<double>(c.count - 1) : 1;
  auto moved = [&](Value old, Value now, double factor) {
    return c.add(c.times(old, 1 - momentum), c.times(c.flat(now), momentum * factor));
  };
  return {y, moved(x[3], s.mean, 1), moved(x[4], s.variance, sample)};
}
