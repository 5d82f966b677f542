// The pass `msc-plan-reshards`.
#include "dialects/dist/Reshard.h"
#include "passes/partition/MoveSteps.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PLANRESHARDSPASS
#include "passes/partition/Passes.h.inc"

namespace {

void planOne(dist::ReshardOp op, dist::ReshardPlanner &planner) {
  Sharding from = dist::shardingOf(op.getSource()), to = dist::shardingOf(op.getResult());
  Shape shape = shapeOf(op.getSource());
  bool staysThere = op.getMove() == "completion" && completed(from) == to; // no out_strategy
  std::vector<dist::ReshardStep> steps =
      staysThere ? dist::planCompletion(from, shape) : planner.plan(from, to, shape, elementBytesOf(op.getSource()));
  OpBuilder builder(op);
  op.getResult().replaceAllUsesWith(createSteps(builder, op.getSource(), steps, labelOf(op)));
  op.erase();
}

struct PlanReshards : impl::PlanReshardsPassBase<PlanReshards> {
  void runOnOperation() override {
    dist::ReshardPlanner planner(dist::machineOf(getOperation()));
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      for (auto op : llvm::make_early_inc_range(network.getBody().getOps<dist::ReshardOp>()))
        planOne(op, planner);
      if (failed(verifyPartition(network)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace msc::passes
