#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

static SmallVector<int64_t> positive(ArrayRef<int64_t> perm) {
  return llvm::map_to_vector(perm,
                             [&](int64_t dim) { return dim < 0 ? dim + static_cast<int64_t>(perm.size()) : dim; });
}

LogicalResult TransposeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (static_cast<int64_t>(op.getPerm().size()) != at.rank(0)) // C1
    return at.error("'perm' of 'Transpose' names " + Twine(op.getPerm().size()) + " dimensions, but " + at.text(0) +
                        " has " + Twine(at.rank(0)),
                    {0});
  SmallVector<int64_t> perm = positive(op.getPerm()), shape;
  SmallVector<bool> named(perm.size(), false);
  for (int64_t dim : perm) {
    if (dim < 0 || dim >= at.rank(0) || named[dim])
      return at.error("'perm' of 'Transpose' does not name each of the " + Twine(at.rank(0)) + " dimensions of " +
                          at.name(0) + " once",
                      {0});
    named[dim] = true;
    shape.push_back(at.shape(0)[dim]);
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult TransposeOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> gradients) {
  SmallVector<int64_t> perm = positive(getPerm()), inverse(perm.size());
  for (auto [to, from] : llvm::enumerate(perm))
    inverse[from] = to;
  gradients[0] = builder.create<TransposeOp>(getLoc(), dy[0], inverse);
  return success();
}

ShardingRule TransposeOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getX());
  ShardingRule rule = ruleWithFactors(shape);
  rule.operands = {identityDims(shape.size())};
  rule.results.resize(1);
  for (int64_t dim : positive(getPerm()))
    rule.results[0].push_back({static_cast<int32_t>(dim)});
  return rule;
}

LogicalResult TransposeOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                         SmallVectorImpl<Value> &results) {
  // Iterations run over the result; dimension perm[i] of the operand follows iteration i.
  SmallVector<int64_t> perm = positive(getPerm());
  SmallVector<AffineExpr> at(perm.size());
  for (auto [to, from] : llvm::enumerate(perm))
    at[from] = builder.getAffineDimExpr(to);
  auto body = [](ImplicitLocOpBuilder &, ValueRange x) -> SmallVector<Value> { return {x[0]}; };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body,
                                             AffineMap::get(perm.size(), 0, at, builder.getContext())));
  return success();
}
