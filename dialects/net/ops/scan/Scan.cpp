#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

LogicalResult CumSumOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Number)) || // C1
      failed(resolveAxes(at, 0, static_cast<int64_t>(op.getAxis())))) // C2
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult TopKOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Number))) // C1
    return failure();
  if (at.rank(0) == 0) // C2
    return at.error("'TopK' of " + at.text(0) + " has no dimension to search", {0});
  int64_t k = op.getK();
  if (k < 0 || k > at.shape(0).back()) // C3
    return at.error("'k' of 'TopK' is " + Twine(k) + ", but the last dimension of " + at.text(0) + " has " +
                        Twine(at.shape(0).back()) + " elements",
                    {0});
  SmallVector<int64_t> shape(at.shape(0));
  shape.back() = k;
  results.append({tensorOf(shape, at.element(0)), tensorOf(shape, IntegerType::get(at.context, 32))});
  return success();
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
  auto type = cast<RankedTensorType>(getInputX().getType());
  if (dy[0])
    gradients[0] = builder.create<GatherDGradOp>(getLoc(), getIndices(), dy[0], type.getRank() - 1, type.getShape().back());
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

ShardingRule CumSumOp::shardingRule() {
  ShardingRule rule = pointwiseRule(*this);
  int64_t axis = getAxis(), rank = rule.factors.size();
  Factor &along = rule.factors[axis < 0 ? axis + rank : axis];
  along.kind = FactorKind::Replicated;
  along.reason = "every sum takes all elements in front of it";
  return rule;
}

ShardingRule TopKOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getInputX());
  ShardingRule rule = ruleWithFactors(shape);
  rule.factors.back().kind = FactorKind::Replicated;
  rule.factors.back().reason = "the largest are chosen from all elements";
  std::vector<DimFactors> dims = identityDims(shape.size()), chosen = dims;
  chosen.back() = {rule.add({.name = factorName(shape.size()),
                             .size = static_cast<int64_t>(getK()),
                             .kind = FactorKind::Replicated,
                             .reason = "every rank finds all that are chosen"})};
  rule.operands = {dims};
  rule.results = {chosen, chosen};
  return rule;
}

OperatorCost TopKOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = 8 * static_cast<double>(msc::elementCount(operands[0])); // compare, and sort what is chosen
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind CumSumOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind TopKOp::loweringKind() {
  return LoweringKind::Library;
}
