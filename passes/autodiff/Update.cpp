// From gradients to new parameters: what becomes of the gradients, then one step of the optimizer per parameter.
#include "passes/autodiff/UpdateBuilder.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;

void msc::autodiff::buildUpdate(NetworkOp network, const ParameterGradients &gradients, const TrainConfig &train) {
  UpdateBuilder update(network, train);
  for (auto [parameter, gradient] : prepareGradients(update, gradients)) {
    auto param = parameter.getDefiningOp<ParamOp>();
    update.setSubject(param);
    buildStep(update, param, gradient);
  }
  update.setSubject(nullptr);
  countDraws(update);
}

LogicalResult msc::autodiff::buildStateUpdates(NetworkOp network, int64_t ranks) {
  OpBuilder builder(getReturn(network));
  llvm::DenseMap<Value, Operation *> writers;
  LogicalResult result = success();
  network.walk([&](StateInterface op) {
    if (getPhase(op) != Phase::Forward) // computed again for the backward pass
      return;
    for (auto [from, to] : op.newStates()) {
      auto param = op->getOperand(to).getDefiningOp<ParamOp>();
      if (!param || param.getTrained())
        continue;
      if (!writers.try_emplace(param.getValue(), op).second) {
        result = op->emitError("state '") << param.getName() << "' gets a new value twice in one step: '"
                                          << getInstanceName(writers[param.getValue()]) << "' and '" << getInstanceName(op)
                                          << "' share it";
        continue;
      }
      Value next = meanOverRanks(builder, op->getResult(from), ranks, ("mean." + param.getName()).str());
      auto update = builder.create<UpdateOp>(op->getLoc(), param.getValue(), next);
      setPhase(update, Phase::Update);
      setInstanceName(update, ("update." + param.getName()).str());
    }
  });
  return result;
}
