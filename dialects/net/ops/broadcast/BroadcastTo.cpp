#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

LogicalResult BroadcastToOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  SmallVector<int64_t> shape(op.getShape());
  int64_t added = static_cast<int64_t>(shape.size()) - at.rank(0);
  if (added < 0) // C1
    return at.error("cannot broadcast " + at.text(0) + " to " + shapeText(shape) + ": it has more dimensions", {0});
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t own = static_cast<int64_t>(dim) < added ? 1 : at.shape(0)[dim - added];
    if (size < -1 || (size == -1 && static_cast<int64_t>(dim) < added)) // C1
      return at.error("'shape' of 'BroadcastTo' has the size " + Twine(size) + " in dimension " + Twine(dim));
    if (size == -1)
      size = own;
    if (own != 1 && own != size) // C2
      return at.error("cannot broadcast " + at.text(0) + " to " + shapeText(shape) + ": dimension " +
                          Twine(dim - added) + " is " + Twine(own) + ", not 1 or " + Twine(size),
                      {0});
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult BroadcastToOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                           MutableArrayRef<Value> gradients) {
  gradients[0] = sumTo(builder, getLoc(), dy[0], getX().getType());
  return success();
}

ShardingRule BroadcastToOp::shardingRule() {
  return pointwiseRule(*this);
}

LogicalResult BroadcastToOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                           SmallVectorImpl<Value> &results) {
  auto body = [](ImplicitLocOpBuilder &, ValueRange x) -> SmallVector<Value> { return {x[0]}; };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}
