#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Losses.h"
#include "dialects/net/ops/support/Rules.h"
#include "dialects/net/ops/support/Words.h"

using namespace mlir;
using namespace msc::net;

using CrossEntropyOp = SoftmaxCrossEntropyWithLogitsOp;

//===-- constraints and result type ---------------------------------------===//

LogicalResult CrossEntropyOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Float)))
    return failure();
  if (at.rank(0) == 0 || at.shape(0).back() == 0) // C1
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no classes", {0});
  ArrayRef<int64_t> rows = at.shape(0).drop_back();
  if (op.getSparse()) { // C2
    const bool mayBeProbabilities = at.shape(1) == at.shape(0);
    if (failed(checkSparseLabels(at, 0, 1, mayBeProbabilities ? "leave out 'sparse' for labels that are probabilities" : "")))
      return failure();
  } else if (at.element(1) != at.element(0) || at.shape(1) != at.shape(0)) {
    return at.error("labels of " + at.text(0) + " are of its shape and type, but " + at.text(1) + " is " +
                        elementText(at.element(1)),
                    {1}, isa<IntegerType>(at.element(1)) ? "write 'sparse: true' for labels that are classes" : "");
  }
  if (failed(checkWord(at, "reduction", op.getReduction(), kLossReductions))) // C3
    return failure();
  if (op.getReduction() == "mean" && llvm::is_contained(rows, 0)) // C3
    return at.error("'" + at.opName + "' of " + at.text(0) + " has no elements to average", {0});
  results.push_back(tensorOf(op.getReduction() == "none" ? rows : ArrayRef<int64_t>(), at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Weights of the rows, 0 where the label is no class.
static Value whereClass(CrossEntropyOp op, OpBuilder &builder, Value labels, Value weight) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> shape = typeOf(op.getLogits()).getShape();
  SmallVector<int64_t> column(shape);
  column.back() = 1;
  labels = reshaped(builder, loc, labels, column);
  Value notBelow = builder.create<MaximumOp>(loc, labels, scalarLike(builder, loc, 0, labels));
  Value nearest = builder.create<MinimumOp>(loc, notBelow, scalarLike(builder, loc, static_cast<double>(shape.back() - 1), labels));
  return builder.create<SelectEqualOp>(loc, labels, nearest, weight, scalarLike(builder, loc, 0, weight));
}

LogicalResult CrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  ArrayRef<int64_t> shape = typeOf(getLogits()).getShape();
  int64_t classes = shape.size() - 1;
  Value weight = dy[0]; // of each row
  if (getReduction() == "none") {
    SmallVector<int64_t> column(shape);
    column.back() = 1;
    weight = reshaped(builder, loc, weight, column);
  }
  std::optional<ClassOfRow> label; // before what is read with it: that is one kernel then
  if (getSparse()) {
    weight = whereClass(*this, builder, getLabels(), weight);
    label.emplace(builder, loc, getLabels(), shape);
  }
  if (getReduction() == "mean")
    weight = scaled(builder, loc, weight, 1.0 / static_cast<double>(ShapedType::getNumElements(shape.drop_back())));
  Value shifted = shiftedByMaximum(builder, loc, getLogits(), classes);
  Value terms = builder.create<ExpOp>(loc, shifted);
  Value sum = builder.create<ReduceSumOp>(loc, terms, classes, /*keep_dims=*/true);
  if (wanted[0]) {
    Value softmax = builder.create<RealDivOp>(loc, terms, sum), slope;
    if (label) {
      slope = label->choose(builder.create<SubOp>(loc, softmax, scalarLike(builder, loc, 1, terms)), softmax);
    } else {
      Value total = builder.create<ReduceSumOp>(loc, getLabels(), classes, /*keep_dims=*/true);
      slope = builder.create<SubOp>(loc, builder.create<MulOp>(loc, softmax, total), getLabels());
    }
    gradients[0] = builder.create<MulOp>(loc, slope, weight);
  }
  if (wanted[1]) {
    Value surprise = builder.create<SubOp>(loc, builder.create<LogOp>(loc, sum), shifted);
    gradients[1] = builder.create<MulOp>(loc, surprise, weight);
  }
  return success();
}

//===-- rule, cost --------------------------------------------------------===//

ShardingRule CrossEntropyOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getLogits());
  bool reduces = getReduction() != "none";
  ShardingRule rule = ruleWithFactors(shape, reduces ? FactorKind::Reduction : FactorKind::PassThrough);
  rule.factors.back().kind = FactorKind::PassThrough; // completed on the way
  std::vector<DimFactors> dims = identityDims(shape.size()), rows(dims.begin(), dims.end() - 1);
  rule.operands = {dims, getSparse() ? rows : dims};
  rule.results = {reduces ? std::vector<DimFactors>() : rows};
  return rule;
}

OperatorCost CrossEntropyOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = 6 * static_cast<double>(msc::elementCount(operands[0])); // maximum, subtract, exp, sum, choose, sum
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind CrossEntropyOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> CrossEntropyOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  ArrayRef<int64_t> shape = typeOf(getLogits()).getShape();
  int64_t classes = shape.size() - 1;
  std::optional<ClassOfRow> label;
  if (getSparse())
    label.emplace(builder, loc, operands[1], shape);
  Value shifted = shiftedByMaximum(builder, loc, operands[0], classes);
  Value terms = builder.create<ExpOp>(loc, shifted);
  Value logSum = builder.create<LogOp>(loc, builder.create<ReduceSumOp>(loc, terms, classes, /*keep_dims=*/true));
  Value surprise = builder.create<SubOp>(loc, logSum, shifted);
  surprise = label ? label->choose(surprise, scalarLike(builder, loc, 0, surprise))
                   : builder.create<MulOp>(loc, operands[1], surprise).getResult();
  Value rows = builder.create<ReduceSumOp>(loc, surprise, classes, /*keep_dims=*/false);
  if (getReduction() == "none")
    return {rows};
  if (getReduction() == "sum")
    return {builder.create<ReduceSumOp>(loc, rows, ArrayRef<int64_t>(), false)};
  return {builder.create<ReduceMeanOp>(loc, rows, ArrayRef<int64_t>(), false)};
}
