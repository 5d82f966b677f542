#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

LogicalResult OneHotOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  if (!at.element(0).isInteger(32) && !at.element(0).isInteger(64)) // C1
    return at.error("'" + at.opName + "' takes indices i32 or i64, but " + at.name(0) + " is " + elementText(at.element(0)), {0});
  int64_t depth = op.getDepth(), axis = op.getAxis(), rank = at.rank(0);
  if (depth < 1) // C2
    return at.error("'depth' of 'OneHot' is " + Twine(depth) + ", but there is at least 1");
  if (failed(at.checkPlaces(0, depth)))
    return failure();
  if (axis < -1 || axis > rank) // C3
    return at.error("'axis' of 'OneHot' is " + Twine(axis) + ", but " + at.text(0) + " takes -1 to " + Twine(rank), {0});
  Type type = op.getDtype().value_or(Float32Type::get(at.context));
  if (type.isInteger(1)) // C4
    return at.error("'OneHot' makes numbers, not bool");
  for (const APFloat &value : {op.getOnValue(), op.getOffValue()})
    if (failed(at.checkHolds(type, value))) // C4
      return failure();
  SmallVector<int64_t> shape(at.shape(0));
  shape.insert(shape.begin() + (axis < 0 ? rank : axis), depth);
  results.push_back(tensorOf(shape, type));
  return success();
}

int64_t OneHotOp::dimension() {
  int64_t axis = getAxis();
  return axis < 0 ? cast<RankedTensorType>(getIndices().getType()).getRank() : axis;
}

ShardingRule OneHotOp::shardingRule() {
  std::vector<int64_t> shape = shapeOf(getOutput());
  ShardingRule rule = ruleWithFactors(shape);
  std::vector<DimFactors> dims = identityDims(shape.size()), indices = dims;
  indices.erase(indices.begin() + dimension());
  rule.operands = {indices};
  rule.results = {dims};
  return rule;
}

LoweringKind OneHotOp::loweringKind() {
  return LoweringKind::Expanded;
}

SmallVector<Value> OneHotOp::expand(OpBuilder &builder, ValueRange operands) {
  Location loc = getLoc();
  auto type = cast<RankedTensorType>(getOutput().getType());
  ArrayRef<int64_t> shape = type.getShape();
  Value places = builder.create<RangeOp>(loc, 0, shape[dimension()], 1);
  if (cast<RankedTensorType>(operands[0].getType()).getElementType().isInteger(64))
    places = builder.create<CastOp>(loc, places, builder.getI64Type());
  SmallVector<int64_t> along(shape.size() - dimension(), 1), single(shape);
  along.front() = shape[dimension()];
  single[dimension()] = 1;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value on = builder.create<ConstantOp>(loc, scalar, getOnValue()), off = builder.create<ConstantOp>(loc, scalar, getOffValue());
  auto hot = builder.create<SelectEqualOp>(loc, reshaped(builder, loc, operands[0], single), reshaped(builder, loc, places, along), on, off);
  setResultFactors(hot, llvm::to_vector(llvm::seq<int64_t>(0, shape.size())));
  return {hot};
}
