// Optimizers that scale each element by the history of its gradients.
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/optimizer/Step.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

/// C1 and C2; as many results as there are states, and one, all like var.
static LogicalResult inferStep(const Inference &at, ArrayRef<unsigned> scalars, unsigned count,
                               SmallVectorImpl<Type> &results) {
  if (failed(checkStep(at, scalars)))
    return failure();
  results.assign(count, tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult AdamOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {3, 4, 5}, 3, results);
}
LogicalResult AdamWeightDecayOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {3}, 3, results);
}
LogicalResult LambNextMVOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {3, 4}, 3, results);
}
LogicalResult LambUpdateWithLROp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {1, 2, 3}, 1, results);
}
LogicalResult ApplyRMSPropOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {3}, 3, results);
}
LogicalResult ApplyCenteredRMSPropOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {4}, 4, results);
}
LogicalResult ApplyAdagradOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferStep(at, {2}, 2, results);
}

//===-- rules -------------------------------------------------------------===//

ShardingRule AdamOp::shardingRule() { return pointwiseRule(*this); }
ShardingRule AdamWeightDecayOp::shardingRule() { return pointwiseRule(*this); }
ShardingRule LambNextMVOp::shardingRule() { return pointwiseRule(*this); }
ShardingRule LambUpdateWithLROp::shardingRule() { return pointwiseRule(*this); }
ShardingRule ApplyRMSPropOp::shardingRule() { return pointwiseRule(*this); }
ShardingRule ApplyCenteredRMSPropOp::shardingRule() { return pointwiseRule(*this); }
ShardingRule ApplyAdagradOp::shardingRule() { return pointwiseRule(*this); }

//===-- costs: scalar operations per element ------------------------------===//

using Shapes = ArrayRef<std::vector<int64_t>>;

static OperatorCost costOf(Operation *op, Shapes operands, Shapes results, double operations) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = operations * static_cast<double>(msc::elementCount(results[0]));
  return cost;
}

OperatorCost AdamOp::cost(Shapes operands, Shapes results) { return costOf(*this, operands, results, 15); }
OperatorCost AdamWeightDecayOp::cost(Shapes operands, Shapes results) { return costOf(*this, operands, results, 14); }
OperatorCost LambNextMVOp::cost(Shapes operands, Shapes results) { return costOf(*this, operands, results, 14); }
OperatorCost LambUpdateWithLROp::cost(Shapes operands, Shapes results) { return costOf(*this, operands, results, 2); }
OperatorCost ApplyRMSPropOp::cost(Shapes operands, Shapes results) { return costOf(*this, operands, results, 11); }
OperatorCost ApplyCenteredRMSPropOp::cost(Shapes operands, Shapes results) {
  return costOf(*this, operands, results, 16);
}
OperatorCost ApplyAdagradOp::cost(Shapes operands, Shapes results) { return costOf(*this, operands, results, 6); }

//===-- lowering ----------------------------------------------------------===//

namespace {
/// A builder of scalar bodies that knows the element type.
struct Scalars {
  ImplicitLocOpBuilder &b;
  Type type;

  Value constant(double value) const { return number(b, value, type); }
  Value times(Value x, double factor) const { return mul(b, x, constant(factor)); }
  Value plus(Value x, double term) const { return term == 0 ? x : add(b, x, constant(term)); }
  Value root(Value x) const { return b.create<math::SqrtOp>(x); }
  /// share * mean + (1 - share) * term.
  Value moved(Value mean, double share, Value term) const { return add(b, times(mean, share), times(term, 1 - share)); }
};
} // namespace

static double asDouble(const APFloat &value) { return value.convertToDouble(); }

/// One linalg.generic whose body gets the element type's builder.
template <typename Op, typename Body>
static LogicalResult lowerStep(Op op, OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                               SmallVectorImpl<Value> &results, Body body) {
  llvm::append_range(results, buildPointwise(builder, op.getLoc(), operands, resultTypes,
                                             [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
                                               return body(Scalars{b, x[0].getType()}, x);
                                             }));
  return success();
}

LogicalResult AdamOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                    SmallVectorImpl<Value> &results) {
  double beta1 = asDouble(getBeta1()), decay = asDouble(getWeightDecay());
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value var = x[0], rate = x[5];
    Value g = effectiveGradient(s.b, x[6], var, asDouble(getLossScale()), getDecoupled() ? 0 : decay);
    Value m = s.moved(x[1], beta1, g), v = s.moved(x[2], asDouble(getBeta2()), mul(s.b, g, g));
    Value direction = getUseNesterov() ? s.moved(m, beta1, g) : m;
    Value scale = s.plus(s.root(mul(s.b, v, x[4])), asDouble(getEpsilon()));
    Value step = mul(s.b, rate, div(s.b, mul(s.b, direction, x[3]), scale));
    Value kept = getDecoupled() && decay != 0 ? sub(s.b, var, mul(s.b, s.times(rate, decay), var)) : var;
    return {sub(s.b, kept, step), m, v};
  });
}

