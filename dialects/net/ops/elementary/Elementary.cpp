#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace msc::net;

//===-- gradients ---------------------------------------------------------===//

static Value times(OpBuilder &builder, Location loc, Value x, Value y) {
  return builder.create<MulOp>(loc, x, y);
}

LogicalResult SinOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  gradients[0] = times(builder, getLoc(), dy[0], builder.create<CosOp>(getLoc(), getX()));
  return success();
}

LogicalResult CosOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  Value sine = builder.create<SinOp>(getLoc(), getX());
  gradients[0] = builder.create<NegOp>(getLoc(), times(builder, getLoc(), dy[0], sine));
  return success();
}

LogicalResult TanOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  // 1 + tan^2.
  Value square = builder.create<SquareOp>(getLoc(), getOutput());
  Value slope = builder.create<AddOp>(getLoc(), square, scalarLike(builder, getLoc(), 1, square));
  gradients[0] = times(builder, getLoc(), dy[0], slope);
  return success();
}

LogicalResult ErfOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  Value exponent = builder.create<NegOp>(getLoc(), builder.create<SquareOp>(getLoc(), getX()));
  Value density = builder.create<ExpOp>(getLoc(), exponent);
  gradients[0] = times(builder, getLoc(), dy[0], scaled(builder, getLoc(), density, 2 * std::numbers::inv_sqrtpi));
  return success();
}

LogicalResult Expm1Op::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                     MutableArrayRef<Value> gradients) {
  Value slope = builder.create<AddOp>(getLoc(), getOutput(), scalarLike(builder, getLoc(), 1, getOutput()));
  gradients[0] = times(builder, getLoc(), dy[0], slope);
  return success();
}

LogicalResult Log1pOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                     MutableArrayRef<Value> gradients) {
  Value above = builder.create<AddOp>(getLoc(), getX(), scalarLike(builder, getLoc(), 1, getX()));
  gradients[0] = builder.create<RealDivOp>(getLoc(), dy[0], above);
  return success();
}

LogicalResult ReciprocalOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                          MutableArrayRef<Value> gradients) {
  Value square = builder.create<SquareOp>(getLoc(), getOutput());
  gradients[0] = builder.create<NegOp>(getLoc(), times(builder, getLoc(), dy[0], square));
  return success();
}

//===-- lowering ----------------------------------------------------------===//

Value SinOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::SinOp>(x[0]);
}
Value CosOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::CosOp>(x[0]);
}
Value TanOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::TanOp>(x[0]);
}
Value ErfOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::ErfOp>(x[0]);
}
Value Expm1Op::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::ExpM1Op>(x[0]);
}
Value Log1pOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::Log1pOp>(x[0]);
}
Value ReciprocalOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return div(b, number(b, 1, x[0].getType()), x[0]);
}
