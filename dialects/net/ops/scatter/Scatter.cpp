#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

static ArrayRef<int64_t> shapeOfValue(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

//===-- constraints and result types --------------------------------------===//

/// C1 of the indices, and C2: how many dimensions of operand 0 an index names.
static FailureOr<int64_t> checkedDepth(const Inference &at) {
  Type element = at.element(1);
  if (!element.isInteger(32) && !element.isInteger(64))
    return at.error("'" + at.opName + "' takes indices i32 or i64, but " + at.name(1) + " is " + elementText(element), {1});
  int64_t depth = at.rank(1) == 0 ? 0 : at.shape(1).back();
  if (depth < 1 || depth > at.rank(0))
    return at.error("an index of '" + at.opName + "' has 1 to " + Twine(at.rank(0)) + " numbers, one per dimension of " +
                        at.text(0) + ", but the last dimension of " + at.text(1) + " has " + Twine(depth),
                    {1});
  return depth;
}

/// The dimensions of the indices, then those that no index names.
static SmallVector<int64_t> slicesShape(const Inference &at, int64_t depth) {
  SmallVector<int64_t> shape(at.shape(1).drop_back());
  llvm::append_range(shape, at.shape(0).drop_front(depth));
  return shape;
}

LogicalResult GatherNdOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  FailureOr<int64_t> depth = checkedDepth(at);
  if (failed(depth))
    return failure();
  results.push_back(tensorOf(slicesShape(at, *depth), at.element(0)));
  return success();
}

static LogicalResult inferScatter(const Inference &at, SmallVectorImpl<Type> &results) {
  FailureOr<int64_t> depth = checkedDepth(at);
  if (failed(depth) || failed(at.checkElement(0, ElementSet::Number)) || failed(at.checkSameElementOf(0, 2))) // C1, C2
    return failure();
  if (SmallVector<int64_t> wanted = slicesShape(at, *depth); at.shape(2) != ArrayRef(wanted)) // C3
    return at.error("'" + at.opName + "' of " + at.text(0) + " with indices " + at.text(1) + " takes 'updates' of " +
                        shapeText(wanted) + ", but " + at.text(2) + " is given",
                    {2});
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult TensorScatterAddOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  return inferScatter(at, results);
}
LogicalResult TensorScatterUpdateOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(inferScatter(at, results)))
    return failure();
  return at.checkPlaces(0, ShapedType::getNumElements(at.shape(1)) + 1); // updates
}

//===-- gradients ---------------------------------------------------------===//

LogicalResult GatherNdOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                        MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}
LogicalResult TensorScatterAddOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                                MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}
LogicalResult TensorScatterUpdateOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                                   MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}

//===-- rules, costs ------------------------------------------------------===//

/// Factors of the tensor's dimensions first, then those of the indices.
static ShardingRule indexedRule(Operation *op, bool scatters) {
  std::vector<int64_t> tensor = shapeOf(op->getOperand(0)), indices = shapeOf(op->getOperand(1));
  ShardingRule rule = ruleWithFactors(tensor);
  std::vector<DimFactors> own = identityDims(tensor.size()), numbered, slices;
  for (int64_t size : indices)
    numbered.push_back({rule.add({.name = factorName(rule.factors.size()), .size = size})});
  Factor &numbers = rule.factors.back();
  numbers.kind = FactorKind::Replicated;
  numbers.reason = "an index has all its numbers on one rank";
  slices.assign(numbered.begin(), numbered.end() - 1);
  slices.insert(slices.end(), own.begin() + indices.back(), own.end());
  rule.operands = {own, numbered};
  if (scatters)
    rule.operands.push_back(slices);
  rule.results = {scatters ? own : slices};
  return rule;
}

ShardingRule GatherNdOp::shardingRule() {
  return indexedRule(*this, false);
}
ShardingRule TensorScatterAddOp::shardingRule() {
  return indexedRule(*this, true);
}
ShardingRule TensorScatterUpdateOp::shardingRule() {
  return indexedRule(*this, true);
}

