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

/// An output may take over a parameter's memory if it is the parameter's new value and only the operator that computes
/// it reads the old one inside the cluster. Readers elsewhere were ordered before this unit.
static int64_t inPlaceInput(const Unit &cluster, ArrayRef<Value> inputs, Value output) {
  net::UpdateOp update = updateOf(output);
  auto lower = dyn_cast<net::Lower>(output.getDefiningOp());
  if (!update || !lower || output.getType() != update.getParameter().getType())
    return -1;
  for (auto [result, operand] : lower.inPlaceResults()) {
    if (output != lower->getResult(result) || lower->getOperand(operand) != update.getParameter())
      continue;
    for (Operation *user : update.getParameter().getUsers())
      if (user != lower && llvm::is_contained(cluster.ops, user))
        return -1;
    return llvm::find(inputs, update.getParameter()) - inputs.begin();
  }
  return -1;
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
