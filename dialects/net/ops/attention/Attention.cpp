#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

using AttentionOp = ScaledDotProductAttentionOp;
using AttentionGradOp = ScaledDotProductAttentionGradOp;
using AttentionMaskGradOp = ScaledDotProductAttentionMaskGradOp;

//===-- constraints and result types --------------------------------------===//

/// Operands 0 to 2 are queries, keys and values.
static LogicalResult checkAttention(const Inference &at, int64_t heads) {
  if (failed(at.checkElement(0, ElementSet::Float))) // C1
    return failure();
  if (failed(at.checkSameElementOf(0, 1)) || failed(at.checkSameElementOf(0, 2))) // C1
    return failure();
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

/// C4; operand `mask` may be left out.
static LogicalResult checkMask(const Inference &at, unsigned mask, int64_t heads) {
  if (mask >= at.operands.size())
    return success();
  if (at.element(mask) != at.element(0) && !at.element(mask).isInteger(1))
    return at.error("'attn_mask' of '" + at.opName + "' holds bool or " + elementText(at.element(0)) + ", but " +
                        at.name(mask) + " is " + elementText(at.element(mask)),
                    {mask});
  int64_t whole[] = {at.shape(0)[0], heads, at.shape(0)[1], at.shape(1)[1]};
  bool fits = at.rank(mask) <= 4;
  for (int64_t dim = 0; fits && dim < at.rank(mask); ++dim)
    fits = at.shape(mask)[dim] == 1 || at.shape(mask)[dim] == whole[4 - at.rank(mask) + dim];
  if (fits)
    return success();
  return at.error("'attn_mask' of '" + at.opName + "' repeats to " + shapeText(whole) +
                      " (batch, heads, queries, keys), but " + at.text(mask) + " is given",
                  {mask});
}

/// (B, heads, S), never narrower than f32.
static Type statisticsType(const Inference &at, int64_t heads) {
  Type element = at.element(0);
  return tensorOf({at.shape(0)[0], heads, at.shape(0)[1]}, element.isF64() ? element : Float32Type::get(element.getContext()));
}

LogicalResult AttentionOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t heads = op.getHeads();
  if (failed(checkAttention(at, heads)) || failed(checkMask(at, 3, heads)))
    return failure();
  results.append({tensorOf(at.shape(0), at.element(0)), statisticsType(at, heads)});
  return success();
}

static LogicalResult checkBackward(const Inference &at, int64_t heads) {
  if (failed(checkAttention(at, heads)) || failed(at.checkSameShape(0, 3)) || failed(at.checkSameShape(0, 5)))
    return failure();
  if (at.shape(4) != cast<RankedTensorType>(statisticsType(at, heads)).getShape())
    return at.error("'" + at.opName + "' takes one 'logsumexp' per head and query, but " + at.text(4) + " is given", {4});
  return checkMask(at, 6, heads);
}

LogicalResult AttentionGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkBackward(at, op.getHeads())))
    return failure();
  for (unsigned operand : {0, 1, 2})
    results.push_back(tensorOf(at.shape(operand), at.element(0)));
  return success();
}

/// Size of dimension `dim` of a mask seen as (B, heads, S, T): missing dimensions have size 1.
static int64_t maskSize(ArrayRef<int64_t> mask, int64_t dim) {
  int64_t own = dim - 4 + static_cast<int64_t>(mask.size());
  return own < 0 ? 1 : mask[own];
}

LogicalResult AttentionMaskGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t heads = op.getHeads();
  if (failed(checkBackward(at, heads)) || failed(at.checkElement(6, ElementSet::Float)))
    return failure();
  ArrayRef<int64_t> mask = at.shape(6);
  results.push_back(tensorOf({maskSize(mask, 0), heads, maskSize(mask, 2), at.shape(1)[1]}, at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult AttentionOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                         MutableArrayRef<Value> gradients) {
  if (dy[1])
    return emitError("'ScaledDotProductAttention' has no gradient through its second result, 'logsumexp'");
  auto gradient = builder.create<AttentionGradOp>(getLoc(), getQuery(), getKey(), getValue(), getOutput(), getLogsumexp(),
                                                  dy[0], getAttnMask(), getHeads(), getCausal(), getScaleAttr());
  for (unsigned operand : {0, 1, 2})
    if (wanted[operand])
      gradients[operand] = gradient.getResult(operand);
  if (getAttnMask() && wanted[3]) {
    Value ofHeads = builder.create<AttentionMaskGradOp>(getLoc(), getQuery(), getKey(), getValue(), getOutput(), getLogsumexp(),
                                                        dy[0], getAttnMask(), getHeads(), getCausal(), getScaleAttr());
    ArrayRef<int64_t> shape = cast<RankedTensorType>(getAttnMask().getType()).getShape();
    SmallVector<int64_t> wide;
    for (int64_t dim = 0; dim < 4; ++dim)
      wide.push_back(maskSize(shape, dim));
    Value sum = sumTo(builder, getLoc(), ofHeads, cast<RankedTensorType>(ofHeads.getType()).clone(wide));
    gradients[3] = reshaped(builder, getLoc(), sum, shape);
  }
  return success();
}

//===-- rules, costs ------------------------------------------------------===//

namespace {
/// Factors of attention, and the dimensions of its tensors.
struct AttentionFactors {
  ShardingRule rule;
  int32_t batch, queries, keys, heads;
  std::vector<DimFactors> query, key, statistics; ///< `key`: of keys and values

  /// A mask has the factors of the dimensions along which it does not repeat.
  std::vector<DimFactors> mask(Value value) const {
    std::vector<int64_t> shape = shapeOf(value);
    std::vector<DimFactors> all = {{batch}, {heads}, {queries}, {keys}}, dims(all.end() - shape.size(), all.end());
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] == 1)
        dims[dim].clear();
    return dims;
  }
};
} // namespace

