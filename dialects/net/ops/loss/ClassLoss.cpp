// Losses of classes: labels are numbers of classes.
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Losses.h"
#include "dialects/net/ops/support/Rules.h"
#include "dialects/net/ops/support/Words.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

static LogicalResult checkClasses(const Inference &at) {
  if (failed(at.checkElement(0, ElementSet::Float)))
    return failure();
  if (at.rank(0) == 0 || at.shape(0).back() == 0)
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no classes", {0});
  return checkSparseLabels(at, 0, 1);
}

LogicalResult NLLLossOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkClasses(at))) // C1, C2
    return failure();
  if (at.shape(2) != at.shape(0).take_back() || at.element(2) != at.element(0)) // C3
    return at.error("'NLLLoss' of " + at.text(0) + " takes a weight per class, " + elementText(at.element(0)) + " of " +
                        Twine(at.shape(0).back()) + ", but " + at.text(2) + " is " + elementText(at.element(2)),
                    {2});
  if (failed(checkWord(at, "reduction", op.getReduction(), kLossReductions))) // C4
    return failure();
  ArrayRef<int64_t> rows = at.shape(0).drop_back();
  results.push_back(tensorOf(op.getReduction() == "none" ? rows : ArrayRef<int64_t>(), at.element(0)));
  results.push_back(tensorOf({}, at.element(0)));
  return success();
}

LogicalResult SparseSoftmaxCrossEntropyWithLogitsOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(checkClasses(at)))
    return failure();
  if (llvm::is_contained(at.shape(1), 0))
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to average", {0});
  results.push_back(tensorOf({}, at.element(0)));
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

/// One factor per dimension of the logits; the classes are completed on the way.
static ShardingRule classLossRule(Operation *op, bool reduces) {
  std::vector<int64_t> shape = shapeOf(op->getOperand(0));
  ShardingRule rule = ruleWithFactors(shape, reduces ? FactorKind::Reduction : FactorKind::PassThrough);
  rule.factors.back().kind = FactorKind::PassThrough;
  std::vector<DimFactors> dims = identityDims(shape.size()), rows(dims.begin(), dims.end() - 1);
  rule.operands = {dims, rows};
  rule.results = {reduces ? std::vector<DimFactors>() : rows};
  return rule;
}

ShardingRule NLLLossOp::shardingRule() {
  ShardingRule rule = classLossRule(*this, getReduction() != "none");
  rule.operands.push_back({rule.operands[0].back()});
  rule.results.emplace_back();
  return rule;
}

ShardingRule SparseSoftmaxCrossEntropyWithLogitsOp::shardingRule() {
  return classLossRule(*this, true);
}

static OperatorCost classLossCost(Operation *op, double perElement, ArrayRef<std::vector<int64_t>> operands,
                                  ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = perElement * static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}

OperatorCost NLLLossOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return classLossCost(*this, 4, operands, results); // compare, choose, multiply, sum
}

OperatorCost SparseSoftmaxCrossEntropyWithLogitsOp::cost(ArrayRef<std::vector<int64_t>> operands,
                                                         ArrayRef<std::vector<int64_t>> results) {
  return classLossCost(*this, 6, operands, results); // maximum, subtract, exp, sum, choose, sum
}

//===-- lowering ----------------------------------------------------------===//

SmallVector<Value> NLLLossOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  auto type = cast<RankedTensorType>(getLogits().getType());
  int64_t classes = type.getRank() - 1;
  Value labels = operands[1], none = scalarLike(builder, loc, -1, labels);
  auto ignored = static_cast<double>(static_cast<int64_t>(getIgnoreIndex()));
  Value counts = builder.create<NotEqualOp>(loc, labels, scalarLike(builder, loc, ignored, labels));
  labels = builder.create<SelectOp>(loc, counts, labels, none);
  ClassOfRow label(builder, loc, labels, type.getShape());
  Value zero = scalarLike(builder, loc, 0, operands[0]);
  Value weights = label.choose(operands[2], zero);
  // Not weights * logits: 0 * -inf is NaN.
  Value terms = label.choose(builder.create<MulOp>(loc, operands[0], operands[2]), zero);
  Value losses = builder.create<NegOp>(loc, builder.create<ReduceSumOp>(loc, terms, classes, /*keep_dims=*/false));
  Value rowWeights = builder.create<ReduceSumOp>(loc, weights, classes, /*keep_dims=*/false);
  Value total = builder.create<ReduceSumOp>(loc, rowWeights, ArrayRef<int64_t>(), false);
  if (getReduction() == "none")
    return {losses, total};
  Value sum = builder.create<ReduceSumOp>(loc, losses, ArrayRef<int64_t>(), false);
  if (getReduction() == "sum")
    return {sum, total};
  return {builder.create<RealDivOp>(loc, sum, total), total};
}

SmallVector<Value> SparseSoftmaxCrossEntropyWithLogitsOp::expand(OpBuilder &builder, ValueRange operands) {
  return {builder.create<SoftmaxCrossEntropyWithLogitsOp>(getLoc(), operands[0], operands[1], /*sparse=*/true, "mean")};
}
