#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace msc::net;

//===-- gradients ---------------------------------------------------------===//

/// Of x - y * quotient, where the quotient is piecewise constant.
static LogicalResult restGradient(OpBuilder &builder, Operation *op, Value dy, const llvm::SmallBitVector &wanted,
                                  MutableArrayRef<Value> gradients, llvm::function_ref<Value()> quotient) {
  giveSummed(builder, op, wanted, gradients, 0, [&] { return dy; });
  giveSummed(builder, op, wanted, gradients, 1, [&] {
    Value product = builder.create<MulOp>(op->getLoc(), dy, quotient());
    return builder.create<NegOp>(op->getLoc(), product);
  });
  return success();
}

LogicalResult FloorModOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                        MutableArrayRef<Value> gradients) {
  return restGradient(builder, *this, dy[0], wanted, gradients,
                      [&] { return builder.create<FloorDivOp>(getLoc(), getX(), getY()); });
}

LogicalResult ModOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                   MutableArrayRef<Value> gradients) {
  return restGradient(builder, *this, dy[0], wanted, gradients, [&] {
    return builder.create<TruncOp>(getLoc(), builder.create<RealDivOp>(getLoc(), getX(), getY()));
  });
}

LogicalResult DivNoNanOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                        MutableArrayRef<Value> gradients) {
  Value quotient = builder.create<DivNoNanOp>(getLoc(), dy[0], getY());
  giveSummed(builder, *this, wanted, gradients, 0, [&] { return quotient; });
  giveSummed(builder, *this, wanted, gradients, 1, [&] {
    Value product = builder.create<MulOp>(getLoc(), quotient, getOutput());
    return builder.create<NegOp>(getLoc(), product);
  });
  return success();
}

//===-- lowering ----------------------------------------------------------===//

Value FloorDivOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  if (isa<IntegerType>(x[0].getType()))
    return b.create<arith::FloorDivSIOp>(x[0], x[1]);
  return b.create<math::FloorOp>(div(b, x[0], x[1]));
}

static Value truncatedRest(ImplicitLocOpBuilder &b, ValueRange x) {
  if (isa<IntegerType>(x[0].getType()))
    return b.create<arith::RemSIOp>(x[0], x[1]);
  return b.create<arith::RemFOp>(x[0], x[1]);
}

Value ModOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return truncatedRest(b, x);
}

Value FloorModOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  // The rest of the other sign than y lies one y too far.
  Value rest = truncatedRest(b, x), zero = number(b, 0, rest.getType());
  Value above = greater(b, rest, zero), below = greater(b, zero, rest);
  Value isNegative = greater(b, zero, x[1]), isPositive = greater(b, x[1], zero);
  Value crossed = b.create<arith::OrIOp>(b.create<arith::AndIOp>(above, isNegative),
                                         b.create<arith::AndIOp>(below, isPositive));
  return b.create<arith::SelectOp>(crossed, add(b, rest, x[1]), rest);
}

Value DivNoNanOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  Value zero = number(b, 0, x[0].getType());
  Value isZero = b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x[1], zero);
  return b.create<arith::SelectOp>(isZero, zero, div(b, x[0], x[1]));
}
