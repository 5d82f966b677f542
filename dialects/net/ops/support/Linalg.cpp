#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace msc::net;

static ArrayRef<int64_t> shapeOfType(Type type) {
  return cast<RankedTensorType>(type).getShape();
}

/// Iterations over `shape` to the elements of a tensor that is repeated along missing dimensions and those of size 1.
static AffineMap broadcastMap(MLIRContext *context, ArrayRef<int64_t> operand, ArrayRef<int64_t> shape) {
  size_t offset = shape.size() - operand.size();
  SmallVector<AffineExpr> at;
  for (size_t dim = 0; dim < operand.size(); ++dim)
    at.push_back(operand[dim] == shape[offset + dim] ? getAffineDimExpr(offset + dim, context)
                                                     : getAffineConstantExpr(0, context));
  return AffineMap::get(shape.size(), 0, at, context);
}

SmallVector<Value> msc::net::buildPointwise(OpBuilder &builder, Location loc, ValueRange operands,
                                            TypeRange resultTypes, ScalarBody body, ArrayRef<AffineMap> maps) {
  MLIRContext *context = builder.getContext();
  ArrayRef<int64_t> shape = shapeOfType(resultTypes[0]);
  SmallVector<AffineMap> indexing(maps);
  for (Value operand : operands.drop_front(maps.size()))
    indexing.push_back(broadcastMap(context, shapeOfType(operand.getType()), shape));
  SmallVector<Value> targets;
  for (Type type : resultTypes) {
    targets.push_back(builder.create<tensor::EmptyOp>(loc, shape, cast<RankedTensorType>(type).getElementType()));
    indexing.push_back(AffineMap::getMultiDimIdentityMap(shape.size(), context));
  }
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  auto generic =
      builder.create<linalg::GenericOp>(loc, resultTypes, operands, targets, indexing, iterators,
                                        [&](OpBuilder &inner, Location at, ValueRange elements) {
                                          ImplicitLocOpBuilder b(at, inner);
                                          b.create<linalg::YieldOp>(body(b, elements.take_front(operands.size())));
                                        });
  return llvm::to_vector(llvm::map_range(generic.getResults(), [](OpResult r) -> Value { return r; }));
}

/// Where an iteration over `rank` dimensions finds its accumulator.
static AffineMap accumulatorMap(MLIRContext *context, size_t rank, ArrayRef<int64_t> dims, size_t resultRank) {
  SmallVector<AffineExpr> at;
  for (size_t dim = 0; dim < rank; ++dim) {
    bool reduced = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!reduced)
      at.push_back(getAffineDimExpr(dim, context));
    else if (resultRank == rank)
      at.push_back(getAffineConstantExpr(0, context));
  }
  return AffineMap::get(rank, 0, at, context);
}

Value msc::net::buildReduction(OpBuilder &builder, Location loc, ValueRange operands, RankedTensorType resultType,
                               ArrayRef<int64_t> dims, TypedAttr identity, ScalarBody body, Combine combine) {
  MLIRContext *context = builder.getContext();
  size_t rank = shapeOfType(operands[0].getType()).size();
  Value empty = builder.create<tensor::EmptyOp>(loc, resultType.getShape(), resultType.getElementType());
  Value start = builder.create<arith::ConstantOp>(loc, identity);
  Value target = builder.create<linalg::FillOp>(loc, start, empty).getResult(0);
  SmallVector<AffineMap> indexing(operands.size(), AffineMap::getMultiDimIdentityMap(rank, context));
  indexing.push_back(accumulatorMap(context, rank, dims, resultType.getRank()));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  for (int64_t dim : dims)
    iterators[dim] = utils::IteratorType::reduction;
  auto generic = builder.create<linalg::GenericOp>(loc, TypeRange(resultType), operands, target, indexing, iterators,
                                                   [&](OpBuilder &inner, Location at, ValueRange elements) {
                                                     ImplicitLocOpBuilder b(at, inner);
                                                     Value element = body(b, elements.drop_back()).front();
                                                     b.create<linalg::YieldOp>(combine(b, elements.back(), element));
                                                   });
  return generic.getResult(0);
}

TypedAttr msc::net::numberAttr(Type element, double value) {
  if (isa<FloatType>(element))
    return FloatAttr::get(element, value);
  return IntegerAttr::get(element, static_cast<int64_t>(value));
}

Value msc::net::number(ImplicitLocOpBuilder &b, double value, Type element) {
  return b.create<arith::ConstantOp>(numberAttr(element, value));
}

Value msc::net::add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? b.create<arith::AddFOp>(x, y).getResult() : b.create<arith::AddIOp>(x, y);
}
Value msc::net::sub(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? b.create<arith::SubFOp>(x, y).getResult() : b.create<arith::SubIOp>(x, y);
}
Value msc::net::mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? b.create<arith::MulFOp>(x, y).getResult() : b.create<arith::MulIOp>(x, y);
}
Value msc::net::div(ImplicitLocOpBuilder &b, Value x, Value y) {
  return b.create<arith::DivFOp>(x, y);
}

Value msc::net::greater(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return b.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, y);
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, x, y);
}

Value msc::net::equal(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, y);
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
}

Value msc::net::maximum(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? b.create<arith::MaximumFOp>(x, y).getResult() : b.create<arith::MaxSIOp>(x, y);
}

Value msc::net::minimum(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? b.create<arith::MinimumFOp>(x, y).getResult() : b.create<arith::MinSIOp>(x, y);
}

Value msc::net::logistic(ImplicitLocOpBuilder &b, Value x) {
  Value one = number(b, 1, x.getType());
  Value exponential = b.create<math::ExpOp>(b.create<arith::NegFOp>(x));
  return div(b, one, add(b, one, exponential));
}