static FactorKind summedIf(bool sums) {
  return sums ? FactorKind::Reduction : FactorKind::PassThrough;
}

/// Keys and values whose one head all heads of the queries share are whole where those are cut; their gradients are sums over the heads then.
template <typename Op> static AttentionFactors attentionFactors(Op op, bool sumsQueries, bool sumsBatch = false, bool sumsHeads = false) {
  std::vector<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey());
  AttentionFactors made;
  made.batch = made.rule.add({.name = "b", .size = query[0], .kind = summedIf(sumsBatch)});
  made.queries = made.rule.add({.name = "s", .size = query[1], .kind = summedIf(sumsQueries)});
  made.keys = made.rule.add({.name = "t",
                             .size = key[1],
                             .kind = FactorKind::Replicated,
                             .reason = "every query attends to keys of the whole sequence"});
  // Heads that share keys stay together: as many blocks as heads of the keys.
  const int64_t size = query[2] / static_cast<int64_t>(op.getHeads());
  const bool isShared = key[2] == size && query[2] > size;
  const int64_t block = isShared ? size : query[2] / (key[2] / size);
  made.heads = made.rule.add({.name = "h",
                              .size = query[2],
                              .kind = isShared && sumsHeads ? FactorKind::Reduction : FactorKind::Blocked,
                              .block = block,
                              .reason = block == size ? "a head's elements stay together" : "heads that share keys stay together"});
  made.query = {{made.batch}, {made.queries}, {made.heads}};
  made.key = {{made.batch}, {made.keys}, {made.heads}};
  if (isShared)
    made.key.back() = {made.rule.add(
        {.name = "k", .size = key[2], .kind = FactorKind::Replicated, .reason = "all heads of the queries share the keys"})};
  made.statistics = {{made.batch}, {made.heads}, {made.queries}};
  return made;
}

ShardingRule AttentionOp::shardingRule() {
  AttentionFactors made = attentionFactors(*this, false);
  made.rule.operands = {made.query, made.key, made.key};
  if (getAttnMask())
    made.rule.operands.push_back(made.mask(getAttnMask()));
  made.rule.results = {made.query, made.statistics};
  return made.rule;
}

static void setBackwardOperands(AttentionFactors &made, Value mask) {
  made.rule.operands = {made.query, made.key, made.key, made.query, made.statistics, made.query};
  if (mask)
    made.rule.operands.push_back(made.mask(mask));
}

ShardingRule AttentionGradOp::shardingRule() {
  AttentionFactors made = attentionFactors(*this, true, false, true);
  setBackwardOperands(made, getAttnMask());
  made.rule.results = {made.query, made.key, made.key};
  return made.rule;
}

ShardingRule AttentionMaskGradOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getDmask());
  AttentionFactors made = attentionFactors(*this, shape[2] == 1, shape[0] == 1);
  setBackwardOperands(made, getAttnMask());
  made.rule.results = {{{made.batch}, {made.heads}, {made.queries}, {made.keys}}};
  for (size_t dim : {0, 2})
    if (shape[dim] == 1)
      made.rule.results[0][dim].clear();
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

OperatorCost AttentionMaskGradOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return attentionCost(*this, getCausal(), 2, operands, results); // scores and dp
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind AttentionOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AttentionGradOp::loweringKind() {
  return LoweringKind::Library;
}
LoweringKind AttentionMaskGradOp::loweringKind() {
  return LoweringKind::Library;
}
