#include "dialects/net/ops/support/Losses.h"

#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- one term per element ----------------------------------------------===//

/// Every further operand is repeated up to the shape of operand 0.
static LogicalResult checkBroadcasts(const Inference &at) {
  FailureOr<SmallVector<int64_t>> shape = at.broadcastShape();
  if (failed(shape))
    return failure();
  if (ArrayRef<int64_t>(*shape) == at.shape(0))
    return success();
  return at.error("the operands of '" + at.opName + "' broadcast to " + shapeText(*shape) + ", but " + at.text(0) +
                      " is not that large",
                  {0});
}

LogicalResult msc::net::inferElementLoss(const Inference &at, StringRef reduction, ArrayRef<StringRef> words,
                                         SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Float)) || failed(at.checkSameShape(0, 1)) || failed(checkBroadcasts(at)) ||
      failed(checkWord(at, "reduction", reduction, words)))
    return failure();
  bool divides = reduction == "mean" || reduction == "batchmean";
  if ((divides && llvm::is_contained(at.shape(0), 0)) || (reduction == "batchmean" && at.rank(0) == 0))
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to average", {0});
  results.push_back(tensorOf(reduction == "none" ? at.shape(0) : ArrayRef<int64_t>(), at.element(0)));
  return success();
}

Value msc::net::reducedTerms(OpBuilder &builder, Location loc, Value terms, StringRef reduction) {
  ArrayRef<int64_t> all;
  if (reduction == "none")
    return terms;
  if (reduction == "mean")
    return builder.create<ReduceMeanOp>(loc, terms, all, /*keep_dims=*/false);
  Value sum = builder.create<ReduceSumOp>(loc, terms, all, /*keep_dims=*/false);
  if (reduction == "sum")
    return sum;
  return scaled(builder, loc, sum, 1.0 / static_cast<double>(cast<RankedTensorType>(terms.getType()).getDimSize(0)));
}

ShardingRule msc::net::elementLossRule(Operation *op, bool reduces) {
  std::vector<int64_t> shape = shapeOf(op->getOperand(0));
  ShardingRule rule = ruleWithFactors(shape, reduces ? FactorKind::Reduction : FactorKind::PassThrough);
  for (Value operand : op->getOperands())
    rule.operands.push_back(broadcastDims(shapeOf(operand), shape));
  rule.results = {identityDims(reduces ? 0 : shape.size())};
  return rule;
}

OperatorCost msc::net::elementLossCost(Operation *op, ArrayRef<std::vector<int64_t>> operands,
                                       ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = 4 * static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}

//===-- labels that are classes -------------------------------------------===//

LogicalResult msc::net::checkSparseLabels(const Inference &at, unsigned logits, unsigned labels, const Twine &help) {
  if (!at.element(labels).isInteger(32) && !at.element(labels).isInteger(64))
    return at.error("sparse labels are i32 or i64, but " + at.text(labels) + " is " + elementText(at.element(labels)),
                    {labels}, help.isTriviallyEmpty() ? Twine("labels that are classes are whole numbers: write i32") : help);
  if (ArrayRef<int64_t> rows = at.shape(logits).drop_back(); at.shape(labels) != rows)
    return at.error("sparse labels of " + at.text(logits) + " are " + shapeText(rows) + ", one class per row, but " +
                        at.text(labels) + " is given",
                    {labels});
  return at.checkPlacesOf(logits);
}

ClassOfRow::ClassOfRow(OpBuilder &builder, Location loc, Value labels, ArrayRef<int64_t> shape)
    : builder(builder), loc(loc), rank(static_cast<int64_t>(shape.size())), classes(builder.create<RangeOp>(loc, 0, shape.back(), 1)) {
  SmallVector<int64_t> column(shape);
  column.back() = 1;
  if (cast<RankedTensorType>(labels.getType()).getElementType().isInteger(64))
    classes = builder.create<CastOp>(loc, classes, builder.getI64Type());
  this->labels = reshaped(builder, loc, labels, column);
}

Value ClassOfRow::choose(Value there, Value elsewhere) const {
  auto chosen = builder.create<SelectEqualOp>(loc, labels, classes, there, elsewhere);
  setResultFactors(chosen, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  return chosen;
}
