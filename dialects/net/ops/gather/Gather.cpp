#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t normalised(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

static LogicalResult checkIndices(const Inference &at, unsigned operand) {
  Type element = at.element(operand);
  if (element.isInteger(32) || element.isInteger(64))
    return success();
  return at.error("'" + at.opName + "' takes indices i32 or i64, but " + at.name(operand) + " is " + elementText(element),
                  {operand});
}

/// `shape` with dimension `axis` replaced by `by`.
static SmallVector<int64_t> replaced(ArrayRef<int64_t> shape, int64_t axis, ArrayRef<int64_t> by) {
  SmallVector<int64_t> result(shape.take_front(axis));
  result.append(by.begin(), by.end());
  result.append(shape.begin() + axis + 1, shape.end());
  return result;
}

LogicalResult GatherOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 1))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, op.getAxis()); // C2
  if (failed(dims))
    return failure();
  int64_t axis = dims->front(), batch = op.getBatchDims();
  bool fits = batch >= 0 && batch <= axis && batch <= at.rank(1) && at.shape(0).take_front(batch) == at.shape(1).take_front(batch);
  if (!fits) // C3
    return at.error("'Gather' along dimension " + Twine(axis) + " of " + at.text(0) + " by " + at.text(1) +
                        " does not have batch_dims: " + Twine(batch),
                    {1}, "so many dimensions stand in front of both, with equal sizes");
  results.push_back(tensorOf(replaced(at.shape(0), axis, at.shape(1).drop_front(batch)), at.element(0)));
  return success();
}

LogicalResult EmbeddingLookupOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 1))) // C1
    return failure();
  if (at.rank(0) == 0) // C2
    return at.error("'EmbeddingLookup' of " + at.text(0) + " has no rows", {0});
  results.push_back(tensorOf(replaced(at.shape(0), 0, at.shape(1)), at.element(0)));
  return success();
}

static LogicalResult checkSize(const Inference &at, StringRef attribute, int64_t size) {
  if (size >= 0)
    return success();
  return at.error("'" + attribute + "' of '" + at.opName + "' is negative");
}

LogicalResult GatherGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 0)) || failed(at.checkElement(1, ElementSet::Number)) || // C1
      failed(checkSize(at, "size", static_cast<int64_t>(op.getSize()))))               // C3
    return failure();
  int64_t axis = op.getAxis(), behind = at.rank(1) - at.rank(0) - axis;
  if (axis < 0 || behind < 0 || at.shape(1).slice(axis, at.rank(0)) != at.shape(0)) // C2
    return at.error("'GatherGrad' along dimension " + Twine(axis) + " of " + at.text(1) + " does not take the indices " +
                        at.text(0),
                    {0});
  SmallVector<int64_t> shape(at.shape(1).take_front(axis));
  shape.push_back(op.getSize());
  shape.append(at.shape(1).end() - behind, at.shape(1).end());
  results.push_back(tensorOf(shape, at.element(1)));
  return success();
}

LogicalResult UnsortedSegmentSumOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 1)) || failed(at.checkElement(0, ElementSet::Number)) || // C1
      failed(checkSize(at, "num_segments", static_cast<int64_t>(op.getNumSegments()))))
    return failure();
  int64_t rank = at.rank(1);
  if (rank == 0 || rank > at.rank(0) || at.shape(0).take_front(rank) != at.shape(1)) // C2
    return at.error("'" + at.opName + "' of " + at.text(0) + " takes one number per row, but " + at.text(1) + " is given", {1});
  SmallVector<int64_t> shape{static_cast<int64_t>(op.getNumSegments())};
  llvm::append_range(shape, at.shape(0).drop_front(rank));
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult ScatterAddOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 1)) || failed(at.checkElement(0, ElementSet::Number)) || failed(at.checkSameElementOf(0, 2))) // C1
    return failure();
  bool fits = at.rank(0) > 0 && at.rank(1) > 0;
  if (!fits || at.shape(2) != ArrayRef<int64_t>(replaced(at.shape(0), 0, at.shape(1)))) // C2
    return at.error("'ScatterAdd' of " + at.text(0) + " takes one row per index of " + at.text(1) + ", but " + at.text(2) +
                        " is given",
                    {2});
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

