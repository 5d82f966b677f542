#include "dialects/net/NetOps.h"
#include "dialects/net/ops/split/PartCount.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

LogicalResult UnstackOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, static_cast<int64_t>(op.getAxis())); // C1
  if (failed(dims))
    return failure();
  int64_t count = at.shape(0)[dims->front()], num = op.getNum();
  if (num != 0 && num != count) // C2
    return at.error("'num' of 'Unstack' is " + Twine(num) + ", but dimension " + Twine(dims->front()) + " of " +
                        at.text(0) + " has size " + Twine(count),
                    {0});
  if (failed(checkPartCount(at, count))) // C3
    return failure();
  SmallVector<int64_t> shape(at.shape(0));
  shape.erase(shape.begin() + dims->front());
  results.append(count, tensorOf(shape, at.element(0)));
  return success();
}

int64_t UnstackOp::dimension() {
  int64_t axis = getAxis();
  return axis < 0 ? axis + cast<RankedTensorType>(getInputX().getType()).getRank() : axis;
}

/// Before the dimension is left out: each result with size 1 there.
static RegionCopy keptCopyOf(UnstackOp op) {
  RegionCopy copy{{shapeOf(op.getInputX())}, {}, {}};
  std::vector<int64_t> shape = copy.operands[0];
  shape[op.dimension()] = 1;
  for (size_t i = 0; i < op.getNumResults(); ++i) {
    copy.results.push_back(shape);
    copy.regions.push_back({wholeRegion(shape)});
    copy.regions.back()[0].ranges[op.dimension()].source = i;
  }
  return copy;
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult UnstackOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                       MutableArrayRef<Value> gradients) {
  RegionCopy copy = keptCopyOf(*this);
  SmallVector<Value> kept;
  for (Value gradient : dy)
    kept.push_back(gradient ? reshaped(builder, getLoc(), gradient, copy.results[0]) : Value());
  gradients[0] = gradientOfRegions(builder, getLoc(), copy, kept, 0);
  return success();
}

//===-- rule, cost, lowering ----------------------------------------------===//

ShardingRule UnstackOp::shardingRule() {
  ShardingRule rule = regionsRule(keptCopyOf(*this));
  for (auto &dims : rule.results)
    dims.erase(dims.begin() + dimension());
  return rule;
}

OperatorCost UnstackOp::cost(ArrayRef<std::vector<int64_t>>, ArrayRef<std::vector<int64_t>> results) {
  return copyCost(*this, results);
}

LoweringKind UnstackOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> UnstackOp::expand(OpBuilder &builder, ValueRange operands) {
  auto parts = builder.create<SplitOp>(getLoc(), operands[0], dimension(), getNumResults());
  SmallVector<Value> results;
  for (auto [part, result] : llvm::zip(parts.getOutputs(), getOutputs()))
    results.push_back(
        builder.create<ReshapeOp>(getLoc(), part, cast<RankedTensorType>(result.getType()).getShape()));
  return results;
}
