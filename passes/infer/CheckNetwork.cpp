// The pass `msc-check-network`.
#include "passes/infer/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace msc::infer {
#define GEN_PASS_DEF_CHECKNETWORK
#include "passes/infer/Passes.h.inc"
} // namespace msc::infer

using namespace mlir;
using namespace msc;
using namespace msc::net;

/// Values that a result of the network or an update depends on.
static DenseSet<Value> usedValues(NetworkOp network) {
  DenseSet<Value> used;
  for (Operation &op : llvm::reverse(network.getBody().front()))
    if (isa<ReturnOp, UpdateOp>(op) || llvm::any_of(op.getResults(), [&](Value v) { return used.contains(v); }))
      used.insert(op.operand_begin(), op.operand_end());
  return used;
}

static void warnOfUnused(NetworkOp network) {
  DenseSet<Value> used = usedValues(network);
  Block &block = network.getBody().front();
  for (Value input : block.getArguments())
    if (!used.contains(input))
      emitWarning(input.getLoc(), "input '") << getValueName(input) << "' is not used by any result";
  for (ParamOp param : block.getOps<ParamOp>())
    if (!used.contains(param.getValue()))
      param.emitWarning("parameter '") << param.getName() << "' is not used by any result";
}

namespace {
struct CheckNetworkPass : infer::impl::CheckNetworkBase<CheckNetworkPass> {
  using CheckNetworkBase::CheckNetworkBase;

  void runOnOperation() override {
    std::string minimised = lossName();
    for (NetworkOp network : getOperation().getOps<NetworkOp>()) {
      if (!minimised.empty() && failed(findLoss(network, minimised)))
        return signalPassFailure();
      warnOfUnused(network);
    }
    markAllAnalysesPreserved();
  }

private:
  std::string lossName() {
    if (!loss.empty())
      return loss;
    for (ConfigOp config : getOperation().getOps<ConfigOp>())
      if (auto minimize = config.getFields().getAs<StringAttr>("minimize"); minimize && config.getKind() == "train")
        return minimize.str();
    return {};
  }
};
} // namespace
