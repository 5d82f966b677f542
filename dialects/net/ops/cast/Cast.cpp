#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace msc::net;

LogicalResult CastOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  Type to = op.getDstType();
  if (!to.isF16() && !to.isBF16() && !to.isF32() && !to.isF64() && !to.isInteger(1) && !to.isInteger(32) &&
      !to.isInteger(64)) // C1
    return at.error("'Cast' makes f16, bf16, f32, f64, i32, i64 or bool, not " + elementText(to));
  results.push_back(tensorOf(at.shape(0), to));
  return success();
}

LogicalResult CastOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                    MutableArrayRef<Value> gradients) {
  Type from = cast<RankedTensorType>(getX().getType()).getElementType();
  if (isa<FloatType>(from) && isa<FloatType>(getDstType()))
    gradients[0] = builder.create<CastOp>(getLoc(), dy[0], from);
  return success();
}

static Value castFloat(ImplicitLocOpBuilder &b, Value x, Type to) {
  Type from = x.getType();
  if (to.isInteger(1))
    return b.create<arith::CmpFOp>(arith::CmpFPredicate::UNE, x, number(b, 0, from));
  if (isa<IntegerType>(to))
    return b.create<arith::FPToSIOp>(to, x);
  unsigned wide = from.getIntOrFloatBitWidth(), narrow = to.getIntOrFloatBitWidth();
  if (wide == narrow) // f16 and bf16 meet in f32
    return b.create<arith::TruncFOp>(to, b.create<arith::ExtFOp>(b.getF32Type(), x));
  return wide > narrow ? b.create<arith::TruncFOp>(to, x).getResult() : b.create<arith::ExtFOp>(to, x);
}

static Value castInteger(ImplicitLocOpBuilder &b, Value x, Type to) {
  Type from = x.getType();
  if (to.isInteger(1))
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, x, number(b, 0, from));
  bool isBool = from.isInteger(1);
  if (isa<FloatType>(to))
    return isBool ? b.create<arith::UIToFPOp>(to, x).getResult() : b.create<arith::SIToFPOp>(to, x);
  if (isBool)
    return b.create<arith::ExtUIOp>(to, x);
  return to.isInteger(64) ? b.create<arith::ExtSIOp>(to, x).getResult() : b.create<arith::TruncIOp>(to, x);
}

static Value castElement(ImplicitLocOpBuilder &b, Value x, Type to) {
  if (x.getType() == to)
    return x;
  return isa<FloatType>(x.getType()) ? castFloat(b, x, to) : castInteger(b, x, to);
}

/// Narrow floats and whole numbers meet in f32.
Value CastOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  auto isNarrow = [](Type type) { return type.isF16() || type.isBF16(); };
  Type from = x[0].getType(), to = getDstType();
  bool meetsInF32 = (isNarrow(from) && isa<IntegerType>(to)) || (isa<IntegerType>(from) && isNarrow(to));
  return castElement(b, meetsInF32 ? castElement(b, x[0], b.getF32Type()) : x[0], to);
}
