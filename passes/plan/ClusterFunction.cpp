#include "passes/plan/ClusterFunction.h"

#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace msc::passes {

SmallVector<Value> ClusterSignature::pointers() const {
  SmallVector<Value> result(inputs);
  for (auto [output, input] : llvm::zip(outputs, inPlaceOf))
    if (input < 0)
      result.push_back(output);
  return result;
}

/// Whether the operator makes each element of results with this type out of elements at the same place of such tensors, or
/// reduces all of them (what is written in place waits for the last sweep).
static bool worksInPlace(Operation *op, Type type) {
  auto isSingle = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements() == 1; };
  auto tensor = cast<RankedTensorType>(type);
  auto isLike = [&](Value value) { return cast<RankedTensorType>(value.getType()).getShape() == tensor.getShape(); };
  if (llvm::all_of(op->getOperands(), [&](Value value) { return isSingle(value) || isLike(value); }) && llvm::all_of(op->getResults(), isSingle))
    return true;
  auto ruled = dyn_cast<net::ShardingRuleInterface>(op);
  if (!ruled || !llvm::all_of(op->getResults(), isLike))
    return false;
  net::ShardingRule rule = ruled.shardingRule();
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (isLike(operand) && rule.operands[i] != rule.results[0])
      return false;
  return true;
}

/// Whether the loops of the cluster visit each element of the parameter once: nothing in it is larger, or shaped otherwise.
static bool visitsOnce(const Unit &cluster, Value parameter) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(parameter.getType()).getShape();
  return llvm::all_of(cluster.ops, [&](Operation *op) {
    return llvm::all_of(op->getResults(), [&](Value result) {
      auto type = cast<RankedTensorType>(result.getType());
      return type.getNumElements() == 1 || type.getShape() == shape;
    });
  });
}

/// Whether only the operator that computes `output` reads the parameter inside the cluster; or all of the cluster runs over
/// the elements of the parameter, and reads each before it writes it.
static bool readsBeforeWriting(const Unit &cluster, net::UpdateOp update, Operation *writer) {
  Value parameter = update.getParameter();
  if (llvm::all_of(cluster.ops, [&](Operation *op) { return worksInPlace(op, parameter.getType()); }))
    return true;
  auto lower = cast<net::Lower>(writer);
  bool mayShare = llvm::any_of(lower.inPlaceResults(), [&](auto pair) {
    return update.getNewValue() == writer->getResult(pair.first) && writer->getOperand(pair.second) == parameter;
  });
  return mayShare && visitsOnce(cluster, parameter) && llvm::none_of(parameter.getUsers(), [&](Operation *user) {
           return user != writer && llvm::is_contained(cluster.ops, user);
         });
}

/// An output may take over a parameter's memory if it is the parameter's new value. Readers elsewhere were ordered before
/// this unit.
static int64_t inPlaceInput(const Unit &cluster, ArrayRef<Value> inputs, Value output) {
  net::UpdateOp update = updateOf(output);
  if (!update || !isa<net::Lower>(output.getDefiningOp()) || output.getType() != update.getParameter().getType())
    return -1;
  auto input = llvm::find(inputs, update.getParameter());
  if (input == inputs.end() || !readsBeforeWriting(cluster, update, output.getDefiningOp()))
    return -1;
  return input - inputs.begin();
}

ClusterSignature signatureOf(const Unit &cluster) {
  ClusterSignature signature;
  signature.inputs = cluster.inputs();
  signature.outputs = cluster.outputs();
  for (Value output : signature.outputs)
    signature.inPlaceOf.push_back(inPlaceInput(cluster, signature.inputs, output));
  return signature;
}

RankedTensorType localType(Type type, int64_t rank) {
  auto tensor = cast<RankedTensorType>(type);
  std::vector<int64_t> shape = dist::globalShape(type);
  if (dist::hasSharding(type))
    shape = dist::shardingOf(type).localShape(shape, rank);
  return RankedTensorType::get(shape, tensor.getElementType());
}

FailureOr<func::FuncOp> buildClusterFunction(ModuleOp module, const Unit &cluster, const ClusterSignature &signature,
                                             int64_t rank) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto local = [&](Value value) -> Type { return localType(value.getType(), rank); };
  auto type = builder.getFunctionType(llvm::map_to_vector(signature.inputs, local),
                                      llvm::map_to_vector(signature.outputs, local));
  auto function = builder.create<func::FuncOp>(cluster.ops.front()->getLoc(), cluster.name(), type);
  for (auto [output, input] : llvm::enumerate(signature.inPlaceOf))
    if (input >= 0)
      function.setArgAttr(input, "msc.in_place", builder.getI64IntegerAttr(output));

  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(ValueRange(signature.inputs), body->getArguments());
  for (Operation *op : cluster.ops) {
    SmallVector<Value> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(mapping.lookup(operand));
    SmallVector<Type> types;
    for (Value result : op->getResults())
      types.push_back(local(result));
    if (failed(cast<net::Lower>(op).lowerToLinalg(builder, operands, types, results))) {
      function.erase();
      return failure();
    }
    mapping.map(op->getResults(), ValueRange(results));
  }
  SmallVector<Value> returned;
  for (Value output : signature.outputs)
    returned.push_back(mapping.lookup(output));
  builder.create<func::ReturnOp>(function.getLoc(), returned);
  return function;
}

} // namespace msc::passes
