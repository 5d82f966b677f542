#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace msc::net;

static constexpr double kSeLUScale = 1.0507009873554805, kSeLUAlpha = 1.6732632423543772;

//===-- gradients ---------------------------------------------------------===//

static Value isAbove(OpBuilder &builder, Location loc, Value x, double limit) {
  return builder.create<GreaterOp>(loc, x, scalarLike(builder, loc, limit, x));
}

/// `above` where x is larger than the limit, else `below`.
static Value choose(OpBuilder &builder, Location loc, Value x, double limit, Value above, Value below) {
  return builder.create<SelectOp>(loc, isAbove(builder, loc, x, limit), above, below);
}

/// dy within (low, high], else 0.
static Value within(OpBuilder &builder, Location loc, Value x, double low, double high, Value dy) {
  Value zero = scalarLike(builder, loc, 0, dy);
  return choose(builder, loc, x, low, choose(builder, loc, x, high, zero, dy), zero);
}

LogicalResult ReLU6Op::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                     MutableArrayRef<Value> gradients) {
  gradients[0] = within(builder, getLoc(), getX(), 0, 6, dy[0]);
  return success();
}

LogicalResult HSigmoidOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                        MutableArrayRef<Value> gradients) {
  gradients[0] = within(builder, getLoc(), getX(), -3, 3, scaled(builder, getLoc(), dy[0], 1.0 / 6));
  return success();
}

LogicalResult HSwishOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                      MutableArrayRef<Value> gradients) {
  // 0 up to -3, x / 3 + 1 / 2 up to 3, 1 above.
  Value third = scaled(builder, getLoc(), getX(), 1.0 / 3);
  Value slope = builder.create<AddOp>(getLoc(), third, scalarLike(builder, getLoc(), 0.5, third));
  Value middle = builder.create<MulOp>(getLoc(), dy[0], slope), zero = scalarLike(builder, getLoc(), 0, middle);
  Value left = choose(builder, getLoc(), getX(), -3, middle, zero);
  gradients[0] = choose(builder, getLoc(), getX(), 3, dy[0], left);
  return success();
}

LogicalResult SoftplusOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                        MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<MulOp>(getLoc(), dy[0], builder.create<SigmoidOp>(getLoc(), getX()));
  return success();
}

LogicalResult SoftsignOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                        MutableArrayRef<Value> gradients) {
  Value size = builder.create<AbsOp>(getLoc(), getX());
  Value divisor = builder.create<AddOp>(getLoc(), size, scalarLike(builder, getLoc(), 1, size));
  gradients[0] = builder.create<RealDivOp>(getLoc(), dy[0], builder.create<SquareOp>(getLoc(), divisor));
  return success();
}

LogicalResult MishOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  // t + x (1 - t^2) sigmoid(x) with t = tanh(softplus(x)).
  Location loc = getLoc();
  Value t = builder.create<TanhOp>(loc, builder.create<SoftplusOp>(loc, getX()));
  Value rest = builder.create<SubOp>(loc, scalarLike(builder, loc, 1, t), builder.create<SquareOp>(loc, t));
  Value steep = builder.create<MulOp>(loc, getX(), builder.create<SigmoidOp>(loc, getX()));
  Value slope = builder.create<AddOp>(loc, t, builder.create<MulOp>(loc, steep, rest));
  gradients[0] = builder.create<MulOp>(loc, dy[0], slope);
  return success();
}

/// Of y = x * scale above 0 and scale * alpha * (exp(x) - 1) below: the slope there is y + scale * alpha.
static Value exponentialGradient(OpBuilder &builder, Location loc, Value x, Value y, Value dy, double scale,
                                 double alpha) {
  Value slope = builder.create<AddOp>(loc, y, scalarLike(builder, loc, scale * alpha, y));
  Value above = scale == 1 ? dy : scaled(builder, loc, dy, scale);
  return choose(builder, loc, x, 0, above, builder.create<MulOp>(loc, dy, slope));
}

LogicalResult SeLUOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = exponentialGradient(builder, getLoc(), getX(), getOutput(), dy[0], kSeLUScale, kSeLUAlpha);
  return success();
}

LogicalResult EluOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  gradients[0] =
      exponentialGradient(builder, getLoc(), getX(), getOutput(), dy[0], 1, getAlpha().convertToDouble());
  return success();
}

LogicalResult LeakyReLUOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                         MutableArrayRef<Value> gradients) {
  Value below = scaled(builder, getLoc(), dy[0], getAlpha().convertToDouble());
  gradients[0] = choose(builder, getLoc(), getX(), 0, dy[0], below);
  return success();
}

//===-- lowering ----------------------------------------------------------===//

/// x cut to [low, high]; NaN fails both comparisons and stays.
static Value clamped(ImplicitLocOpBuilder &b, Value x, double low, double high) {
  Value least = number(b, low, x.getType()), most = number(b, high, x.getType());
  x = b.create<arith::SelectOp>(greater(b, least, x), least, x);
  return b.create<arith::SelectOp>(greater(b, x, most), most, x);
}

/// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)).
static Value softplus(ImplicitLocOpBuilder &b, Value x) {
  Value zero = number(b, 0, x.getType());
  Value positive = b.create<arith::SelectOp>(greater(b, zero, x), zero, x);
  Value decay = b.create<math::ExpOp>(b.create<arith::NegFOp>(b.create<math::AbsFOp>(x)));
  return add(b, positive, b.create<math::Log1pOp>(decay));
}

/// x above 0, else alpha * (exp(x) - 1).
static Value exponentialUnit(ImplicitLocOpBuilder &b, Value x, double alpha) {
  Value below = mul(b, number(b, alpha, x.getType()), b.create<math::ExpM1Op>(x));
  return b.create<arith::SelectOp>(greater(b, x, number(b, 0, x.getType())), x, below);
}

static Value hardSigmoid(ImplicitLocOpBuilder &b, Value x) {
  Type type = x.getType();
  return mul(b, clamped(b, add(b, x, number(b, 3, type)), 0, 6), number(b, 1.0 / 6, type));
}

Value ReLU6Op::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return clamped(b, x[0], 0, 6);
}
Value HSigmoidOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return hardSigmoid(b, x[0]);
}
Value HSwishOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return mul(b, x[0], hardSigmoid(b, x[0]));
}
Value SoftplusOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return softplus(b, x[0]);
}
Value SoftsignOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return div(b, x[0], add(b, number(b, 1, x[0].getType()), b.create<math::AbsFOp>(x[0])));
}
Value MishOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return mul(b, x[0], b.create<math::TanhOp>(softplus(b, x[0])));
}
Value SeLUOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return mul(b, number(b, kSeLUScale, x[0].getType()), exponentialUnit(b, x[0], kSeLUAlpha));
}
Value EluOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return exponentialUnit(b, x[0], getAlpha().convertToDouble());
}
Value LeakyReLUOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Type type = x[0].getType();
  Value below = mul(b, number(b, getAlpha().convertToDouble(), type), x[0]);
  return b.create<arith::SelectOp>(greater(b, x[0], number(b, 0, type)), x[0], below);
}
