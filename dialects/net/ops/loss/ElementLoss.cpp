// Losses with one term per element.
#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Losses.h"
#include "dialects/net/ops/support/Words.h"

using namespace mlir;
using namespace msc::net;

LogicalResult SmoothL1LossOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (!(op.getBeta().convertToDouble() > 0)) // C4
    return at.error("'beta' of '" + at.opName + "' is not positive");
  return inferElementLoss(at, op.getReduction(), kLossReductions, results);
}

Value L1LossOp::terms(OpBuilder &builder, ValueRange operands) {
  return builder.create<AbsOp>(getLoc(), builder.create<SubOp>(getLoc(), operands[0], operands[1]));
}

Value SmoothL1LossOp::terms(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  double beta = getBeta().convertToDouble();
  Value distance = builder.create<AbsOp>(loc, builder.create<SubOp>(loc, operands[0], operands[1]));
  Value isNear = builder.create<LessOp>(loc, distance, scalarLike(builder, loc, beta, distance));
  Value near = scaled(builder, loc, builder.create<SquareOp>(loc, distance), 0.5 / beta);
  Value far = builder.create<SubOp>(loc, distance, scalarLike(builder, loc, 0.5 * beta, distance));
  return builder.create<SelectOp>(loc, isNear, near, far);
}

/// share * log(p), the logarithm of at least 1e-12.
static Value expectedLog(OpBuilder &builder, Location loc, Value share, Value p) {
  Value above = builder.create<MaximumOp>(loc, p, scalarLike(builder, loc, 1e-12, p));
  return builder.create<MulOp>(loc, share, builder.create<LogOp>(loc, above));
}

Value BinaryCrossEntropyOp::terms(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  Value one = scalarLike(builder, loc, 1, operands[0]);
  Value ofOne = expectedLog(builder, loc, operands[1], operands[0]);
  Value ofZero = expectedLog(builder, loc, builder.create<SubOp>(loc, one, operands[1]),
                             builder.create<SubOp>(loc, one, operands[0]));
  Value surprise = builder.create<NegOp>(loc, builder.create<AddOp>(loc, ofOne, ofZero));
  return builder.create<MulOp>(loc, surprise, operands[2]);
}

Value BCEWithLogitsLossOp::terms(OpBuilder &builder, ValueRange operands) {
  // With s = softplus(-x): -log p = s and -log(1 - p) = x + s, so (1 - y) x + (1 + (pos_weight - 1) y) s.
  Location loc = getLoc();
  Value x = operands[0], y = operands[1], one = scalarLike(builder, loc, 1, x);
  Value surprise = builder.create<SoftplusOp>(loc, builder.create<NegOp>(loc, x));
  Value linear = builder.create<MulOp>(loc, builder.create<SubOp>(loc, one, y), x);
  Value more = builder.create<MulOp>(loc, builder.create<SubOp>(loc, operands[3], one), y);
  Value curved = builder.create<MulOp>(loc, builder.create<AddOp>(loc, more, one), surprise);
  return builder.create<MulOp>(loc, builder.create<AddOp>(loc, linear, curved), operands[2]);
}

Value KLDivLossOp::terms(OpBuilder &builder, ValueRange operands) {
  Value entropy = builder.create<XlogyOp>(getLoc(), operands[1], operands[1]);
  return builder.create<SubOp>(getLoc(), entropy, builder.create<MulOp>(getLoc(), operands[1], operands[0]));
}
