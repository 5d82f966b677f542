#include "passes/partition/Moves.h"

#include "passes/partition/Widen.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <functional>

using namespace mlir;

namespace msc::passes {

static StringRef reductionText(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return "sums over";
  case ReduceKind::Prod:
    return "multiplies over";
  case ReduceKind::Min:
    return "takes the minimum over";
  case ReduceKind::Max:
    return "takes the maximum over";
  }
  return "";
}

std::string callerOf(Operation *op, Operation *forward) {
  if (!forward)
    return ("'" + net::getUserName(op) + "'").str();
  std::string name = net::getInstanceName(forward).str();
  std::optional<int64_t> operand = net::getGradientOfOperand(op);
  if (!operand)
    return "backward of '" + name + "'";
  return "gradient of '" + nameOfValue(forward->getOperand(*operand)) + "' (" + name + ")";
}

std::string nameOfValue(Value value) {
  auto isUnknown = [](Operation *op) { // to users: they know the value that it moves or converts
    return isa<dist::ReshardOp>(op) || (isWideningCast(op) && net::getValueName(op->getResult(0)).empty());
  };
  while (value.getDefiningOp() && isUnknown(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  StringRef name = net::getValueName(value);
  Operation *maker = value.getDefiningOp();
  return (name.empty() && maker ? net::getUserName(maker) : name).str();
}

std::string completionReason(Operation *op, Operation *forward, const OperatorFacts &facts, const Pieces &pieces) {
  std::string who = (forward ? "" : net::getUserOp(op).str() + " ") + callerOf(op, forward) + " ";
  std::vector<std::string> counts;
  ReduceKind kind = ReduceKind::Sum;
  bool keepsOthers = false;
  for (auto [f, factor] : llvm::enumerate(facts.rule.factors)) {
    keepsOthers |= factor.kind == net::FactorKind::PassThrough;
    if (factor.kind != net::FactorKind::Reduction || pieces[f] == 1)
      continue;
    counts.push_back(std::to_string(pieces[f]));
    kind = factor.reduce;
  }
  if (counts.empty())
    return who + "adds terms that are partial sums";
  bool contracts = keepsOthers && facts.rule.operands.size() > 1;
  return who + reductionText(kind).str() + " " + llvm::join(counts, " x ") + " pieces of its " +
         (contracts ? "contracted" : "reduced") + " dimension" + (counts.size() == 1 ? "" : "s");
}

std::string redistributionReason(const std::string &who, const std::string &what, const Sharding &from,
                                 const Sharding &to) {
  std::vector<std::string> changes;
  for (size_t dim = 0; dim < to.dims.size(); ++dim) {
    int64_t has = from.pieces(dim), wants = to.pieces(dim);
    if (has != wants)
      changes.push_back("dimension " + std::to_string(dim) +
                        (changes.empty() && !what.empty() ? " of " + what : "") +
                        (wants == 1 ? " whole" : " cut into " + std::to_string(wants)));
  }
  if (changes.empty())
    changes.push_back("the pieces" + (what.empty() ? "" : " of " + what) + " on other ranks");
  return who + " wants " + llvm::join(changes, ", ");
}

Value MoveBuilder::move(OpBuilder &builder, Operation *context, Value value, const Sharding &target, StringRef kind,
                        StringRef name, StringRef reason) {
  auto op = builder.create<dist::ReshardOp>(context->getLoc(), dist::withSharding(value.getType(), target), value,
                                            builder.getStringAttr(kind), builder.getStringAttr(reason));
  StringRef scope = net::getScope(context);
  net::setScope(op, scope);
  net::setPhase(op, net::getPhase(context));
  if (std::optional<int64_t> id = net::getForwardId(context))
    net::setForwardId(op, *id);
  size_t hash = std::hash<std::string>{}(scope.str() + "_" + std::to_string(next++));
  net::setInstanceName(op, (name + std::to_string(hash)).str());
  return op.getResult();
}

Value MoveBuilder::complete(Value value, const Sharding &target, StringRef reason) {
  Operation *producer = value.getDefiningOp();
  OpBuilder builder(producer->getContext());
  builder.setInsertionPointAfter(producer);
  if (!dist::shardingOf(value).isPartial())
    return move(builder, producer, value, target, "redistribution", "redistribution_op_", reason);
  return move(builder, producer, value, target, "completion", "forward_op_", reason);
}

Value MoveBuilder::redistribute(Value value, const Sharding &target, Operation *user, StringRef reason) {
  OpBuilder builder(user);
  return move(builder, user, value, target, "redistribution", "redistribution_op_", reason);
}

} // namespace msc::passes
