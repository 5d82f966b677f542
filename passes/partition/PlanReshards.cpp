// Replaces every dist.reshard by the steps that the reshard planner finds.
#include "passes/partition/Passes.h"

#include "dialects/dist/Reshard.h"
#include "dialects/net/NetAttributes.h"
#include "dialects/net/NetOps.h"
#include "passes/sharding/Convert.h"

#include <functional>

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_PLANRESHARDSPASS
#include "passes/partition/Passes.h.inc"

namespace {

dist::CollectiveKind collectiveKind(dist::MoveKind kind) {
  switch (kind) {
  case dist::MoveKind::AllReduce: return dist::CollectiveKind::AllReduce;
  case dist::MoveKind::ReduceScatter: return dist::CollectiveKind::ReduceScatter;
  case dist::MoveKind::AllGather: return dist::CollectiveKind::AllGather;
  case dist::MoveKind::AlltoAll: return dist::CollectiveKind::AlltoAll;
  case dist::MoveKind::CollectivePermute: return dist::CollectiveKind::CollectivePermute;
  case dist::MoveKind::Exchange:
  case dist::MoveKind::Slice: break;
  }
  return dist::CollectiveKind::Exchange;
}

struct PlanReshards : impl::PlanReshardsPassBase<PlanReshards> {
  using PlanReshardsPassBase::PlanReshardsPassBase;

  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>())
      for (auto reshard : llvm::make_early_inc_range(network.getBody().getOps<dist::ReshardOp>()))
        expand(reshard);
  }

private:
  void expand(dist::ReshardOp reshard) {
    OpBuilder builder(reshard);
    Value value = reshard.getSource();
    std::vector<dist::ReshardStep> steps =
        dist::planReshard(dist::shardingOf(value), dist::shardingOf(reshard.getResult()), shapeOf(value),
                          elementBytesOf(value), machine);
    for (const dist::ReshardStep &step : steps) {
      value = build(builder, reshard, value, step);
      label(value.getDefiningOp(), reshard, step);
    }
    // The last step has the wanted placement; its text may still differ from the wanted one.
    if (value.getType() != reshard.getResult().getType() && value.getDefiningOp() && !steps.empty())
      value.setType(reshard.getResult().getType());
    reshard.getResult().replaceAllUsesWith(value);
    reshard.erase();
  }

  static Value build(OpBuilder &builder, dist::ReshardOp reshard, Value value, const dist::ReshardStep &step) {
    Type type = dist::withSharding(value.getType(), step.after);
    if (step.kind == dist::MoveKind::Slice)
      return builder.create<dist::SliceOp>(reshard.getLoc(), type, value, reshard.getMoveAttr(), reshard.getReasonAttr());
    return builder.create<dist::CollectiveOp>(
        reshard.getLoc(), type,
        dist::CollectiveKindAttr::get(builder.getContext(), collectiveKind(step.kind)), value,
        builder.getDenseI64ArrayAttr(step.groupMatrix), builder.getDenseI32ArrayAttr(step.groupAxes),
        builder.getI64IntegerAttr(step.dimension), builder.getI64IntegerAttr(step.splitDimension),
        reshard.getMoveAttr(), reshard.getReasonAttr());
  }

  /// MindSpore's names: the hash is of the scope and a running number.
  void label(Operation *op, dist::ReshardOp reshard, const dist::ReshardStep &step) {
    StringRef scope = net::getScope(reshard);
    std::string hash = std::to_string(std::hash<std::string>{}(scope.str() + "_" + std::to_string(count++)));
    bool completes = reshard.getMove() == "completion";
    net::setInstanceName(op, completes ? "forward_op_" + hash
                                       : "redistribution_op_" + hash + dist::moveKindName(step.kind));
    net::setScope(op, scope);
    net::setPhase(op, net::getPhase(reshard));
  }

  dist::MachineModel machine = dist::MachineModel::cpuLocal();
  int64_t count = 0;
};

} // namespace
} // namespace msc::passes
