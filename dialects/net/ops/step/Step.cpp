#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace msc::net;

Value FloorOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::FloorOp>(x[0]);
}
Value CeilOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::CeilOp>(x[0]);
}
Value RoundOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::RoundEvenOp>(x[0]);
}
Value TruncOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<math::TruncOp>(x[0]);
}

/// Compares |x| with infinity.
static Value compareSize(ImplicitLocOpBuilder &b, Value x, arith::CmpFPredicate predicate) {
  Value infinity = number(b, std::numeric_limits<double>::infinity(), x.getType());
  return b.create<arith::CmpFOp>(predicate, b.create<math::AbsFOp>(x), infinity);
}

Value IsFiniteOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compareSize(b, x[0], arith::CmpFPredicate::OLT);
}
Value IsInfOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return compareSize(b, x[0], arith::CmpFPredicate::OEQ);
}
Value IsNanOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::CmpFOp>(arith::CmpFPredicate::UNE, x[0], x[0]);
}

Value LogicalNotOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::XOrIOp>(x[0], b.create<arith::ConstantOp>(b.getBoolAttr(true)));
}
Value ZerosLikeOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::ConstantOp>(b.getZeroAttr(x[0].getType()));
}
Value OnesLikeOp::scalarBody(ImplicitLocOpBuilder &b, ValueRange x) {
  return b.create<arith::ConstantOp>(b.getOneAttr(x[0].getType()));
}
