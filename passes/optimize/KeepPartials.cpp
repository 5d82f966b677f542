// The pass `msc-keep-partials`.
#include "passes/optimize/Passes.h"

#include "passes/partition/Linear.h"
#include "passes/partition/MoveSteps.h"
#include "passes/partition/PartialSums.h"
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

/// A sum that is completed, and brought to where one use wants it, for this use alone: its steps, first to last. None if there
/// are others.
SmallVector<Operation *> movesFor(OpOperand &use) {
  SmallVector<Operation *> steps;
  Value value = use.get();
  for (Operation *op = value.getDefiningOp(); op && isMoveStep(op); op = value.getDefiningOp()) {
    if (!value.hasOneUse())
      return {};
    steps.insert(steps.begin(), op);
    value = op->getOperand(0);
  }
  bool sums = llvm::all_of(dist::shardingOf(value).partial,
                           [](const PartialAxis &partial) { return partial.kind == ReduceKind::Sum; });
  if (!sums || !dist::shardingOf(value).isPartial() || dist::shardingOf(use.get()).isPartial())
    return {};
  return steps;
}

/// AllReduce(a) + AllReduce(b) = AllReduce(a + b), if that takes less time.
bool addTerms(Operation *op, dist::ReshardPlanner &planner) {
  Value result = op->getResult(0);
  Shape shape = shapeOf(result);
  size_t bytes = elementBytesOf(result), count = op->getNumOperands();
  Sharding wanted = dist::shardingOf(result);
  SmallVector<SmallVector<Operation *>> moves;
  for (OpOperand &use : op->getOpOperands()) {
    moves.push_back(movesFor(use));
    if (moves.back().empty() || use.get().getType() != result.getType() ||
        moves.back().front()->getOperand(0).getType() != moves.front().front()->getOperand(0).getType())
      return false;
  }
  Sharding partial = dist::shardingOf(moves.front().front()->getOperand(0));
  if (!addsSooner({partial, shape, bytes}, wanted, count, planner))
    return false;
  MoveLabel completing = labelOf(moves.back().front()), moving = labelOf(moves.back().back());
  completing.reason.clear();
  for (auto [use, steps] : llvm::zip(op->getOpOperands(), moves)) {
    completing.reason += (completing.reason.empty() ? "" : "; ") + labelOf(steps.front()).reason;
    use.set(steps.front()->getOperand(0));
    for (Operation *step : llvm::reverse(steps))
      step->erase();
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  result.setType(dist::withSharding(result.getType(), partial));
  SmallVector<OpOperand *> readers = llvm::map_to_vector(result.getUses(), [](OpOperand &use) { return &use; });
  std::vector<dist::ReshardStep> completion = dist::planCompletion(partial, shape);
  Value moved = createSteps(builder, result, completion, completing);
  moved = createSteps(builder, moved, planner.plan(completion.back().after, wanted, shape, bytes), moving);
  for (OpOperand *reader : readers)
    reader->set(moved);
  return true;
}

/// Lets `op` compute with the terms, and completes its result instead, if anybody reads it.
void completeBehind(Operation *op, dist::CollectiveOp completion, const Sharding &partial) {
  Value result = op->getResult(0);
  MoveLabel label = labelOf(completion);
  op->replaceUsesOfWith(completion.getResult(), completion.getSource());
  completion.erase();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  result.setType(dist::withSharding(result.getType(), partial));
  if (result.use_empty())
    return;
  Value completed = createSteps(builder, result, dist::planCompletion(partial, shapeOf(result)), label);
  result.replaceAllUsesExcept(completed, completed.getDefiningOp());
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
  Value source = completion.getSource();
  Shape made = shapeOf(result), terms = shapeOf(source);
  if (!completesSooner({*partial, made, elementBytesOf(result)}, {dist::shardingOf(source), terms, elementBytesOf(source)}, dist::machineOf(op)))
    return false;
  completeBehind(op, completion, *partial);
  return true;
}

struct KeepPartials : impl::KeepPartialsPassBase<KeepPartials> {
  void runOnOperation() override {
    dist::ReshardPlanner planner(dist::machineOf(getOperation()));
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      SmallVector<Operation *> operations;
      for (Operation &op : network.getBody().front())
        if (hasRule(&op) && op.getNumResults() == 1)
          operations.push_back(&op);
      for (Operation *op : operations) {
        bool kept = addsPartials(op) && addTerms(op, planner);
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
