#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Words.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

LogicalResult GeLUOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkWord(at, "approximate", op.getApproximate(), kGeLUForms))) // C2
    return failure();
  return inferPointwise(at, ElementSet::Float, ResultElement::SameElement, results);
}

LogicalResult GeLUGradOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (failed(checkWord(at, "approximate", op.getApproximate(), kGeLUForms)))
    return failure();
  return inferPointwise(at, ElementSet::Float, ResultElement::SameElement, results);
}

//===-- gradients ---------------------------------------------------------===//

// The pass asks only for gradients that are wanted; operators of one operand need not look at `wanted`.

LogicalResult ReLUOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<ReluGradOp>(getLoc(), dy[0], getOutput());
  return success();
}

LogicalResult SigmoidOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                       MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<SigmoidGradOp>(getLoc(), getOutput(), dy[0]);
  return success();
}

LogicalResult TanhOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<TanhGradOp>(getLoc(), getOutput(), dy[0]);
  return success();
}

LogicalResult SiLUOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<SiLUGradOp>(getLoc(), dy[0], getX());
  return success();
}

LogicalResult GeLUOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<GeLUGradOp>(getLoc(), dy[0], getX(), getApproximate());
  return success();
}

LogicalResult ExpOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<MulOp>(getLoc(), dy[0], getOutput());
  return success();
}

LogicalResult LogOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<RealDivOp>(getLoc(), dy[0], getX());
  return success();
}

LogicalResult SqrtOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  Value half = scaled(builder, getLoc(), dy[0], 0.5);
  gradients[0] = builder.create<RealDivOp>(getLoc(), half, getOutput());
  return success();
}

LogicalResult RsqrtOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                     MutableArrayRef<Value> gradients) {
  // d x^(-1/2) = -1/2 y^3.
  Value square = builder.create<SquareOp>(getLoc(), getOutput());
  Value cube = builder.create<MulOp>(getLoc(), square, getOutput());
  gradients[0] = builder.create<MulOp>(getLoc(), scaled(builder, getLoc(), dy[0], -0.5), cube);
  return success();
}

LogicalResult NegOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<NegOp>(getLoc(), dy[0]);
  return success();
}

LogicalResult AbsOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                   MutableArrayRef<Value> gradients) {
  Value sign = builder.create<SignOp>(getLoc(), getX());
  gradients[0] = builder.create<MulOp>(getLoc(), dy[0], sign);
  return success();
}

LogicalResult SquareOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                      MutableArrayRef<Value> gradients) {
  gradients[0] = builder.create<MulOp>(getLoc(), scaled(builder, getLoc(), dy[0], 2), getX());
  return success();
}

//===-- lowering ----------------------------------------------------------===//

EpilogueKind ReLUOp::epilogueKind() {
  return EpilogueKind::ReLU;
}

// Clamps are written so that NaN survives: the comparison fails and the element itself is taken.

Value ReLUOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value zero = number(b, 0, x[0].getType());
  return b.create<arith::SelectOp>(greater(b, zero, x[0]), zero, x[0]);
}

Value ReluGradOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value zero = number(b, 0, x[0].getType());
  Value off = b.create<arith::CmpFOp>(arith::CmpFPredicate::OGE, zero, x[1]);
  return b.create<arith::SelectOp>(off, zero, x[0]);
}

Value SigmoidOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return logistic(b, x[0]);
}

Value SigmoidGradOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value one = number(b, 1, x[0].getType());
  return mul(b, x[1], mul(b, x[0], sub(b, one, x[0])));
}

Value TanhOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::TanhOp>(x[0]);
}

Value TanhGradOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value one = number(b, 1, x[0].getType());
  return mul(b, x[1], sub(b, one, mul(b, x[0], x[0])));
}

Value SiLUOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value one = number(b, 1, x[0].getType());
  return div(b, x[0], add(b, one, b.create<math::ExpOp>(b.create<arith::NegFOp>(x[0]))));
}

