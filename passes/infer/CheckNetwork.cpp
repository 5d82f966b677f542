// The pass `msc-check-network`.
#include "dialects/net/Repeat.h"
#include "dialects/net/ops/print/Print.h"
#include "passes/infer/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace msc::infer {
#define GEN_PASS_DEF_CHECKNETWORK
#include "passes/infer/Passes.h.inc"
} // namespace msc::infer

using namespace mlir;
using namespace msc;
using namespace msc::net;

static void addUsed(Block &block, DenseSet<Value> &used);

/// A carried value is used if it is in some round, or behind the last one.
static void addUsed(RepeatOp repeat, DenseSet<Value> &used) {
  Block &body = repeat.getBody().front();
  for (size_t before = 0; before != used.size();) {
    before = used.size();
    for (auto [i, yielded] : llvm::enumerate(repeat.yielded()))
      if (used.contains(repeat.getResult(i)) || used.contains(body.getArgument(i)))
        used.insert(yielded);
    addUsed(body, used);
  }
  for (auto [argument, initial] : llvm::zip(body.getArguments(), repeat.getInitial()))
    if (used.contains(argument))
      used.insert(initial);
}

static void addUsed(Block &block, DenseSet<Value> &used) {
  for (Operation &op : llvm::reverse(block))
    if (auto repeat = dyn_cast<RepeatOp>(op))
      addUsed(repeat, used);
    else if (isa<ReturnOp, UpdateOp, PrintOp>(op) || llvm::any_of(op.getResults(), [&](Value v) { return used.contains(v); }))
      used.insert(op.operand_begin(), op.operand_end());
}

/// Values that a result of the network, a value to keep ("%a" or "a") or an update depends on.
static DenseSet<Value> usedValues(NetworkOp network, ArrayRef<std::string> keep) {
  DenseSet<Value> used;
  for (StringRef name : keep) {
    name.consume_front("%");
    network.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (llvm::is_contained(namesInRounds(op, getValueName(result)), name))
          used.insert(result);
    });
  }
  addUsed(network.getBody().front(), used);
  return used;
}

/// One warning for what is lost together: of operators only the last one counts, and none if it hangs on a parameter or
/// input that is not used either.
static void warnOfUnused(NetworkOp network, ArrayRef<std::string> keep) {
  DenseSet<Value> used = usedValues(network, keep), reported;
  Block &block = network.getBody().front();
  for (Value input : block.getArguments())
    if (!used.contains(input)) {
      emitWarning(input.getLoc(), "input '") << getValueName(input) << "' is not used by any result";
      reported.insert(input);
    }
  network.walk([&](ParamOp param) {
    if (!used.contains(param.getValue())) {
      param.emitWarning("parameter '") << param.getName() << "' is not used by any result";
      reported.insert(param.getValue());
    }
  });
  network.walk([&](Operator op) {
    bool isLast = llvm::all_of(op->getUsers(), [](Operation *user) { return isa<YieldOp>(user); });
    if (llvm::any_of(op->getOperands(), [&](Value v) { return reported.contains(v); }))
      reported.insert(op->result_begin(), op->result_end());
    else if (isLast && !isa<PrintOp>(op) && llvm::none_of(op->getResults(), [&](Value v) { return used.contains(v); }))
      op->emitWarning("'") << (getInstanceName(op).empty() ? op->getName().stripDialect() : getInstanceName(op))
                           << "' is not used by any result";
  });
}

namespace {
struct CheckNetworkPass : infer::impl::CheckNetworkBase<CheckNetworkPass> {
  using CheckNetworkBase::CheckNetworkBase;

  void runOnOperation() override {
    std::string minimised = lossName();
    for (NetworkOp network : getOperation().getOps<NetworkOp>()) {
      if (!minimised.empty() && failed(findLoss(network, minimised)))
        return signalPassFailure();
      warnOfUnused(network, std::vector<std::string>(keep.begin(), keep.end()));
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
