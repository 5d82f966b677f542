// The pass `msc-keep-partials`.
#include "passes/optimize/Passes.h"

#include "passes/partition/Linear.h"
#include "passes/partition/MoveSteps.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_KEEPPARTIALSPASS
#include "passes/optimize/Passes.h.inc"

namespace {

/// The AllReduce that completes a sum only for this use; null for everything else.
dist::CollectiveOp completionFor(OpOperand &use) {
  auto op = use.get().getDefiningOp<dist::CollectiveOp>();
  if (!op || op.getKind() != dist::CollectiveKind::AllReduce || !op.getResult().hasOneUse() ||
      dist::shardingOf(op.getResult()).isPartial())
    return nullptr;
  for (const PartialAxis &partial : dist::shardingOf(op.getSource()).partial)
    if (partial.kind != ReduceKind::Sum)
      return nullptr;
  return op;
}

/// Lets `op` compute with the terms, and completes its result instead.
void completeBehind(Operation *op, ArrayRef<dist::CollectiveOp> completions, const Sharding &partial) {
  Value result = op->getResult(0);
  MoveLabel label = labelOf(completions.back());
  label.reason.clear();
  for (dist::CollectiveOp completion : completions) {
    label.reason += (label.reason.empty() ? "" : "; ") + labelOf(completion).reason;
    op->replaceUsesOfWith(completion.getResult(), completion.getSource());
    completion.erase();
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  result.setType(dist::withSharding(result.getType(), partial));
  Value completed = createSteps(builder, result, dist::planCompletion(partial, shapeOf(result)), label);
  result.replaceAllUsesExcept(completed, completed.getDefiningOp());
}

/// AllReduce(a) + AllReduce(b) = AllReduce(a + b).
bool addTerms(Operation *op) {
  SmallVector<dist::CollectiveOp> completions;
  for (OpOperand &use : op->getOpOperands()) {
    completions.push_back(completionFor(use));
    if (!completions.back() || completions.back().getSource().getType() != completions.front().getSource().getType())
      return false;
  }
  if (shapeOf(op->getResult(0)) != shapeOf(op->getOperand(0)))
    return false;
  completeBehind(op, completions, dist::shardingOf(completions.front().getSource()));
  return true;
}

/// f(AllReduce(a)) = AllReduce(f(a)) where f is linear, if completing the result takes less time.
bool applyToTerms(Operation *op, OpOperand &use) {
  dist::CollectiveOp completion = completionFor(use);
  if (!completion || !isLinearIn(op, use.getOperandNumber()))
    return false;
  std::vector<Sharding> others;
  for (OpOperand &other : op->getOpOperands())
    if (&other != &use)
      others.push_back(dist::shardingOf(other.get()));
  Value result = op->getResult(0);
  std::optional<Sharding> partial =
      partialResult(dist::shardingOf(result), dist::shardingOf(completion.getSource()), others);
  if (!partial)
    return false;
  const MachineModel &machine = dist::machineOf(op);
  double us = dist::reshardUs(dist::planCompletion(*partial, shapeOf(result)), elementBytesOf(result), machine);
  if (us >= dist::stepUs(completion, machine) * (1 - 1e-9))
    return false;
  completeBehind(op, completion, *partial);
  return true;
}

struct KeepPartials : impl::KeepPartialsPassBase<KeepPartials> {
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      SmallVector<Operation *> operations;
      for (Operation &op : network.getBody().front())
        if (hasRule(&op) && op.getNumResults() == 1)
          operations.push_back(&op);
      for (Operation *op : operations) {
        bool kept = addsPartials(op) && addTerms(op);
        for (OpOperand &use : op->getOpOperands())
          kept = kept || applyToTerms(op, use);
        operatorsMoved += kept;
      }
      if (failed(verifyPartition(network)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace msc::passes