Value SiLUGradOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value one = number(b, 1, x[0].getType()), s = logistic(b, x[1]);
  Value slope = mul(b, s, add(b, one, mul(b, x[1], sub(b, one, s))));
  return mul(b, x[0], slope);
}

Value ExpOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::ExpOp>(x[0]);
}
Value LogOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::LogOp>(x[0]);
}
Value SqrtOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::SqrtOp>(x[0]);
}
Value RsqrtOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return div(b, number(b, 1, x[0].getType()), b.create<math::SqrtOp>(x[0]));
}

Value NegOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  if (isa<FloatType>(x[0].getType()))
    return b.create<arith::NegFOp>(x[0]);
  return sub(b, number(b, 0, x[0].getType()), x[0]);
}

Value AbsOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  if (isa<FloatType>(x[0].getType()))
    return b.create<math::AbsFOp>(x[0]);
  return b.create<math::AbsIOp>(x[0]);
}

Value SquareOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return mul(b, x[0], x[0]);
}

Value SignOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Type type = x[0].getType();
  Value zero = number(b, 0, type), one = number(b, 1, type), minusOne = number(b, -1, type);
  Value negative = b.create<arith::SelectOp>(greater(b, zero, x[0]), minusOne, x[0]);
  return b.create<arith::SelectOp>(greater(b, x[0], zero), one, negative);
}

/// -2 u with u = sqrt(2 / pi) (x + 0.044715 x^3).
static Value minusTwoU(ImplicitLocOpBuilder &b, Value x) {
  const double c = -2.0 * std::sqrt(2.0 / std::numbers::pi);
  Value inner = add(b, number(b, c, x.getType()), mul(b, number(b, 0.044715 * c, x.getType()), mul(b, x, x)));
  return mul(b, x, inner);
}

/// Phi(x) = 0.5 (1 + erf(x / sqrt(2))).
static Value normalDistribution(ImplicitLocOpBuilder &b, Value x) {
  Type type = x.getType();
  Value erf = b.create<math::ErfOp>(mul(b, x, number(b, std::numbers::sqrt2 / 2, type)));
  return mul(b, number(b, 0.5, type), add(b, number(b, 1, type), erf));
}

Value GeLUOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  if (getApproximate() == "none")
    return mul(b, x[0], normalDistribution(b, x[0]));
  Value one = number(b, 1, x[0].getType());
  return div(b, x[0], add(b, one, b.create<math::ExpOp>(minusTwoU(b, x[0]))));
}

/// Phi(x) + x phi(x).
static Value exactSlope(ImplicitLocOpBuilder &b, Value x) {
  Type type = x.getType();
  Value square = mul(b, number(b, -0.5, type), mul(b, x, x));
  Value density = mul(b, number(b, 1 / std::sqrt(2 * std::numbers::pi), type), b.create<math::ExpOp>(square));
  return add(b, normalDistribution(b, x), mul(b, x, density));
}

/// s (1 + x (1 - s) 2u') with s = 1 / (1 + exp(-2u)), 2u' = 2 sqrt(2 / pi) (1 + 3 * 0.044715 x^2).
static Value tanhSlope(ImplicitLocOpBuilder &b, Value x) {
  const double c = 2.0 * std::sqrt(2.0 / std::numbers::pi);
  Type type = x.getType();
  Value one = number(b, 1, type);
  Value s = div(b, one, add(b, one, b.create<math::ExpOp>(minusTwoU(b, x))));
  Value twoDu = add(b, number(b, c, type), mul(b, number(b, 3 * 0.044715 * c, type), mul(b, x, x)));
  return mul(b, s, add(b, one, mul(b, mul(b, x, sub(b, one, s)), twoDu)));
}

Value GeLUGradOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return mul(b, x[0], getApproximate() == "none" ? exactSlope(b, x[1]) : tanhSlope(b, x[1]));
}
