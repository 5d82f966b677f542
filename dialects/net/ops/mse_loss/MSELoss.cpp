#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"
#include "dialects/net/ops/support/Words.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

static LogicalResult checkLoss(const Inference &at, StringRef reduction) {
  if (failed(at.checkSameElement(ElementSet::Float)) ||               // C1
      failed(at.checkSameShape(0, 1)) ||                              // C2
      failed(checkWord(at, "reduction", reduction, kLossReductions))) // C3
    return failure();
  if (reduction == "mean" && llvm::is_contained(at.shape(0), 0)) // C3
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to average", {0});
  return success();
}

LogicalResult MSELossOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkLoss(at, op.getReduction())))
    return failure();
  results.push_back(tensorOf(op.getReduction() == "none" ? at.shape(0) : ArrayRef<int64_t>(), at.element(0)));
  return success();
}

LogicalResult MSELossGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkLoss(at, op.getReduction())))
    return failure();
  if (op.getReduction() != "none" && at.rank(2) != 0) // C4
    return at.error("'MSELossGrad' takes a scalar 'dloss', but " + at.text(2) + " is none", {2});
  if (op.getReduction() == "none" && failed(at.checkSameShape(0, 2)))
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult MSELossOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                       MutableArrayRef<Value> gradients) {
  Value gradient = builder.create<MSELossGradOp>(getLoc(), getLogits(), getLabels(), dy[0], getReduction());
  if (wanted[0])
    gradients[0] = gradient;
  if (wanted[1])
    gradients[1] = builder.create<NegOp>(getLoc(), gradient);
  return success();
}

//===-- rules, cost -------------------------------------------------------===//

ShardingRule MSELossOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getLogits());
  bool reduces = getReduction() != "none";
  ShardingRule rule = ruleWithFactors(shape, reduces ? FactorKind::Reduction : FactorKind::PassThrough);
  rule.operands.assign(2, identityDims(shape.size()));
  rule.results = {identityDims(reduces ? 0 : shape.size())};
  return rule;
}

ShardingRule MSELossGradOp::shardingRule() {
  return pointwiseRule(*this);
}

OperatorCost MSELossOp::cost(ArrayRef<std::vector<int64_t>> operandShapes,
                             ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost = defaultCost(*this, operandShapes, resultShapes);
  cost.flops = 3 * static_cast<double>(msc::elementCount(operandShapes[0])); // subtract, square, add
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

/// 1 over the global number of elements for a mean, else 1.
template <typename Op> static double weight(Op op) {
  auto type = cast<RankedTensorType>(op.getLogits().getType());
  return op.getReduction() == "mean" ? 1.0 / static_cast<double>(type.getNumElements()) : 1.0;
}

static SmallVector<Value> squaredError(ImplicitLocOpBuilder &b, ValueRange x) {
  Value difference = sub(b, x[0], x[1]);
  return {mul(b, difference, difference)};
}

LogicalResult MSELossOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                       SmallVectorImpl<Value> &results) {
  if (getReduction() == "none") {
    llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, squaredError));
    return success();
  }
  auto type = cast<RankedTensorType>(resultTypes[0]);
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(getLogits().getType()).getRank()));
  Value sum =
      buildReduction(builder, getLoc(), operands, type, dims, numberAttr(type.getElementType(), 0), squaredError, add);
  auto weighted = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    return {mul(b, x[0], number(b, weight(*this), x[0].getType()))};
  };
  if (getReduction() == "sum")
    results.push_back(sum);
  else
    llvm::append_range(results, buildPointwise(builder, getLoc(), sum, resultTypes, weighted));
  return success();
}

LogicalResult MSELossGradOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                           SmallVectorImpl<Value> &results) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    Value scale = mul(b, x[2], number(b, 2 * weight(*this), x[2].getType()));
    return {mul(b, scale, sub(b, x[0], x[1]))};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}
