// The contract of partitioned networks, and the pass `msc-verify-partition` that states it.
#include "passes/partition/Inherit.h"
#include "passes/partition/Linear.h"
#include "passes/partition/PartialSums.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Decisions.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_VERIFYPARTITIONPASS
#include "passes/partition/Passes.h.inc"

namespace {

LogicalResult verifyValue(Value value, int64_t devices) {
  auto complain = [&]() { return emitError(value.getLoc()) << "'" << net::getValueName(value) << "' "; };
  if (!dist::hasSharding(value.getType()))
    return complain() << "has no sharding";
  Sharding sharding = dist::shardingOf(value);
  if (std::string wrong = sharding.check(devices, shapeOf(value).size()); !wrong.empty())
    return complain() << "has the sharding " << sharding.str() << ": " << wrong;
  return success();
}

/// Partial terms of one sharding, added.
bool isPartialSum(Operation *op) {
  return addsPartials(op) && dist::shardingOf(op->getOperand(0)).isPartial() &&
         llvm::all_of(op->getOperands(), [&](Value v) { return v.getType() == op->getResult(0).getType(); });
}

/// Some axis assignment explains the shardings of all operands and results.
LogicalResult verifyRule(Operation *op, int64_t devices) {
  if (isPartialSum(op))
    return success();
  OperatorFacts facts = factsOf(op);
  std::vector<ShardingHint> hints;
  std::optional<size_t> terms; // operand of which a linear operator gets the terms
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (dist::shardingOf(operand).isPartial()) {
      if (terms || !isLinearIn(op, i))
        return op->emitError("takes the partial value '") << facts.operandNames[i] << "', which is not completed";
      terms = i;
    }
    hints.push_back({false, i, completed(dist::shardingOf(operand))});
  }
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    hints.push_back({true, i, completed(dist::shardingOf(result))});
  net::Assignment assignment = inheritAssignment(facts, hints, devices);
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (Sharding wanted = operandSharding(facts.rule, assignment, i).canonical(); wanted != completed(dist::shardingOf(operand)))
      return op->emitError("does not agree with its sharding rule: '")
             << facts.operandNames[i] << "' is " << dist::shardingOf(operand).str() << ", the others ask for "
             << wanted.str();
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Sharding left = resultSharding(facts.rule, assignment, i).canonical();
    if (terms) {
      std::vector<Sharding> others;
      for (auto [j, operand] : llvm::enumerate(op->getOperands()))
        if (j != *terms)
          others.push_back(dist::shardingOf(operand));
      std::optional<Sharding> partial = partialResult(left, dist::shardingOf(op->getOperand(*terms)), others);
      if (!partial)
        return op->emitError("gets the terms of '") << facts.operandNames[*terms] << "' for different pieces of its result";
      left = *partial;
    }
    if (left != dist::shardingOf(result))
      return op->emitError("does not agree with its sharding rule: result ")
             << i << " is " << dist::shardingOf(result).str() << ", the operands leave " << left.str();
  }
  return success();
}

LogicalResult verifyOperation(Operation *op, int64_t devices) {
  for (Value result : op->getResults())
    if (failed(verifyValue(result, devices)))
      return failure();
  if (hasRule(op))
    return verifyRule(op, devices);
  if (auto update = dyn_cast<net::UpdateOp>(op);
      update && update.getParameter().getType() != update.getNewValue().getType())
    return op->emitError("the new value has another sharding than the parameter");
  if (isa<net::ReturnOp>(op))
    for (Value value : op->getOperands())
      if (dist::shardingOf(value).isPartial())
        return op->emitError("returns the partial value '") << net::getValueName(value) << "'";
  return success();
}

struct VerifyPartition : impl::VerifyPartitionPassBase<VerifyPartition> {
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>())
      if (failed(verifyPartition(network)))
        return signalPassFailure();
  }
};

} // namespace

LogicalResult verifyPartition(net::NetworkOp network) {
  int64_t devices = getDevices(network);
  bool sound = true;
  Block &block = network.getBody().front();
  for (Value input : block.getArguments())
    sound &= succeeded(verifyValue(input, devices));
  for (Operation &op : block)
    sound = sound && succeeded(verifyOperation(&op, devices));
  return success(sound);
}

} // namespace msc::passes
