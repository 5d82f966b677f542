// The pass `msc-plan-reshards`.
#include "dialects/dist/Reshard.h"
#include "passes/partition/Passes.h"
#include "passes/sharding/Convert.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PLANRESHARDSPASS
#include "passes/partition/Passes.h.inc"

namespace {

dist::CollectiveKind collectiveKind(dist::MoveKind kind) {
  switch (kind) {
  case dist::MoveKind::AllReduce:
    return dist::CollectiveKind::AllReduce;
  case dist::MoveKind::ReduceScatter:
    return dist::CollectiveKind::ReduceScatter;
  case dist::MoveKind::AllGather:
    return dist::CollectiveKind::AllGather;
  case dist::MoveKind::AlltoAll:
    return dist::CollectiveKind::AlltoAll;
  case dist::MoveKind::CollectivePermute:
    return dist::CollectiveKind::CollectivePermute;
  case dist::MoveKind::Slice:
  case dist::MoveKind::Exchange:
    break;
  }
  return dist::CollectiveKind::Exchange;
}

Value createStep(OpBuilder &builder, dist::ReshardOp op, const dist::ReshardStep &step, Value source) {
  Type type = dist::withSharding(source.getType(), step.after);
  Location loc = op.getLoc();
  if (step.kind == dist::MoveKind::Slice)
    return builder.create<dist::SliceOp>(loc, type, source, op.getMoveAttr(), op.getReasonAttr());
  return builder.create<dist::CollectiveOp>(
      loc, type, dist::CollectiveKindAttr::get(op.getContext(), collectiveKind(step.kind)), source,
      builder.getDenseI64ArrayAttr(step.groupMatrix), builder.getDenseI32ArrayAttr(step.groupAxes),
      builder.getI64IntegerAttr(step.dimension), builder.getI64IntegerAttr(step.splitDimension),
      builder.getI64IntegerAttr(step.receivedElements), op.getMoveAttr(), op.getReasonAttr());
}

/// Name, scope and phase go from the reshard to its steps; a redistribution's name ends in what the step does.
void label(Operation *step, dist::ReshardOp op, dist::MoveKind kind) {
  net::setScope(step, net::getScope(op));
  net::setPhase(step, net::getPhase(op));
  if (std::optional<int64_t> id = net::getForwardId(op))
    net::setForwardId(step, *id);
  std::string name = net::getInstanceName(op).str();
  net::setInstanceName(step, op.getMove() == "redistribution" ? name + dist::moveKindName(kind) : name);
}

void planOne(dist::ReshardOp op, const dist::MachineModel &machine) {
  OpBuilder builder(op);
  Value value = op.getSource();
  for (const dist::ReshardStep &step : dist::planReshard(dist::shardingOf(value), dist::shardingOf(op.getResult()),
                                                         shapeOf(value), elementBytesOf(value), machine)) {
    value = createStep(builder, op, step, value);
    label(value.getDefiningOp(), op, step.kind);
  }
  op.getResult().replaceAllUsesWith(value);
  op.erase();
}

struct PlanReshards : impl::PlanReshardsPassBase<PlanReshards> {
  void runOnOperation() override {
    dist::MachineModel machine = dist::MachineModel::cpuLocal();
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      for (auto op : llvm::make_early_inc_range(network.getBody().getOps<dist::ReshardOp>()))
        planOne(op, machine);
      if (failed(verifyPartition(network)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace msc::passes
