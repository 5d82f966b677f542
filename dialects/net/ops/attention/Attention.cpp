#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

using AttentionOp = ScaledDotProductAttentionOp;
using AttentionGradOp = ScaledDotProductAttentionGradOp;

//===-- constraints and result types --------------------------------------===//

/// Operands 0 to 2 are queries, keys and values.
static LogicalResult checkAttention(const Inference &at, int64_t heads) {
  if (failed(at.checkSameElement(ElementSet::Float))) // C1
    return failure();
  if (!at.element(0).isF32() && !at.element(0).isF64()) // C1
    return at.error("'" + at.opName + "' takes tensors of f32 or f64, but " + at.name(0) + " is " + elementText(at.element(0)),
                    {0}, "bring it to f32 with Cast");
  for (unsigned operand : {0, 1, 2})
    if (at.rank(operand) != 3) // C1
      return at.error("'" + at.opName + "' takes (batch, sequence, heads * size), but " + at.text(operand) + " is given", {operand});
  int64_t width = at.shape(0)[2];
  if (heads < 1 || width == 0 || width % heads != 0) // C2
    return at.error("'heads' of '" + at.opName + "' is " + Twine(heads) + ", which does not divide the width " + Twine(width) +
                        " of " + at.name(0),
                    {0});
  int64_t size = width / heads, shared = at.shape(1)[2] / size;
  if (shared == 0 || at.shape(1)[2] % size != 0 || heads % shared != 0) // C2
    return at.error("'" + at.opName + "' with " + Twine(heads) + " heads of " + Twine(size) + " elements does not take " +
                        at.text(1),
                    {1}, "its width is that of one head times a divisor of the number of heads");
  if (at.shape(1) != at.shape(2) || at.shape(1)[0] != at.shape(0)[0]) // C3
    return at.error("'" + at.opName + "' of " + at.text(0) + " takes keys and values of one shape and its batch, but " +
                        at.text(1) + " and " + at.text(2) + " are given",
                    {1, 2});
  if (at.shape(1)[1] == 0) // C3
    return at.error("'" + at.opName + "' of " + at.text(1) + " has no keys", {1});
  return success();
}

/// (B, heads, S).
static Type statisticsType(const Inference &at, int64_t heads) {
  return tensorOf({at.shape(0)[0], heads, at.shape(0)[1]}, at.element(0));
}

LogicalResult AttentionOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t heads = op.getHeads();
  if (failed(checkAttention(at, heads)))
    return failure();
  results.append({tensorOf(at.shape(0), at.element(0)), statisticsType(at, heads)});
  return success();
}

LogicalResult AttentionGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t heads = op.getHeads();
  if (failed(checkAttention(at, heads)) || failed(at.checkSameShape(0, 3)) || failed(at.checkSameShape(0, 5)))
    return failure();
  if (at.shape(4) != cast<RankedTensorType>(statisticsType(at, heads)).getShape())
    return at.error("'" + at.opName + "' takes one 'logsumexp' per head and query, but " + at.text(4) + " is given", {4});
  for (unsigned operand : {0, 1, 2})
    results.push_back(tensorOf(at.shape(operand), at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult AttentionOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                         MutableArrayRef<Value> gradients) {
  if (dy[1])
    return emitError("'ScaledDotProductAttention' has no gradient through its second result, 'logsumexp'");
  auto gradient = builder.create<AttentionGradOp>(getLoc(), getQuery(), getKey(), getValue(), getOutput(), getLogsumexp(),
                                                  dy[0], getHeads(), getCausal(), getScaleAttr());
  for (unsigned operand : {0, 1, 2})
    if (wanted[operand])
      gradients[operand] = gradient.getResult(operand);
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

namespace {
/// Factors of attention, and the dimensions of its tensors.
struct AttentionFactors {
  ShardingRule rule;
  std::vector<DimFactors> queries, keys, statistics;
};
} // namespace

template <typename Op> static AttentionFactors attentionFactors(Op op, bool sumsQueries) {
  std::vector<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey());
  AttentionFactors made;
  int32_t batch = made.rule.add({.name = "b", .size = query[0]});
  int32_t queries = made.rule.add(
      {.name = "s", .size = query[1], .kind = sumsQueries ? FactorKind::Reduction : FactorKind::PassThrough});
  int32_t keys = made.rule.add({.name = "t",
                                .size = key[1],
                                .kind = FactorKind::Replicated,
                                .reason = "every query attends to keys of the whole sequence"});
  // Heads that share keys stay together: as many blocks as heads of the keys.
  int64_t size = query[2] / static_cast<int64_t>(op.getHeads());
  int32_t heads = made.rule.add({.name = "h", .size = query[2], .kind = FactorKind::Blocked, .block = query[2] / (key[2] / size)});
  made.queries = {{batch}, {queries}, {heads}};
  made.keys = {{batch}, {keys}, {heads}};
  made.statistics = {{batch}, {heads}, {queries}};
  return made;
}

ShardingRule AttentionOp::shardingRule() {
  AttentionFactors made = attentionFactors(*this, false);
  made.rule.operands = {made.queries, made.keys, made.keys};
  made.rule.results = {made.queries, made.statistics};
  return made.rule;
}

ShardingRule AttentionGradOp::shardingRule() {
  AttentionFactors made = attentionFactors(*this, true);
  made.rule.operands = {made.queries, made.keys, made.keys, made.queries, made.statistics, made.queries};
  made.rule.results = {made.queries, made.keys, made.keys};
  return made.rule;
}

/// `products` matrix products of queries, keys and the size of a head.
static OperatorCost attentionCost(Operation *op, bool causal, double products, ArrayRef<std::vector<int64_t>> operands,
                                  ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(op, operands, results);
  double scores = static_cast<double>(msc::elementCount(operands[0])) * static_cast<double>(operands[1][1]);
  cost.flops = 2 * products * scores * (causal ? 0.5 : 1);
  return cost;
}

OperatorCost AttentionOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return attentionCost(*this, getCausal(), 2, operands, results);
}

OperatorCost AttentionGradOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return attentionCost(*this, getCausal(), 7, operands, results); // scores and dp twice
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind AttentionOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AttentionGradOp::loweringKind() {
  return LoweringKind::Library;
}
