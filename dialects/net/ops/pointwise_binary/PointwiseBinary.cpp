#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace msc::net;

//===-- gradients ---------------------------------------------------------===//

LogicalResult AddOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                   MutableArrayRef<Value> gradients) {
  for (unsigned i : {0u, 1u})
    giveSummed(builder, *this, wanted, gradients, i, [&] { return dy[0]; });
  return success();
}

LogicalResult SubOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                   MutableArrayRef<Value> gradients) {
  giveSummed(builder, *this, wanted, gradients, 0, [&] { return dy[0]; });
  if (wanted[1]) // the sum is smaller than what it sums: negate last
    gradients[1] = builder.create<NegOp>(getLoc(), sumTo(builder, getLoc(), dy[0], getY().getType()));
  return success();
}

LogicalResult MulOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                   MutableArrayRef<Value> gradients) {
  giveSummed(builder, *this, wanted, gradients, 0, [&] { return builder.create<MulOp>(getLoc(), dy[0], getY()); });
  giveSummed(builder, *this, wanted, gradients, 1, [&] { return builder.create<MulOp>(getLoc(), dy[0], getX()); });
  return success();
}

LogicalResult RealDivOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                       MutableArrayRef<Value> gradients) {
  // d(x / y) = dx / y - (x / y) dy / y.
  Value quotient = builder.create<RealDivOp>(getLoc(), dy[0], getY());
  giveSummed(builder, *this, wanted, gradients, 0, [&] { return quotient; });
  giveSummed(builder, *this, wanted, gradients, 1, [&] {
    Value product = builder.create<MulOp>(getLoc(), quotient, getOutput());
    return builder.create<NegOp>(getLoc(), product);
  });
  return success();
}

LogicalResult PowOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                   MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  Value zero = scalarLike(builder, loc, 0, getX());
  giveSummed(builder, *this, wanted, gradients, 0, [&]() -> Value {
    // y x^(y-1), and 0 for y = 0 even where x is 0.
    Value lower = builder.create<SubOp>(loc, getY(), scalarLike(builder, loc, 1, getY()));
    Value slope = builder.create<MulOp>(loc, getY(), builder.create<PowOp>(loc, getX(), lower));
    Value flat = builder.create<EqualOp>(loc, getY(), zero);
    slope = builder.create<SelectOp>(loc, flat, zero, slope);
    return builder.create<MulOp>(loc, dy[0], slope);
  });
  giveSummed(builder, *this, wanted, gradients, 1, [&]() -> Value {
    Value positive = builder.create<GreaterOp>(loc, getX(), zero);
    Value log = builder.create<SelectOp>(loc, positive, builder.create<LogOp>(loc, getX()), zero);
    Value slope = builder.create<MulOp>(loc, getOutput(), log);
    return builder.create<MulOp>(loc, dy[0], slope);
  });
  return success();
}

/// Operand `i` of Maximum or Minimum gets the gradient where it wins, half of it where both are equal.
static LogicalResult extremumGradient(OpBuilder &builder, Operation *op, Value dy, const llvm::SmallBitVector &wanted,
                                      MutableArrayRef<Value> gradients, bool larger) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0), y = op->getOperand(1);
  for (unsigned i : {0u, 1u})
    giveSummed(builder, op, wanted, gradients, i, [&]() -> Value {
      bool isGreater = larger == (i == 0);
      Value wins = isGreater ? builder.create<GreaterOp>(loc, x, y).getResult() : builder.create<LessOp>(loc, x, y);
      Value zero = scalarLike(builder, loc, 0, dy), half = scaled(builder, loc, dy, 0.5);
      Value shared = builder.create<SelectEqualOp>(loc, x, y, half, zero);
      return builder.create<SelectOp>(loc, wins, dy, shared);
    });
  return success();
}

LogicalResult MaximumOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                       MutableArrayRef<Value> gradients) {
  return extremumGradient(builder, *this, dy[0], wanted, gradients, true);
}

LogicalResult MinimumOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                       MutableArrayRef<Value> gradients) {
  return extremumGradient(builder, *this, dy[0], wanted, gradients, false);
}

LogicalResult SquaredDifferenceOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                                 MutableArrayRef<Value> gradients) {
  Value difference = builder.create<SubOp>(getLoc(), getX(), getY());
  Value slope = builder.create<MulOp>(getLoc(), scaled(builder, getLoc(), dy[0], 2), difference);
  giveSummed(builder, *this, wanted, gradients, 0, [&] { return slope; });
  if (wanted[1]) // the sum is smaller than what it sums: negate last
    gradients[1] = builder.create<NegOp>(getLoc(), sumTo(builder, getLoc(), slope, getY().getType()));
  return success();
}