/// Operand 1 has the shape of operand 0 but for `dim`, which `other` leaves open.
static LogicalResult checkAlongside(const Inference &at, int64_t dim, bool isOpen) {
  bool fits = at.rank(0) == at.rank(1);
  for (int64_t i = 0; fits && i < at.rank(0); ++i)
    fits = at.shape(0)[i] == at.shape(1)[i] || (isOpen && i == dim);
  if (fits)
    return success();
  return at.error("'" + at.opName + "' along dimension " + Twine(dim) + " of " + at.text(0) + " does not take " + at.text(1), {1});
}

LogicalResult GatherDOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 1))) // C1
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, op.getDim()); // C2
  if (failed(dims) || failed(checkAlongside(at, dims->front(), true)))    // C3
    return failure();
  results.push_back(tensorOf(at.shape(1), at.element(0)));
  return success();
}

LogicalResult GatherDGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkIndices(at, 0)) || failed(at.checkElement(1, ElementSet::Number)) || // C1
      failed(checkSize(at, "size", static_cast<int64_t>(op.getSize()))))               // C3
    return failure();
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, op.getDim());
  if (failed(dims) || failed(checkAlongside(at, dims->front(), false))) // C2
    return failure();
  results.push_back(tensorOf(replaced(at.shape(0), dims->front(), static_cast<int64_t>(op.getSize())), at.element(1)));
  return success();
}

//===-- gradients ---------------------------------------------------------===//

LogicalResult GatherOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                      MutableArrayRef<Value> gradients) {
  if (getBatchDims() != 0)
    return expansionGradient(builder, *this, dy, wanted, gradients);
  RankedTensorType table = typeOf(getInputParams());
  int64_t axis = normalised(getAxis(), table.getRank());
  if (wanted[0])
    gradients[0] = builder.create<GatherGradOp>(getLoc(), getInputIndices(), dy[0], axis, table.getDimSize(axis));
  return success();
}

LogicalResult EmbeddingLookupOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                               MutableArrayRef<Value> gradients) {
  if (wanted[0])
    gradients[0] = builder.create<GatherGradOp>(getLoc(), getInputIndices(), dy[0], 0,
                                                typeOf(getInputParams()).getDimSize(0), getOffset());
  return success();
}

LogicalResult UnsortedSegmentSumOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                                  MutableArrayRef<Value> gradients) {
  if (wanted[0]) // rows that were left out get zeros
    gradients[0] = builder.create<EmbeddingLookupOp>(getLoc(), dy[0], getSegmentIds());
  return success();
}

LogicalResult ScatterAddOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                          MutableArrayRef<Value> gradients) {
  if (wanted[0])
    gradients[0] = dy[0];
  if (wanted[2])
    gradients[2] = builder.create<EmbeddingLookupOp>(getLoc(), dy[0], getIndices());
  return success();
}

LogicalResult GatherDOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                       MutableArrayRef<Value> gradients) {
  RankedTensorType x = typeOf(getX());
  int64_t dim = normalised(getDim(), x.getRank());
  if (wanted[0])
    gradients[0] = builder.create<GatherDGradOp>(getLoc(), getIndex(), dy[0], dim, x.getDimSize(dim));
  return success();
}

//===-- rules -------------------------------------------------------------===//

namespace {
/// Factors of a table that is looked up along `axis`: those of the indices first, then those of the table.
struct LookupFactors {
  ShardingRule rule;
  std::vector<DimFactors> table, indices, rows; ///< of the tensors' dimensions
};
} // namespace

/// `summed`: which of the two is added up, the looked up dimension of the table or the dimensions of the indices.
static LookupFactors lookupFactors(const std::vector<int64_t> &table, const std::vector<int64_t> &indices, int64_t axis,
                                   bool sumsTable) {
  LookupFactors result;
  auto add = [&](int64_t size, bool isSummed) -> DimFactors {
    return {result.rule.add({.name = factorName(result.rule.factors.size()),
                             .size = size,
                             .kind = isSummed ? FactorKind::Reduction : FactorKind::PassThrough})};
  };
  for (int64_t size : indices)
    result.indices.push_back(add(size, !sumsTable));
  for (size_t dim = 0; dim < table.size(); ++dim)
    result.table.push_back(add(table[dim], sumsTable && static_cast<int64_t>(dim) == axis));
  result.rows = result.table;
  result.rows.erase(result.rows.begin() + axis);
  result.rows.insert(result.rows.begin() + axis, result.indices.begin(), result.indices.end());
  return result;
}

