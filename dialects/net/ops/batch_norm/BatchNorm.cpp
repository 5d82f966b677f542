#include "dialects/net/NetOps.h"
#include "dialects/net/Pieces.h"
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
  if (op.getEpsilon().convertToDouble() > 1) // C4
    return at.error("'epsilon' of 'BatchNorm' is above 1", {}, Inference::smallEpsilon);
  if (!(momentum >= 0 && momentum <= 1)) // C4
    return at.error("'momentum' of 'BatchNorm' is not within 0 and 1");
  if (static_cast<int64_t>(op.getGroupSize().value_or(1)) < 1) // C6
    return at.error("'group_size' of 'BatchNorm' is " + Twine(static_cast<int64_t>(*op.getGroupSize())) + ", but a group has at least 1 device");
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

/// Into how many groups of samples `group_size` parts the batch; reports what does not fit.
static FailureOr<int64_t> statisticsGroups(BatchNormOp op) {
  int64_t devices = devicesOf(op), size = op.getGroupSize().value_or(devices);
  if (!op.getIsTraining().value_or(false) || devices == 1 || size == devices)
    return 1;
  int64_t samples = cast<RankedTensorType>(op.getInputX().getType()).getDimSize(0), groups = devices / size;
  if (devices % size != 0) // C6
    return op.emitError("'group_size' of 'BatchNorm' is ") << size << ", which does not divide the " << devices << " devices";
  if (samples < groups) // C3
    return op.emitError("'BatchNorm' parts ") << samples << (samples == 1 ? " sample" : " samples") << " into " << groups
                                              << " groups of devices, and some group has none";
  return groups;
}

//===-- building blocks ---------------------------------------------------===//

namespace {

/// Values of channels with the number of dimensions of the input: (1, C, 1, 1). Where the batch has groups, (N, C, 1, 1).
struct Channels {
  OpBuilder &builder;
  Location loc;
  SmallVector<int64_t> shape, dims; ///< (1, C, 1, 1), and all dimensions but that of channels
  int64_t count = 1;                ///< elements of a channel
  int64_t samples, groups;          ///< group p: samples floor(p samples / groups) to floor((p + 1) samples / groups) - 1

