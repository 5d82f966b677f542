#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <limits>

using namespace mlir;
using namespace msc::net;

LogicalResult RangeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t start = op.getStart(), limit = op.getLimit(), delta = op.getDelta();
  if (delta == 0) // C1
    return at.error("'delta' of 'Range' is 0");
  constexpr int64_t lowest = std::numeric_limits<int32_t>::min(), highest = std::numeric_limits<int32_t>::max();
  if (std::min(start, limit) < lowest || std::max(start, limit) > highest) // C2
    return at.error("'Range' from " + Twine(start) + " to " + Twine(limit) + " has numbers that i32 does not hold");
  int64_t distance = delta > 0 ? limit - start : start - limit, stride = std::abs(delta);
  results.push_back(tensorOf({distance <= 0 ? 0 : (distance + stride - 1) / stride}, IntegerType::get(at.context, 32)));
  return success();
}

//===-- rule, lowering ----------------------------------------------------===//

ShardingRule RangeOp::shardingRule() {
  ShardingRule rule = ruleWithFactors(shapeOf(getOutput()), FactorKind::Replicated);
  rule.factors[0].reason = "every rank counts by itself";
  rule.results = {identityDims(1)};
  return rule;
}

LogicalResult RangeOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                     SmallVectorImpl<Value> &results) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    Type type = b.getI32Type();
    Value position = b.create<arith::IndexCastOp>(type, b.create<linalg::IndexOp>(0));
    return {add(b, mul(b, position, number(b, static_cast<double>(static_cast<int64_t>(getDelta())), type)),
                number(b, static_cast<double>(static_cast<int64_t>(getStart())), type))};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}
