#include "passes/sharding/Convert.h"

#include "dialects/dist/DistDialect.h"

using namespace mlir;

namespace msc::passes {

Shape shapeOf(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return {shape.begin(), shape.end()};
}

size_t elementBytesOf(Value value) {
  return static_cast<size_t>(net::elementBytes(value.getType()));
}

std::string operandName(Operation *op, unsigned operand) {
  StringRef name = net::getValueName(op->getOperand(operand));
  if (name.empty())
    if (auto face = dyn_cast<net::Operator>(op))
      if (auto names = face.inputNames(); operand < names.size())
        name = names[operand];
  return name.empty() ? "operand " + std::to_string(operand) : name.str();
}

bool hasRule(Operation *op) {
  return isa<net::ShardingRuleInterface>(op);
}

OperatorFacts factsOf(Operation *op) {
  OperatorFacts facts{.op = op->getName().stripDialect().str()};
  facts.rule = cast<net::ShardingRuleInterface>(op).shardingRule();
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    facts.operandNames.push_back(operandName(op, i));
    facts.operandShapes.push_back(shapeOf(op->getOperand(i)));
  }
  for (Value result : op->getResults())
    facts.resultShapes.push_back(shapeOf(result));
  return facts;
}

Problem problemOf(net::NetworkOp network, int64_t devices, std::vector<Operation *> &operations) {
  Problem problem{.devices = devices};
  problem.machine = dist::machineOf(network);
  llvm::DenseMap<Value, int32_t> index;
  auto tensor = [&](Value value) {
    auto [at, isNew] = index.try_emplace(value, static_cast<int32_t>(problem.tensors.size()));
    if (isNew)
      problem.tensors.push_back({net::getValueName(value).str(), shapeOf(value), elementBytesOf(value), std::nullopt});
    return at->second;
  };
  for (BlockArgument input : network.getBody().getArguments())
    tensor(input);
  for (Operation &op : network.getBody().front()) {
    if (!hasRule(&op) || net::getPhase(&op) != net::Phase::Forward)
      continue;
    ProblemOperator entry{.name = net::getInstanceName(&op).str(), .facts = factsOf(&op)};
    for (Value operand : op.getOperands())
      entry.operands.push_back(tensor(operand));
    for (Value result : op.getResults())
      entry.results.push_back(tensor(result));
    if (auto cost = dyn_cast<net::CostInterface>(op))
      entry.localUs = [cost, machine = problem.machine](const std::vector<Shape> &operands,
                                                        const std::vector<Shape> &results) mutable {
        net::OperatorCost work = cost.cost(operands, results);
        return machine.operatorUs(work.flops, work.bytesRead, work.bytesWritten);
      };
    problem.operators.push_back(std::move(entry));
    operations.push_back(&op);
  }
  return problem;
}

} // namespace msc::passes