  Channels(OpBuilder &builder, Location loc, Value input, int64_t groups)
      : builder(builder), loc(loc), samples(cast<RankedTensorType>(input.getType()).getDimSize(0)), groups(groups) {
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
  Value mean(Value x) {
    return groups == 1 ? builder.create<ReduceMeanOp>(loc, x, dims, /*keep_dims=*/true).getResult() : toSamples(ofGroups(x));
  }
  Value sum(Value x) { return builder.create<ReduceSumOp>(loc, x, dims, /*keep_dims=*/true); }
  /// One value per channel in front of the other dimensions, and back.
  Value spread(Value x) { return reshaped(builder, loc, x, shape); }
  Value flat(Value x) { return reshaped(builder, loc, x, {shape[1]}); }

  /// The numbers 0, 1, ... as i64.
  Value numbers(int64_t count) {
    return builder.create<CastOp>(loc, builder.create<RangeOp>(loc, 0, count, 1), builder.getI64Type());
  }
  Value whole(Value like, int64_t value) { return scalarLike(builder, loc, static_cast<double>(value), like); }
  /// floor((x * factor + more) / divisor).
  Value scaledDown(Value x, int64_t factor, int64_t more, int64_t divisor) {
    Value numerator = add(mul(x, whole(x, factor)), whole(x, more));
    return builder.create<FloorDivOp>(loc, numerator, whole(x, divisor));
  }
  /// The group of every sample.
  Value groupOfSamples() { return scaledDown(numbers(samples), groups, groups - 1, samples); }
  /// Elements of a channel in every group: (groups, 1).
  Value countOfGroups(Value like) {
    Value group = numbers(groups), begin = scaledDown(group, samples, 0, groups), end = scaledDown(group, samples, samples, groups);
    Value count = builder.create<CastOp>(loc, sub(end, begin), cast<RankedTensorType>(like.getType()).getElementType());
    return times(reshaped(builder, loc, count, {groups, 1}), static_cast<double>(this->count / samples));
  }
  /// The mean of every group and channel: (groups, C).
  Value ofGroups(Value x) {
    Value rows = dims.size() == 1 ? x : builder.create<ReduceSumOp>(loc, x, ArrayRef(dims).drop_front(), /*keep_dims=*/false).getResult();
    Value sums = builder.create<UnsortedSegmentSumOp>(loc, rows, groupOfSamples(), groups);
    return builder.create<RealDivOp>(loc, sums, countOfGroups(x));
  }
  /// One value per group and channel for each sample: (N, C, 1, 1), cut as the input is.
  Value toSamples(Value x) {
    Value rows = builder.create<GatherOp>(loc, x, groupOfSamples(), 0);
    setResultFactors(rows.getDefiningOp(), {0, 1});
    SmallVector<int64_t> wide(shape), factors(shape.size(), -1);
    wide[0] = samples, factors[0] = 0, factors[1] = 1;
    Value result = reshaped(builder, loc, rows, wide);
    setResultFactors(result.getDefiningOp(), factors);
    return result;
  }
  /// The mean over the groups of what each of them gives: (C).
  Value overGroups(Value x) { return builder.create<ReduceMeanOp>(loc, x, 0, /*keep_dims=*/false); }

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
  FailureOr<int64_t> groups = statisticsGroups(*this);
  if (failed(groups))
    return failure();
  Channels c(builder, getLoc(), getInputX(), *groups);
  Statistics s(c, *this, getOperands());
  bool batch = getIsTraining().value_or(false);
  Value scale = c.mul(s.rstd, c.spread(getScale())), normalised = c.mul(s.centred, s.rstd), weighted = c.mul(dy, normalised);
  Value slopeOfBias = c.sum(dy), slopeOfScale = c.sum(weighted);
  if (wanted[0] && batch && c.groups > 1) { // the same within every group
    Value rest = c.sub(c.sub(dy, c.mean(dy)), c.mul(normalised, c.mean(weighted)));
    gradients[0] = c.mul(rest, scale);
  } else if (wanted[0] && batch) { // what arrives at mean and variance spreads over the channel
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
  FailureOr<int64_t> groups = statisticsGroups(*this);
  if (failed(groups))
    return {};
  Channels c(builder, getLoc(), x[0], *groups);
  Statistics s(c, *this, x);
  Value y = c.add(c.mul(s.centred, c.mul(s.rstd, c.spread(x[1]))), c.spread(x[2]));
  if (!getIsTraining().value_or(false))
    return {y, c.times(x[3], 1), c.times(x[4], 1)};
  double momentum = getMomentum().convertToDouble();
  auto moved = [&](Value old, Value now, double factor) {
    return c.add(c.times(old, 1 - momentum), c.times(c.flat(now), momentum * factor));
  };
  if (c.groups > 1) { // what the groups find, on average
    Value count = c.countOfGroups(x[0]), variance = c.ofGroups(builder.create<SquareOp>(getLoc(), s.centred));
    Value one = scalarLike(builder, getLoc(), 1, count), rest = builder.create<MaximumOp>(getLoc(), c.sub(count, one), one);
    Value ofSample = c.mul(variance, builder.create<RealDivOp>(getLoc(), count, rest));
    return {y, moved(x[3], c.overGroups(c.ofGroups(x[0])), 1), moved(x[4], c.overGroups(ofSample), 1)};
  }
  double sample = c.count > 1 ? static_cast<double>(c.count) / static_cast<double>(c.count - 1) : 1;
  return {y, moved(x[3], s.mean, 1), moved(x[4], s.variance, sample)};
}
