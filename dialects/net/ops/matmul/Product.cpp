#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Gradients.h"
#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

// BatchMatMul and Dense: other names of the product, with MatMul in their place.

//===-- constraints and result types --------------------------------------===//

LogicalResult BatchMatMulOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  return MatMulOp::infer(at, MatMulOp::Adaptor(op.getOperands(), op.getAttributes()), results);
}

LogicalResult DenseOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (failed(at.checkSameElement(ElementSet::Number))) // C1
    return failure();
  if (at.rank(0) < 2 || at.rank(1) != 2 || at.shape(0).back() != at.shape(1).back()) // C2
    return at.error("'Dense' of " + at.text(0) + " takes a 'weight' with rows of its last dimension, but " + at.text(1) + " is given",
                    {1});
  int64_t outputs = at.shape(1).front();
  if (at.operands.size() > 2 && at.shape(2) != ArrayRef(outputs)) // C3
    return at.error("'Dense' with " + Twine(outputs) + " rows of weights takes as many elements of 'bias', but " + at.text(2) +
                        " is given",
                    {2});
  SmallVector<int64_t> shape(at.shape(0));
  shape.back() = outputs;
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

//===-- gradients ---------------------------------------------------------===//

LogicalResult BatchMatMulOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                           MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}
LogicalResult DenseOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &wanted,
                                     MutableArrayRef<Value> gradients) {
  return expansionGradient(builder, *this, dy, wanted, gradients);
}

//===-- rules, costs ------------------------------------------------------===//

static MatMulOp productOf(OpBuilder &builder, BatchMatMulOp op, ValueRange x) {
  return builder.create<MatMulOp>(op.getLoc(), x[0], x[1], op.getTransposeA(), op.getTransposeB(), BoolAttr());
}
static MatMulOp productOf(OpBuilder &builder, DenseOp op, ValueRange x) {
  return builder.create<MatMulOp>(op.getLoc(), x[0], x[1], false, true, BoolAttr());
}

/// Asks the product that stands in the place of an operator.
template <typename Op, typename Ask> static auto askProduct(Op op, Ask ask) {
  OpBuilder builder(op.getContext());
  MatMulOp product = productOf(builder, op, op->getOperands());
  auto answer = ask(product);
  product.erase();
  return answer;
}

ShardingRule BatchMatMulOp::shardingRule() {
  return askProduct(*this, [](MatMulOp product) { return product.shardingRule(); });
}
ShardingRule DenseOp::shardingRule() {
  ShardingRule rule = askProduct(*this, [](MatMulOp product) { return product.shardingRule(); });
  if (getBias())
    rule.operands.push_back({rule.results[0].back()});
  return rule;
}

OperatorCost BatchMatMulOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return askProduct(*this, [&](MatMulOp product) { return product.cost(operands, results); });
}
OperatorCost DenseOp::cost(ArrayRef<std::vector<int64_t>> operands, ArrayRef<std::vector<int64_t>> results) {
  return askProduct(*this, [&](MatMulOp product) { return product.cost(operands.take_front(2), results); });
}

//===-- lowering ----------------------------------------------------------===//

LoweringKind BatchMatMulOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> BatchMatMulOp::expand(OpBuilder &builder, ValueRange operands) {
  return {productOf(builder, *this, operands)};
}

LoweringKind DenseOp::loweringKind() {
  return LoweringKind::Expanded;
}
SmallVector<Value> DenseOp::expand(OpBuilder &builder, ValueRange operands) {
  Value product = productOf(builder, *this, operands);
  return {getBias() ? builder.create<AddOp>(getLoc(), product, operands[2]).getResult() : product};
}
