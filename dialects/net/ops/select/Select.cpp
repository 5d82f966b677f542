#include "dialects/net/NetOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace msc::net;

LogicalResult SelectOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(at.checkElement(0, ElementSet::Bool)) ||  // C1
      failed(at.checkSameElement(ElementSet::Any, 1))) // C2
    return failure();
  FailureOr<SmallVector<int64_t>> shape = at.broadcastShape(); // C3
  if (failed(shape))
    return failure();
  results.push_back(tensorOf(*shape, at.element(1)));
  return success();
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

Value SelectOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::SelectOp>(x[0], x[1], x[2]);
}
