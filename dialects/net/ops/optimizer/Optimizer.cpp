#include "dialects/net/NetOps.h"
#include "dialects/net/ops/optimizer/Step.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

/// "learning rate".
static std::string worded(StringRef name) {
  std::string text = name.str();
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

LogicalResult msc::net::checkStep(const Inference &at, ArrayRef<unsigned> scalars) {
  if (failed(at.checkSameElement(ElementSet::Float)))
    return failure();
  for (unsigned i = 1; i < at.operands.size(); ++i)
    if (!llvm::is_contained(scalars, i) && failed(at.checkSameShape(0, i)))
      return failure();
  for (unsigned i : scalars)
    if (at.rank(i) != 0)
      return at.error("'" + at.opName + "' takes a scalar " + worded(at.inputNames[i]) + ", but " + at.text(i) + " is none", {i});
  return success();
}

LogicalResult ApplyMomentumOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(checkStep(at, {2})))
    return failure();
  results.assign(2, tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult SGDOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(checkStep(at, {1})))
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

ShardingRule ApplyMomentumOp::shardingRule() {
  return pointwiseRule(*this);
}
ShardingRule SGDOp::shardingRule() {
  return pointwiseRule(*this);
}

OperatorCost ApplyMomentumOp::cost(ArrayRef<std::vector<int64_t>> operandShapes,
                                   ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost = defaultCost(*this, operandShapes, resultShapes);
  cost.flops = 4 * static_cast<double>(msc::elementCount(resultShapes[0])); // two products, two sums
  return cost;
}

OperatorCost SGDOp::cost(ArrayRef<std::vector<int64_t>> operandShapes, ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost = defaultCost(*this, operandShapes, resultShapes);
  cost.flops = 2 * static_cast<double>(msc::elementCount(resultShapes[0]));
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

Value msc::net::effectiveGradient(ImplicitLocOpBuilder &b, Value grad, Value var, double lossScale, double weightDecay) {
  Type type = grad.getType();
  if (lossScale != 1)
    grad = mul(b, grad, number(b, 1 / lossScale, type));
  if (weightDecay != 0)
    grad = add(b, grad, mul(b, number(b, weightDecay, type), var));
  return grad;
}

LogicalResult ApplyMomentumOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                             SmallVectorImpl<Value> &results) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    Value var = x[0], accum = x[1], rate = x[2], momentum = number(b, getMomentum().convertToDouble(), var.getType());
    Value g = effectiveGradient(b, x[3], var, getLossScale().convertToDouble(), getWeightDecay().convertToDouble());
    double share = 1 - getDampening().convertToDouble();
    Value entering = share == 1 ? g : mul(b, g, number(b, share, g.getType()));
    Value newAccum = add(b, mul(b, accum, momentum), entering);
    Value direction = getUseNesterov() ? add(b, g, mul(b, momentum, newAccum)) : newAccum;
    return {sub(b, var, mul(b, rate, direction)), newAccum};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}

SmallVector<std::pair<unsigned, unsigned>> ApplyMomentumOp::inPlaceResults() {
  return {{0, 0}, {1, 1}};
}

LogicalResult SGDOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                   SmallVectorImpl<Value> &results) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    Value g = effectiveGradient(b, x[2], x[0], getLossScale().convertToDouble(), getWeightDecay().convertToDouble());
    return {sub(b, x[0], mul(b, x[1], g))};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}

SmallVector<std::pair<unsigned, unsigned>> SGDOp::inPlaceResults() {
  return {{0, 0}};
}
