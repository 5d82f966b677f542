#include "dialects/net/ops/support/Gradients.h"

#include "dialects/net/NetOps.h"

using namespace mlir;
using namespace msc::net;

Value msc::net::reshaped(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (cast<RankedTensorType>(value.getType()).getShape() == shape)
    return value;
  return builder.create<ReshapeOp>(loc, value, shape);
}

Value msc::net::sumTo(OpBuilder &builder, Location loc, Value value, Type target) {
  ArrayRef<int64_t> from = cast<RankedTensorType>(value.getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(target).getShape();
  int64_t added = from.size() - to.size();
  SmallVector<int64_t> axis;
  for (int64_t dim = 0; dim < static_cast<int64_t>(from.size()); ++dim)
    if (dim < added || from[dim] != to[dim - added])
      axis.push_back(dim);
  if (!axis.empty())
    value = builder.create<ReduceSumOp>(loc, value, axis, /*keep_dims=*/false);
  return reshaped(builder, loc, value, to);
}

Value msc::net::scalarLike(OpBuilder &builder, Location loc, double splat, Value like) {
  Type element = cast<RankedTensorType>(like.getType()).getElementType();
  return builder.create<ConstantOp>(loc, RankedTensorType::get({}, element), llvm::APFloat(splat));
}

Value msc::net::scaled(OpBuilder &builder, Location loc, Value value, double factor) {
  return builder.create<MulOp>(loc, value, scalarLike(builder, loc, factor, value));
}

Value msc::net::shiftedByMaximum(OpBuilder &builder, Location loc, Value value, int64_t dim) {
  Value maximum = builder.create<ReduceMaxOp>(loc, value, dim, /*keep_dims=*/true);
  return builder.create<SubOp>(loc, value, maximum);
}
