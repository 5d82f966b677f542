#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

/// "columns of the left (32)", "rows of the left, transposed (32)".
static std::string contractedText(bool left, bool transposed, int64_t size) {
  std::string text = left != transposed ? "columns" : "rows";
  return text + (left ? " of the left" : " of the right") + (transposed ? ", transposed (" : " (") +
         std::to_string(size) + ")";
}

static LogicalResult checkElements(const Inference &at) {
  if (failed(at.checkSameElement(ElementSet::Number))) // C1
    return failure();
  for (unsigned operand : {0u, 1u}) // C2
    if (at.rank(operand) < 2)
      return at.error("cannot multiply " + at.text(0) + " by " + at.text(1) + ": " + at.name(operand) + " has " +
                          Twine(at.rank(operand)) + (at.rank(operand) == 1 ? " dimension" : " dimensions") +
                          ", 'MatMul' needs at least 2",
                      {operand});
  return success();
}

/// Broadcasts the dimensions before the last two (C4).
static FailureOr<SmallVector<int64_t>> batchShape(const Inference &at) {
  ArrayRef<int64_t> left = at.shape(0).drop_back(2), right = at.shape(1).drop_back(2);
  SmallVector<int64_t> batch(std::max(left.size(), right.size()), 1);
  for (size_t back = 1; back <= batch.size(); ++back) {
    int64_t l = back <= left.size() ? left[left.size() - back] : 1;
    int64_t r = back <= right.size() ? right[right.size() - back] : 1;
    if (l != r && l != 1 && r != 1) {
      (void)at.error("cannot multiply " + at.text(0) + " by " + at.text(1) + ": batch dimensions " + Twine(l) +
                         " and " + Twine(r) + " differ",
                     {1});
      return failure();
    }
    batch[batch.size() - back] = l == 1 ? r : l;
  }
  return batch;
}

LogicalResult MatMulOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkElements(at)))
    return failure();
  ArrayRef<int64_t> left = at.shape(0).take_back(2), right = at.shape(1).take_back(2);
  bool ta = op.getTransposeA(), tb = op.getTransposeB();
  if (left[!ta] != right[tb]) // C3
    return at.error(
        "cannot multiply " + at.text(0) + " by " + at.text(1) + ": " + contractedText(true, ta, left[!ta]) + " and " +
            contractedText(false, tb, right[tb]) + " differ",
        {1}, left[!ta] == right[!tb] ? Twine(tb ? "transpose_b: false fits" : "transpose_b: true fits") : Twine());
  FailureOr<SmallVector<int64_t>> shape = batchShape(at);
  if (failed(shape))
    return failure();
  if (op.getSumBatch().value_or(false)) {
    if (!ta || tb || at.shape(0).drop_back(2) != at.shape(1).drop_back(2)) // C5
      return at.error("'sum_batch' goes with transpose_a: true, transpose_b: false and equal batch dimensions", {},
                      "leave out sum_batch and sum the result with ReduceSum");
    shape->clear();
  }
  shape->append({left[ta], right[!tb]});
  results.push_back(tensorOf(*shape, at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

/// The gradient of a matrix `x2` under batched `x1`: batches are contracted like rows.
static Value gradientOfMatrix(OpBuilder &builder, MatMulOp op, Value dy) {
  Value x = op.getX1(), y = dy;
  if (op.getTransposeB())
    std::swap(x, y);
  return builder.create<MatMulOp>(op.getLoc(), x, y, true, false, builder.getBoolAttr(true));
}

LogicalResult MatMulOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                      const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  Value dy = resultGradients[0], a = getX1(), b = getX2();
  bool ta = getTransposeA(), tb = getTransposeB();
  auto product = [&](Value x, Value y, bool tx, bool ty, Value like) -> Value {
    Value full = builder.create<MatMulOp>(getLoc(), x, y, tx, ty, BoolAttr());
    return sumTo(builder, getLoc(), full, like.getType());
  };
  if (wanted[0])
    gradients[0] = ta ? product(b, dy, tb, true, a) : product(dy, b, false, !tb, a);
  if (!wanted[1])
    return success();
  bool batchedMatrix =
      cast<RankedTensorType>(b.getType()).getRank() == 2 && cast<RankedTensorType>(a.getType()).getRank() > 2 && !ta;
  if (batchedMatrix)
    gradients[1] = gradientOfMatrix(builder, *this, dy);
  else
    gradients[1] = tb ? product(dy, a, true, ta, b) : product(a, dy, !ta, false, b);
  return success();
}

//===-- rule, cost, lowering ----------------------------------------------===//

ShardingRule MatMulOp::shardingRule() {
  std::vector<int64_t> left = shapeOf(getX1()), right = shapeOf(getX2()), out = shapeOf(getOutput());
  bool ta = getTransposeA(), tb = getTransposeB();
  bool sums = getSumBatch().value_or(false);
  std::vector<int64_t> batch = sums ? std::vector<int64_t>(left.begin(), left.end() - 2)
                                    : std::vector<int64_t>(out.begin(), out.end() - 2);
  ShardingRule rule;
  for (size_t i = 0; i < batch.size(); ++i)
    rule.add({.name = batch.size() == 1 ? "b" : "b" + std::to_string(i),
              .size = batch[i],
              .kind = sums ? FactorKind::Reduction : FactorKind::PassThrough});
  int32_t m = rule.add({.name = "m", .size = out[out.size() - 2]});
  int32_t k = rule.add({.name = "k", .size = left[left.size() - (ta ? 2 : 1)], .kind = FactorKind::Reduction});
  int32_t n = rule.add({.name = "n", .size = out.back()});
  auto dims = [&](const std::vector<int64_t> &shape, int32_t first, int32_t second) {
    std::vector<DimFactors> result = broadcastDims({shape.begin(), shape.end() - 2}, batch);
    result.push_back({first});
    result.push_back({second});
    return result;
  };
  rule.operands = {ta ? dims(left, k, m) : dims(left, m, k), tb ? dims(right, n, k) : dims(right, k, n)};
  rule.results = {dims(out, m, n)};
  return rule;
}

OperatorCost MatMulOp::cost(ArrayRef<std::vector<int64_t>> operandShapes, ArrayRef<std::vector<int64_t>> resultShapes) {
  OperatorCost cost = defaultCost(*this, operandShapes, resultShapes);
  const std::vector<int64_t> &left = operandShapes[0];
  cost.flops *= 2.0 * static_cast<double>(left[left.size() - (getTransposeA() ? 2 : 1)]);
  if (getSumBatch().value_or(false))
    for (int64_t size : ArrayRef(left).drop_back(2))
      cost.flops *= static_cast<double>(size);
  return cost;
}

LoweringKind MatMulOp::loweringKind() {
  return LoweringKind::MatMul;
}
