#include "dialects/net/NetOps.h"
#include "dialects/net/ops/dropout/Draw.h"
#include "dialects/net/ops/support/Linalg.h"
#include "dialects/net/ops/support/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <array>

using namespace mlir;
using namespace msc::net;

LogicalResult RandomBitsOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  for (unsigned operand = 0; operand < 3; ++operand)
    if (!at.element(operand).isInteger(64)) // C1
      return at.error("'RandomBits' takes i64 tensors, but " + at.name(operand) + " is " + elementText(at.element(operand)),
                      {operand}, "bring it to i64 with Cast");
  for (unsigned operand = 1; operand < 3; ++operand)
    if (at.rank(operand) != 0) // C2
      return at.error("'RandomBits' takes a scalar '" + at.inputNames[operand] + "', but " + at.text(operand) + " is none",
                      {operand});
  results.push_back(tensorOf(at.shape(0), at.element(0)));
  return success();
}

//===-- rule, cost --------------------------------------------------------===//

ShardingRule RandomBitsOp::shardingRule() {
  return pointwiseRule(*this);
}

OperatorCost RandomBitsOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  OperatorCost cost = defaultCost(*this, operands, results);
  cost.flops = kDrawOperations * static_cast<double>(msc::elementCount(results[0]));
  return cost;
}

//===-- lowering ----------------------------------------------------------===//

namespace {

/// Words of 32 bits in i64, so that products keep their upper halves.
struct Words {
  ImplicitLocOpBuilder &b;

  Value constant(int64_t value) { return b.create<arith::ConstantIntOp>(value, 64); }
  Value low(Value value) { return b.create<arith::AndIOp>(value, constant(0xffffffff)); }
  Value high(Value value) { return b.create<arith::ShRUIOp>(value, constant(32)); }
  Value mix(Value x, Value y, Value z) { return b.create<arith::XOrIOp>(b.create<arith::XOrIOp>(x, y), z); }
  Value sum(Value x, int64_t y) { return low(b.create<arith::AddIOp>(x, constant(y))); }

  /// Word 0 of Philox 4x32-10; see runtime/data/Philox.h.
  Value philox(std::array<Value, 4> counter, std::array<Value, 2> key) {
    for (int round = 0; round < 10; ++round) {
      Value first = b.create<arith::MulIOp>(counter[0], constant(0xD2511F53));
      Value second = b.create<arith::MulIOp>(counter[2], constant(0xCD9E8D57));
      counter = {mix(high(second), counter[1], key[0]), low(second), mix(high(first), counter[3], key[1]), low(first)};
      key = {sum(key[0], 0x9E3779B9), sum(key[1], 0xBB67AE85)};
    }
    return counter[0];
  }
};

} // namespace

LogicalResult RandomBitsOp::lowerToLinalg(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                          SmallVectorImpl<Value> &results) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    Words words{b};
    return {words.philox({words.low(x[0]), words.high(x[0]), words.low(x[1]), words.high(x[1])},
                         {words.low(x[2]), words.high(x[2])})};
  };
  llvm::append_range(results, buildPointwise(builder, getLoc(), operands, resultTypes, body));
  return success();
}