LogicalResult AdamWeightDecayOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                               SmallVectorImpl<Value> &results) {
  double decay = asDouble(getWeightDecay());
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value var = x[0], g = effectiveGradient(s.b, x[4], var, asDouble(getLossScale()), 0);
    Value m = s.moved(x[1], asDouble(getBeta1()), g), v = s.moved(x[2], asDouble(getBeta2()), mul(s.b, g, g));
    Value direction = div(s.b, m, s.plus(s.root(v), asDouble(getEpsilon())));
    if (decay != 0)
      direction = add(s.b, direction, s.times(var, decay));
    return {sub(s.b, var, mul(s.b, x[3], direction)), m, v};
  });
}

LogicalResult LambNextMVOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                          SmallVectorImpl<Value> &results) {
  double decay = asDouble(getWeightDecay());
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value var = x[0], g = effectiveGradient(s.b, x[5], var, asDouble(getLossScale()), 0);
    Value m = s.moved(x[1], asDouble(getBeta1()), g), v = s.moved(x[2], asDouble(getBeta2()), mul(s.b, g, g));
    Value update = div(s.b, mul(s.b, m, x[3]), s.plus(s.root(mul(s.b, v, x[4])), asDouble(getEpsilon())));
    if (decay != 0)
      update = add(s.b, update, s.times(var, decay));
    return {update, m, v};
  });
}

LogicalResult LambUpdateWithLROp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                                SmallVectorImpl<Value> &results) {
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value zero = s.constant(0), one = s.constant(1), length = x[1], norm = x[2];
    Value moves = s.b.create<arith::SelectOp>(greater(s.b, norm, zero), div(s.b, length, norm), one);
    Value ratio = s.b.create<arith::SelectOp>(greater(s.b, length, zero), moves, one);
    return {sub(s.b, x[0], mul(s.b, mul(s.b, x[3], ratio), x[4]))};
  });
}

LogicalResult ApplyRMSPropOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                            SmallVectorImpl<Value> &results) {
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value g = effectiveGradient(s.b, x[4], x[0], asDouble(getLossScale()), asDouble(getWeightDecay()));
    Value square = s.moved(x[1], asDouble(getDecay()), mul(s.b, g, g));
    Value step = div(s.b, mul(s.b, x[3], g), s.root(s.plus(square, asDouble(getEpsilon()))));
    Value moment = add(s.b, s.times(x[2], asDouble(getMomentum())), step);
    return {sub(s.b, x[0], moment), square, moment};
  });
}

LogicalResult ApplyCenteredRMSPropOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                                    SmallVectorImpl<Value> &results) {
  double decay = asDouble(getDecay());
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value g = effectiveGradient(s.b, x[5], x[0], asDouble(getLossScale()), asDouble(getWeightDecay()));
    Value mean = s.moved(x[1], decay, g), square = s.moved(x[2], decay, mul(s.b, g, g));
    Value variance = sub(s.b, square, mul(s.b, mean, mean));
    Value step = div(s.b, mul(s.b, x[4], g), s.root(s.plus(variance, asDouble(getEpsilon()))));
    Value moment = add(s.b, s.times(x[3], asDouble(getMomentum())), step);
    return {sub(s.b, x[0], moment), mean, square, moment};
  });
}

LogicalResult ApplyAdagradOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange types,
                                            SmallVectorImpl<Value> &results) {
  return lowerStep(*this, builder, operands, types, results, [&](Scalars s, ValueRange x) -> SmallVector<Value> {
    Value g = effectiveGradient(s.b, x[3], x[0], asDouble(getLossScale()), asDouble(getWeightDecay()));
    Value accum = add(s.b, x[1], mul(s.b, g, g));
    return {sub(s.b, x[0], div(s.b, mul(s.b, x[2], g), s.root(accum))), accum};
  });
}

using Pairs = SmallVector<std::pair<unsigned, unsigned>>;

Pairs AdamOp::inPlaceResults() { return {{0, 0}, {1, 1}, {2, 2}}; }
Pairs AdamWeightDecayOp::inPlaceResults() { return {{0, 0}, {1, 1}, {2, 2}}; }
Pairs LambNextMVOp::inPlaceResults() { return {{1, 1}, {2, 2}}; }
Pairs LambUpdateWithLROp::inPlaceResults() { return {{0, 0}}; }
Pairs ApplyRMSPropOp::inPlaceResults() { return {{0, 0}, {1, 1}, {2, 2}}; }
Pairs ApplyCenteredRMSPropOp::inPlaceResults() { return {{0, 0}, {1, 1}, {2, 2}, {3, 3}}; }
Pairs ApplyAdagradOp::inPlaceResults() { return {{0, 0}, {1, 1}}; }
