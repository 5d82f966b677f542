#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

LogicalResult StackOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Any)))
    return failure();
  for (unsigned i = 1; i < at.operands.size(); ++i)
    if (failed(at.checkSameShape(0, i))) // C1
      return failure();
  int64_t axis = op.getAxis(), places = at.rank(0) + 1;
  if (axis < -places || axis >= places) // C2
    return at.error("'axis' of 'Stack' is " + Twine(axis) + ": the output has " + Twine(places) +
                        (places == 1 ? " dimension" : " dimensions"),
                    {0});
  SmallVector<int64_t> shape(at.shape(0));
  shape.insert(shape.begin() + (axis < 0 ? axis + places : axis), at.operands.size());
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

int64_t StackOp::dimension() {
  int64_t axis = getAxis();
  return axis < 0 ? axis + cast<RankedTensorType>(getOutput().getType()).getRank() : axis;
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult StackOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                     MutableArrayRef<Value> gradients) {
  SmallVector<int64_t> size(cast<RankedTensorType>(getOutput().getType()).getShape()), begin(size.size(), 0);
  size[dimension()] = 1;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    if (!wanted[index])
      continue;
    begin[dimension()] = index;
    Value part = builder.create<SliceOp>(getLoc(), dy[0], begin, size);
    gradients[index] = reshaped(builder, getLoc(), part, cast<RankedTensorType>(input.getType()).getShape());
  }
  return success();
}

//===-- rule, cost, lowering ----------------------------------------------===//

ShardingRule StackOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getInputs().front());
  ShardingRule rule = ruleWithFactors(shape);
  rule.operands.assign(getInputs().size(), identityDims(shape.size()));
  rule.results = {identityDims(shape.size())};
  rule.results[0].insert(rule.results[0].begin() + dimension(),
                         {rule.add({.name = factorName(shape.size()),
                                    .size = static_cast<int64_t>(getInputs().size()),
                                    .kind = FactorKind::Replicated,
                                    .reason = "no tensor has the new dimension"})});
  return rule;
}

OperatorCost StackOp::cost(ArrayRef<std::vector<int64_t>>, ArrayRef<std::vector<int64_t>> results) {
  return copyCost(*this, results);
}

LoweringKind StackOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> StackOp::expand(OpBuilder &builder, ValueRange operands) {
  SmallVector<Value> parts;
  for (Value operand : operands)
    parts.push_back(builder.create<ExpandDimsOp>(getLoc(), operand, dimension()));
  return {builder.create<ConcatOp>(getLoc(), parts, dimension())};
}
