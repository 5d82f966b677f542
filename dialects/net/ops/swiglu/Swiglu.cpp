#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

LogicalResult SwigluOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Float))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, static_cast<int64_t>(op.getDim())); // C2
  if (failed(dims))
    return failure();
  SmallVector<int64_t> shape(at.shape(0));
  int64_t &size = shape[dims->front()];
  if (size % 2 != 0) // C3
    return at.error("'Swiglu' takes an even number of elements, but dimension " + Twine(dims->front()) + " of " + at.text(0) +
                        " has " + Twine(size),
                    {0});
  size /= 2;
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

int64_t SwigluOp::dimension() {
  int64_t dim = getDim();
  return dim < 0 ? dim + cast<RankedTensorType>(getInput().getType()).getRank() : dim;
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult SwigluOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                      MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}

//===-- rule, cost, lowering ----------------------------------------------===//

ShardingRule SwigluOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getOutput());
  ShardingRule rule = ruleWithFactors(shape);
  rule.factors[dimension()].kind = FactorKind::Exchanged;
  rule.operands = {identityDims(shape.size())};
  rule.results = rule.operands;
  return rule;
}

OperatorCost SwigluOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = 5 * static_cast<double>(msc::elementCount(results[0])); // negate, exp, add, divide, multiply
  return cost;
}

LoweringKind SwigluOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> SwigluOp::expand(OpBuilder &builder, ValueRange operands) {
  auto halves = builder.create<SplitOp>(getLoc(), operands[0], dimension(), 2);
  Value gate = builder.create<SiLUOp>(getLoc(), halves.getResult(0));
  return {builder.create<MulOp>(getLoc(), gate, halves.getResult(1))};
}