/// Parts of a table are added up; bools cannot be.
static void keepBoolsWhole(Operation *op, ShardingRule &rule) {
  if (!typeOf(op->getOperand(0)).getElementType().isInteger(1))
    return;
  for (Factor &factor : rule.factors)
    if (factor.kind == FactorKind::Reduction) {
      factor.kind = FactorKind::Replicated;
      factor.reason = "what ranks find of bools cannot be added up";
    }
}

static ShardingRule lookupRule(Operation *op, int64_t axis) {
  LookupFactors factors = lookupFactors(shapeOf(op->getOperand(0)), shapeOf(op->getOperand(1)), axis, true);
  factors.rule.operands = {factors.table, factors.indices};
  factors.rule.results = {factors.rows};
  keepBoolsWhole(op, factors.rule);
  return factors.rule;
}

/// Table and indices share their first dimensions; what ranks find is completed on the way.
static ShardingRule batchedRule(GatherOp op, int64_t axis, int64_t batch) {
  std::vector<int64_t> table = shapeOf(op.getInputParams()), indices = shapeOf(op.getInputIndices());
  ShardingRule rule = ruleWithFactors(table);
  std::vector<DimFactors> own = identityDims(table.size()), numbers(own.begin(), own.begin() + batch), rows = own;
  for (size_t dim = batch; dim < indices.size(); ++dim)
    numbers.push_back({rule.add({.name = factorName(rule.factors.size()), .size = indices[dim]})});
  rows.erase(rows.begin() + axis);
  rows.insert(rows.begin() + axis, numbers.begin() + batch, numbers.end());
  rule.operands = {own, numbers};
  rule.results = {rows};
  return rule;
}

ShardingRule GatherOp::shardingRule() {
  if (int64_t batch = getBatchDims(); batch != 0)
    return batchedRule(*this, normalised(getAxis(), typeOf(getInputParams()).getRank()), batch);
  return lookupRule(*this, normalised(getAxis(), typeOf(getInputParams()).getRank()));
}
ShardingRule EmbeddingLookupOp::shardingRule() {
  return lookupRule(*this, 0);
}

ShardingRule GatherGradOp::shardingRule() {
  LookupFactors factors = lookupFactors(shapeOf(getOutput()), shapeOf(getIndices()), getAxis(), false);
  factors.rule.operands = {factors.indices, factors.rows};
  factors.rule.results = {factors.table};
  return factors.rule;
}

ShardingRule UnsortedSegmentSumOp::shardingRule() {
  LookupFactors factors = lookupFactors(shapeOf(getOutput()), shapeOf(getSegmentIds()), 0, false);
  factors.rule.operands = {factors.rows, factors.indices};
  factors.rule.results = {factors.table};
  return factors.rule;
}

/// The indices are added up on the way: their sum is partial, the tensor itself is not.
ShardingRule ScatterAddOp::shardingRule() {
  LookupFactors factors = lookupFactors(shapeOf(getInputX()), shapeOf(getIndices()), 0, false);
  for (Factor &factor : factors.rule.factors)
    factor.kind = FactorKind::PassThrough;
  factors.rule.operands = {factors.table, factors.indices, factors.rows};
  factors.rule.results = {factors.table};
  return factors.rule;
}

/// Factors of the dimensions, and one more for the other size of dimension `dim`.
static ShardingRule alongsideRule(const std::vector<int64_t> &shape, int64_t dim, int64_t other, bool sumsOther) {
  ShardingRule rule = ruleWithFactors(shape);
  if (!sumsOther)
    rule.factors[dim].kind = FactorKind::Reduction;
  rule.add({.name = factorName(shape.size()),
            .size = other,
            .kind = sumsOther ? FactorKind::Reduction : FactorKind::PassThrough});
  return rule;
}