OperatorCost GatherNdOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  double index = static_cast<double>(msc::elementCount(operands[1])) * elementBytes(getIndices().getType());
  cost.bytesRead = index + cost.bytesWritten; // only what is looked up is read
  return cost;
}
OperatorCost TensorScatterAddOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return defaultCost(*this, operands, results);
}
OperatorCost TensorScatterUpdateOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return defaultCost(*this, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind GatherNdOp::loweringKind() {
  return LoweringKind::Expanded;
}
LoweringKind TensorScatterAddOp::loweringKind() {
  return LoweringKind::Expanded;
}
LoweringKind TensorScatterUpdateOp::loweringKind() {
  return LoweringKind::Expanded;
}

namespace {

/// A tensor whose dimensions that indices name are one dimension of rows.
struct Rows {
  OpBuilder &builder;
  Operation *op;
  Location loc;
  SmallVector<int64_t> tensor, each; ///< shapes of the tensor and of a row
  int64_t depth, count;              ///< numbers of an index; rows

  Rows(OpBuilder &builder, Operation *op)
      : builder(builder), op(op), loc(op->getLoc()), tensor(shapeOfValue(op->getOperand(0))),
        depth(shapeOfValue(op->getOperand(1)).back()) {
    each.assign(tensor.begin() + depth, tensor.end());
    count = ShapedType::getNumElements(ArrayRef(tensor).take_front(depth));
  }

  Value number(Value like, int64_t value) { return scalarLike(builder, loc, static_cast<double>(value), like); }

  /// `leading` dimensions in front of those of a row.
  SmallVector<int64_t> rowsShape(ArrayRef<int64_t> leading) {
    SmallVector<int64_t> shape(leading);
    llvm::append_range(shape, each);
    return shape;
  }

  /// 0 <= x < size.
  Value isWithin(Value x, int64_t size) {
    Value above = builder.create<GreaterEqualOp>(loc, x, number(x, 0)), below = builder.create<LessOp>(loc, x, number(x, size));
    return builder.create<LogicalAndOp>(loc, above, below);
  }

  /// The row that each index names; -1 for one that lies outside.
  Value numbers(Value indices) {
    SmallVector<int64_t> leading(shapeOfValue(indices).drop_back());
    if (depth == 1)
      return reshaped(builder, loc, indices, leading);
    auto parts = builder.create<SplitOp>(loc, indices, static_cast<int64_t>(leading.size()), depth);
    Value row, valid;
    for (auto [dim, kept] : llvm::enumerate(parts.getOutputs())) {
      Value part = reshaped(builder, loc, kept, leading), within = isWithin(part, tensor[dim]);
      valid = valid ? builder.create<LogicalAndOp>(loc, valid, within).getResult() : within;
      if (row)
        row = builder.create<MulOp>(loc, row, number(row, tensor[dim]));
      row = row ? builder.create<AddOp>(loc, row, part).getResult() : part;
    }
    return builder.create<SelectOp>(loc, valid, row, number(row, -1));
  }

  /// Rows back in the shape of the tensor, cut as it is.
  Value whole(Value rows) {
    Value result = reshaped(builder, loc, rows, tensor);
    if (result != rows)
      setResultFactors(result.getDefiningOp(), llvm::to_vector(llvm::seq<int64_t>(0, tensor.size())));
    return result;
  }
};

} // namespace

SmallVector<Value> GatherNdOp::expand(OpBuilder &builder, ValueRange operands) {
  Rows rows(builder, *this);
  Value table = reshaped(builder, getLoc(), operands[0], rows.rowsShape(rows.count));
  return {builder.create<GatherOp>(getLoc(), table, rows.numbers(operands[1]), 0)};
}

/// A number stands for a row of one dimension at least.
static Value inRows(OpBuilder &builder, Rows &rows, Value indices) {
  Value numbers = rows.numbers(indices);
  ArrayRef<int64_t> shape = shapeOfValue(numbers);
  return shape.empty() ? reshaped(builder, rows.loc, numbers, {1}) : numbers;
}

SmallVector<Value> TensorScatterAddOp::expand(OpBuilder &builder, ValueRange operands) {
  Rows rows(builder, *this);
  Value numbers = inRows(builder, rows, operands[1]);
  Value updates = reshaped(builder, getLoc(), operands[2], rows.rowsShape(shapeOfValue(numbers)));
  Value sums = builder.create<UnsortedSegmentSumOp>(getLoc(), updates, numbers, rows.count);
  return {builder.create<AddOp>(getLoc(), operands[0], rows.whole(sums))};
}

/// Every row takes the last of the updates that name it: updates are counted from 1.
SmallVector<Value> TensorScatterUpdateOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  Rows rows(builder, *this);
  Value numbers = inRows(builder, rows, operands[1]);
  ArrayRef<int64_t> leading = shapeOfValue(numbers);
  int64_t count = ShapedType::getNumElements(leading);
  Value places = reshaped(builder, loc, builder.create<RangeOp>(loc, 1, count + 1, 1), leading);
  Value last = builder.create<UnsortedSegmentMaxOp>(loc, places, numbers, rows.count);
  Value updates = reshaped(builder, loc, operands[2], rows.rowsShape(count));
  Value taken = builder.create<EmbeddingLookupOp>(loc, updates, last, 1);
  SmallVector<int64_t> narrow(rows.each.size() + 1, 1);
  narrow[0] = rows.count;
  Value isTaken = builder.create<GreaterOp>(loc, last, rows.number(last, 0));
  Value old = reshaped(builder, loc, operands[0], rows.rowsShape(rows.count));
  Value result = builder.create<SelectOp>(loc, reshaped(builder, loc, isTaken, narrow), taken, old);
  return {rows.whole(result)};
}
