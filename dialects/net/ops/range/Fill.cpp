#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace msc::net;

//===-- constraints and result types --------------------------------------===//

LogicalResult LinSpaceOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t count = op.getNum();
  if (count < 1) // C1
    return at.error("'num' of 'LinSpace' is " + Twine(count) + ", but there is at least 1");
  results.push_back(tensorOf({count}, Float32Type::get(at.context)));
  return success();
}

LogicalResult FillOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  for (int64_t size : op.getShape())
    if (size < 0) // C1
      return at.error("'shape' of 'Fill' has the size " + Twine(size));
  Type type = op.getType();
  if (failed(at.checkHolds(type, op.getValue()))) // C2
    return failure();
  results.push_back(tensorOf(op.getShape(), type));
  return success();
}

//===-- rules, lowering ---------------------------------------------------===//

/// No operand says how they could be cut.
static ShardingRule constantRule(Value output, const char *reason) {
  std::vector<int64_t> shape = shapeOf(output);
  ShardingRule rule = ruleWithFactors(shape, FactorKind::Replicated);
  for (Factor &factor : rule.factors)
    factor.reason = reason;
  rule.results = {identityDims(shape.size())};
  return rule;
}

ShardingRule LinSpaceOp::shardingRule() {
  return constantRule(getOutput(), "every rank counts by itself");
}
ShardingRule FillOp::shardingRule() {
  return constantRule(getOutput(), "every rank counts by itself");
}

LogicalResult LinSpaceOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                        SmallVectorImpl<Value> &results) {
  double start = getStart().convertToDouble(), count = static_cast<double>(static_cast<int64_t>(getNum()));
  double distance = count > 1 ? (getStop().convertToDouble() - start) / (count - 1) : 0;
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    Type type = b.getF32Type();
    Value place = b.create<arith::IndexCastOp>(b.getI32Type(), b.create<linalg::IndexOp>(0));
    Value steps = b.create<arith::SIToFPOp>(type, place);
    return {add(b, mul(b, steps, number(b, distance, type)), number(b, start, type))};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}

LogicalResult FillOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                    SmallVectorImpl<Value> &results) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    Type type = cast<RankedTensorType>(resultTypes[0]).getElementType();
    return {number(b, getValue().convertToDouble(), type)};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}
