#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace msc::net;

/// All operands broadcast; the result has the element type of the operand `chosen`.
static LogicalResult inferChosen(const Inference &at, unsigned chosen, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> shape = at.broadcastShape();
  if (succeeded(shape))
    results.push_back(tensorOf(*shape, at.element(chosen)));
  return shape;
}

LogicalResult SelectOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Bool)) ||  // C1
      failed(at.checkSameElement(ElementSet::Any, 1))) // C2
    return failure();
  return inferChosen(at, 1, results); // C3
}

LogicalResult MaskedFillOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(1, ElementSet::Bool)) || // C1
      failed(at.checkSameElementOf(0, 2)))            // C2
    return failure();
  return inferChosen(at, 0, results); // C3
}

LogicalResult SelectEqualOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElementOf(0, 1)) || // C1
      failed(at.checkSameElementOf(2, 3)))   // C2
    return failure();
  return inferChosen(at, 2, results); // C3
}

LogicalResult SelectOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                      const llvm::SmallBitVector &wanted, MutableArrayRef<Value> gradients) {
  Value dy = resultGradients[0], zero = scalarLike(builder, getLoc(), 0, dy);
  auto give = [&](unsigned operand, Value ifTrue, Value ifFalse) {
    if (!wanted[operand])
      return;
    Value masked = builder.create<SelectOp>(getLoc(), getCondition(), ifTrue, ifFalse);
    gradients[operand] = sumTo(builder, getLoc(), masked, getOperand(operand).getType());
  };
  give(1, dy, zero);
  give(2, zero, dy);
  return success();
}

LogicalResult MaskedFillOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                          MutableArrayRef<Value> gradients) {
  Value zero = scalarLike(builder, getLoc(), 0, dy[0]);
  giveSummed(builder, *this, wanted, gradients, 0,
             [&] { return builder.create<SelectOp>(getLoc(), getMask(), zero, dy[0]); });
  giveSummed(builder, *this, wanted, gradients, 2,
             [&] { return builder.create<SelectOp>(getLoc(), getMask(), dy[0], zero); });
  return success();
}

LogicalResult SelectEqualOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                           MutableArrayRef<Value> gradients) {
  Value zero = scalarLike(builder, getLoc(), 0, dy[0]);
  auto chosen = [&](Value ifEqual, Value otherwise) {
    return builder.create<SelectEqualOp>(getLoc(), getA(), getB(), ifEqual, otherwise);
  };
  giveSummed(builder, *this, wanted, gradients, 2, [&] { return chosen(dy[0], zero); });
  giveSummed(builder, *this, wanted, gradients, 3, [&] { return chosen(zero, dy[0]); });
  return success();
}

Value MaskedFillOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::SelectOp>(x[1], x[2], x[0]);
}

Value SelectOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::SelectOp>(x[0], x[1], x[2]);
}

Value SelectEqualOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::SelectOp>(equal(b, x[0], x[1]), x[2], x[3]);
}
