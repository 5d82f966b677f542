#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

// UnsortedSegmentMax and UnsortedSegmentMin; their sum stands with the look-ups in Gather.cpp.

template <typename Adaptor>
static LogicalResult inferSegments(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  Type element = at.element(1);
  if (!element.isInteger(32) && !element.isInteger(64)) // C1
    return at.error("'" + at.opName + "' takes indices i32 or i64, but " + at.name(1) + " is " + elementText(element), {1});
  if (failed(at.checkElement(0, ElementSet::Number))) // C1
    return failure();
  int64_t rank = at.rank(1), segments = op.getNumSegments();
  if (segments < 0) // C3
    return at.error("'" + Twine("num_segments") + "' of '" + at.opName + "' is negative");
  if (rank == 0 || rank > at.rank(0) || at.shape(0).take_front(rank) != at.shape(1)) // C2
    return at.error("'" + at.opName + "' of " + at.text(0) + " takes one number per row, but " + at.text(1) + " is given", {1});
  SmallVector<int64_t> shape{segments};
  llvm::append_range(shape, at.shape(0).drop_front(rank));
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult UnsortedSegmentMaxOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferSegments(at, op, results);
}
LogicalResult UnsortedSegmentMinOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferSegments(at, op, results);
}

/// Rows that have the extremum share what arrives at it.
template <typename Op> static Value shareOfEqual(OpBuilder &builder, Op op, Value dy) {
  Location loc = op.getLoc();
  Type type = cast<RankedTensorType>(dy.getType()).getElementType();
  Value extrema = builder.create<EmbeddingLookupOp>(loc, op.getOutput(), op.getSegmentIds());
  Value wins = builder.create<EqualOp>(loc, op.getInputX(), extrema);
  Value ones = builder.create<CastOp>(loc, wins, type);
  Value count = builder.create<UnsortedSegmentSumOp>(loc, ones, op.getSegmentIds(), op.getNumSegments());
  Value share = builder.create<DivNoNanOp>(loc, dy, count);
  Value ofRows = builder.create<EmbeddingLookupOp>(loc, share, op.getSegmentIds());
  return builder.create<MulOp>(loc, ofRows, ones);
}

LogicalResult UnsortedSegmentMaxOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                                  MutableArrayRef<Value> gradients) {
  gradients[0] = shareOfEqual(builder, *this, dy[0]);
  return success();
}
LogicalResult UnsortedSegmentMinOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                                  MutableArrayRef<Value> gradients) {
  gradients[0] = shareOfEqual(builder, *this, dy[0]);
  return success();
}

/// Factors of the numbers first, which leave partial extrema, then those of the result.
template <typename Op> static ShardingRule segmentRule(Op op, msc::ReduceKind kind) {
  std::vector<int64_t> ids = shapeOf(op.getSegmentIds()), result = shapeOf(op.getOutput());
  ShardingRule rule = ruleWithFactors(ids, FactorKind::Reduction);
  for (Factor &factor : rule.factors)
    factor.reduce = kind;
  std::vector<DimFactors> numbers = identityDims(ids.size()), rows = numbers, table;
  for (size_t dim = 0; dim < result.size(); ++dim)
    table.push_back({rule.add({.name = factorName(rule.factors.size()), .size = result[dim]})});
  rows.insert(rows.end(), table.begin() + 1, table.end());
  rule.operands = {rows, numbers};
  rule.results = {table};
  return rule;
}

ShardingRule UnsortedSegmentMaxOp::shardingRule() {
  return segmentRule(*this, msc::ReduceKind::Max);
}
ShardingRule UnsortedSegmentMinOp::shardingRule() {
  return segmentRule(*this, msc::ReduceKind::Min);
}

/// One comparison per element of the rows.
static OperatorCost segmentCost(Operation *op, ArrayRef<std::vector<int64_t>> operands,
                                ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  cost.flops = static_cast<double>(msc::elementCount(operands[0]));
  return cost;
}
OperatorCost UnsortedSegmentMaxOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return segmentCost(*this, operands, results);
}
OperatorCost UnsortedSegmentMinOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return segmentCost(*this, operands, results);
}

LoweringKind UnsortedSegmentMaxOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind UnsortedSegmentMinOp::loweringKind() {
  return LoweringKind::Library;
}