LogicalResult XlogyOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                     MutableArrayRef<Value> gradients) {
  Location loc = getLoc();
  giveSummed(builder, *this, wanted, gradients, 0, [&]() -> Value { // log(y), and 0 where x is 0
    Value zero = scalarLike(builder, loc, 0, getX());
    Value slope = builder.create<SelectEqualOp>(loc, getX(), zero, zero, builder.create<LogOp>(loc, getY()));
    return builder.create<MulOp>(loc, dy[0], slope);
  });
  giveSummed(builder, *this, wanted, gradients, 1, [&] {
    Value slope = builder.create<DivNoNanOp>(loc, getX(), getY());
    return builder.create<MulOp>(loc, dy[0], slope);
  });
  return success();
}

LogicalResult SigmoidCrossEntropyWithLogitsOp::buildGradient(OpBuilder &builder, ValueRange dy,
                                                             const llvm::SmallBitVector &wanted,
                                                             MutableArrayRef<Value> gradients) {
  giveSummed(builder, *this, wanted, gradients, 0, [&] {
    Value error = builder.create<SubOp>(getLoc(), builder.create<SigmoidOp>(getLoc(), getLogits()), getLabel());
    return builder.create<MulOp>(getLoc(), dy[0], error);
  });
  giveSummed(builder, *this, wanted, gradients, 1, [&] {
    Value product = builder.create<MulOp>(getLoc(), dy[0], getLogits());
    return builder.create<NegOp>(getLoc(), product);
  });
  return success();
}

//===-- scalar bodies -----------------------------------------------------===//

Value AddOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return add(b, x[0], x[1]);
}
Value SubOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return sub(b, x[0], x[1]);
}
Value MulOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return mul(b, x[0], x[1]);
}
Value RealDivOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return div(b, x[0], x[1]);
}
Value PowOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::PowFOp>(x[0], x[1]);
}
Value MaximumOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return maximum(b, x[0], x[1]);
}
Value MinimumOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return minimum(b, x[0], x[1]);
}

static Value compare(ImplicitLocOpBuilder &b, ValueRange x, arith::CmpFPredicate floats,
                     arith::CmpIPredicate integers) {
  if (isa<FloatType>(x[0].getType()))
    return b.create<arith::CmpFOp>(floats, x[0], x[1]);
  return b.create<arith::CmpIOp>(integers, x[0], x[1]);
}

Value GreaterOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compare(b, x, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
}
Value GreaterEqualOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compare(b, x, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge);
}
Value LessOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compare(b, x, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
}
Value LessEqualOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compare(b, x, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle);
}
Value EqualOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return equal(b, x[0], x[1]);
}
Value NotEqualOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compare(b, x, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne);
}

Value SquaredDifferenceOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value difference = sub(b, x[0], x[1]);
  return mul(b, difference, difference);
}

Value XlogyOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value zero = number(b, 0, x[0].getType());
  Value isZero = b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x[0], zero);
  return b.create<arith::SelectOp>(isZero, zero, mul(b, x[0], b.create<math::LogOp>(x[1])));
}

Value SigmoidCrossEntropyWithLogitsOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value zero = number(b, 0, x[0].getType());
  Value positive = b.create<arith::SelectOp>(greater(b, zero, x[0]), zero, x[0]);
  Value decay = b.create<math::ExpOp>(b.create<arith::NegFOp>(b.create<math::AbsFOp>(x[0])));
  return add(b, sub(b, positive, mul(b, x[0], x[1])), b.create<math::Log1pOp>(decay));
}

Value LogicalAndOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::AndIOp>(x[0], x[1]);
}
Value LogicalOrOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::OrIOp>(x[0], x[1]);
}
Value LogicalXorOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::XOrIOp>(x[0], x[1]);
}

//===-- within products ---------------------------------------------------===//

EpilogueKind AddOp::epilogueKind() {
  auto x = cast<RankedTensorType>(getX().getType()), y = cast<RankedTensorType>(getY().getType());
  const bool isBias = y.getRank() == 1 && x.getRank() > 1 && x.getShape().back() == y.getDimSize(0);
  return isBias ? EpilogueKind::Bias : EpilogueKind::None;
}

//===-- any number of operands --------------------------------------------===//

LogicalResult AddNOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Number))) // C1
    return failure();
  for (unsigned operand = 1; operand < at.operands.size(); ++operand)
    if (failed(at.checkSameShape(0, operand))) // C2
      return failure();
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

LogicalResult AddNOp::buildGradient(OpBuilder &, ValueRange dy, const llvm::SmallBitVector &wanted,
                                    MutableArrayRef<Value> gradients) {
  for (unsigned i : wanted.set_bits())
    gradients[i] = dy[0];
  return success();
}

ShardingRule AddNOp::shardingRule() {
  return pointwiseRule(*this);
}

LogicalResult AddNOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                    SmallVectorImpl<Value> &results) {
  auto body = [](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    Value sum = x.front();
    for (Value term : x.drop_front())
      sum = add(b, sum, term);
    return {sum};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}