ShardingRule GatherDOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getOutput());
  int64_t dim = normalised(getDim(), shape.size());
  ShardingRule rule = alongsideRule(shape, dim, shapeOf(getX())[dim], true);
  std::vector<DimFactors> dims = identityDims(shape.size()), x = dims;
  x[dim] = {static_cast<int32_t>(shape.size())};
  rule.operands = {x, dims};
  rule.results = {dims};
  keepBoolsWhole(*this, rule);
  return rule;
}

ShardingRule GatherDGradOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getIndex());
  int64_t dim = normalised(getDim(), shape.size());
  ShardingRule rule = alongsideRule(shape, dim, getSize(), false);
  std::vector<DimFactors> dims = identityDims(shape.size()), x = dims;
  x[dim] = {static_cast<int32_t>(shape.size())};
  rule.operands = {dims, dims};
  rule.results = {x};
  return rule;
}

//===-- costs -------------------------------------------------------------===//

/// Only the rows that are looked up are read.
static OperatorCost lookupCost(Operation *op, ArrayRef<std::vector<int64_t>> operands,
                               ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  double index = static_cast<double>(msc::elementCount(operands[1])) * elementBytes(op->getOperand(1).getType());
  cost.bytesRead = index + cost.bytesWritten;
  return cost;
}
OperatorCost GatherOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return lookupCost(*this, operands, results);
}
OperatorCost EmbeddingLookupOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return lookupCost(*this, operands, results);
}
OperatorCost GatherDOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return lookupCost(*this, operands, results);
}

/// One addition per element of the rows.
static OperatorCost sumCost(Operation *op, unsigned rows, ArrayRef<std::vector<int64_t>> operands,
                            ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = static_cast<double>(msc::elementCount(operands[rows]));
  return cost;
}
OperatorCost GatherGradOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return sumCost(*this, 1, operands, results);
}
OperatorCost UnsortedSegmentSumOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return sumCost(*this, 0, operands, results);
}
OperatorCost ScatterAddOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return sumCost(*this, 2, operands, results);
}
OperatorCost GatherDGradOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return sumCost(*this, 1, operands, results);
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind GatherOp::loweringKind() {
  return getBatchDims() == 0 ? LoweringKind::Library : LoweringKind::Expanded;
}

/// Element by element: the indices are repeated along the dimensions that they do not have. Only with `batch_dims`.
SmallVector<Value> GatherOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  ArrayRef<int64_t> table = typeOf(operands[0]).getShape(), result = typeOf(getOutput()).getShape();
  int64_t axis = normalised(getAxis(), table.size()), batch = getBatchDims(), size = table[axis];
  Value indices = operands[1];
  int64_t count = ShapedType::getNumElements(typeOf(indices).getShape().drop_front(batch));
  SmallVector<int64_t> narrow(table.size(), 1), wide(table);
  std::copy(table.begin(), table.begin() + batch, narrow.begin());
  narrow[axis] = wide[axis] = count;
  auto number = [&](int64_t value) { return scalarLike(builder, loc, static_cast<double>(value), indices); };
  Value isBelow = builder.create<LessOp>(loc, indices, number(0)); // GatherD counts those from the end
  Value counted = builder.create<SelectOp>(loc, isBelow, number(size), indices);
  Value repeated = builder.create<BroadcastToOp>(loc, reshaped(builder, loc, counted, narrow), wide);
  Value found = builder.create<GatherDOp>(loc, operands[0], repeated, axis);
  return {reshaped(builder, loc, found, result)};
}
LoweringKind EmbeddingLookupOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind GatherGradOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind UnsortedSegmentSumOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind GatherDOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind GatherDGradOp::loweringKind() {
  return LoweringKind::Library;
}

LoweringKind ScatterAddOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> ScatterAddOp::expand(OpBuilder &builder, ValueRange operands) {
  int64_t rows = typeOf(getInputX()).getDimSize(0);
  auto sums = builder.create<UnsortedSegmentSumOp>(getLoc(), operands[2], operands[1], rows);
  // Its rows are cut as those of the tensor that they are added to.
  size_t first = typeOf(getIndices()).getRank();
  setResultFactors(sums, llvm::to_vector(llvm::seq<int64_t>(first, first + typeOf(getInputX()).getRank())));
  return {builder.create<AddOp>(getLoc(), operands[0], sums)};
}
