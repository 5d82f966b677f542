#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

static LogicalResult inferTriangle(const Inference &at, int64_t diagonal, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Number))) // C1
    return failure();
  if (at.rank(0) < 2)
    return at.error("'" + at.opName + "' takes matrices, but " + at.text(0) + " has " + Twine(at.rank(0)) +
                        (at.rank(0) == 1 ? " dimension" : " dimensions"),
                    {0});
  const int64_t rows = at.shape(0)[at.rank(0) - 2];
  if (failed(at.checkPlaces(diagonal, diagonal)) || failed(at.checkPlaces(diagonal, diagonal + rows)) ||
      failed(at.checkPlaces(0, at.shape(0).back())))
    return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult TriuOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferTriangle(at, op.getDiagonal(), results);
}
LogicalResult TrilOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return inferTriangle(at, op.getDiagonal(), results);
}

LogicalResult TriuOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<TriuOp>(getLoc(), dy[0], getDiagonal());
  return success();
}
LogicalResult TrilOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<TrilOp>(getLoc(), dy[0], getDiagonal());
  return success();
}

ShardingRule TriuOp::shardingRule() {
  return pointwiseRule(*this);
}
ShardingRule TrilOp::shardingRule() {
  return pointwiseRule(*this);
}

LoweringKind TriuOp::loweringKind() {
  return LoweringKind::Expanded;
}
LoweringKind TrilOp::loweringKind() {
  return LoweringKind::Expanded;
}

/// The values where column - row compares to the diagonal as wanted, zeros elsewhere: rows count from the diagonal.
template <typename Compare> static SmallVector<Value> chosen(OpBuilder &builder, Operation *op, Value x, int64_t diagonal) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(x.getType()).getShape();
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  Value row = builder.create<RangeOp>(op->getLoc(), diagonal, diagonal + rows, 1);
  Value column = builder.create<RangeOp>(op->getLoc(), 0, columns, 1);
  Value isInside = builder.create<Compare>(op->getLoc(), column, reshaped(builder, op->getLoc(), row, {rows, 1}));
  auto rank = static_cast<int64_t>(shape.size());
  setResultFactors(isInside.getDefiningOp(), {rank - 2, rank - 1}); // cut as the values are
  return {builder.create<SelectOp>(op->getLoc(), isInside, x, scalarLike(builder, op->getLoc(), 0, x))};
}

SmallVector<Value> TriuOp::expand(OpBuilder &builder, ValueRange operands) {
  return chosen<GreaterEqualOp>(builder, *this, operands[0], getDiagonal());
}
SmallVector<Value> TrilOp::expand(OpBuilder &builder, ValueRange operands) {
  return chosen<LessEqualOp>(builder, *this, operands[0], getDiagonal());
}
