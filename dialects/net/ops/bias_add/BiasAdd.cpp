#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"
#include "dialects/net/ops/support/Words.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

static int64_t channelOf(StringRef dataFormat, int64_t rank) {
  return dataFormat == "NHWC" || rank < 4 ? rank - 1 : 1;
}

LogicalResult BiasAddOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Number)) ||                      // C1
      failed(checkWord(at, "data_format", op.getDataFormat(), kDataFormats))) // C4
    return failure();
  if (at.rank(0) < 2 || at.rank(1) != 1) // C2
    return at.error("cannot add bias " + at.text(1) + " to " + at.text(0) +
                        ": 'BiasAdd' takes a tensor of at least 2 dimensions and a bias of 1",
                    {at.rank(0) < 2 ? 0u : 1u});
  int64_t channel = channelOf(op.getDataFormat(), at.rank(0));
  if (at.shape(0)[channel] != at.shape(1)[0]) // C3
    return at.error("cannot add bias " + at.text(1) + " to " + at.text(0) + ": dimension " + Twine(channel) +
                        (at.rank(0) < 4 ? "" : " (" + op.getDataFormat().str() + ")") + " has " + Twine(at.shape(0)[channel]) + " channels, the bias has " +
                        Twine(at.shape(1)[0]),
                    {1});
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

int64_t BiasAddOp::channelDimension() {
  return channelOf(getDataFormat(), cast<RankedTensorType>(getX().getType()).getRank());
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult BiasAddOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  if (wanted[0])
    gradients[0] = resultGradients[0];
  if (!wanted[1])
    return success();
  SmallVector<int64_t> axis;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(getX().getType()).getRank(); ++dim)
    if (dim != channelDimension())
      axis.push_back(dim);
  gradients[1] = builder.create<ReduceSumOp>(getLoc(), resultGradients[0], axis, /*keep_dims=*/false);
  return success();
}

//===-- rule, lowering ----------------------------------------------------===//

ShardingRule BiasAddOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getX());
  ShardingRule rule = ruleWithFactors(shape);
  rule.operands = {identityDims(shape.size()), {{static_cast<int32_t>(channelDimension())}}};
  rule.results = {identityDims(shape.size())};
  return rule;
}

LogicalResult BiasAddOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                       SmallVectorImpl<Value> &results) {
  unsigned rank = cast<RankedTensorType>(getX().getType()).getRank();
  AffineMap maps[] = {builder.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, builder.getAffineDimExpr(channelDimension()))};
  auto body = [](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> { return {add(b, x[0], x[1])}; };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body, maps));
  return success();
}

EpilogueKind BiasAddOp::epilogueKind() {
  bool alongLast = channelDimension() == cast<RankedTensorType>(getX().getType()).getRank() - 1;
  return alongLast ? EpilogueKind::Bias : EpilogueKind::None;
}
