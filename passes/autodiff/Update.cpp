// From gradients to new parameters: what becomes of the gradients, then one step of the optimizer per parameter.
#include "passes/autodiff/UpdateBuilder.h"

using namespace msc;
using namespace msc::net;

void msc::autodiff::buildUpdate(NetworkOp network, const ParameterGradients &gradients, const TrainConfig &train) {
  UpdateBuilder update(network, train);
  for (auto [parameter, gradient] : prepareGradients(update, gradients)) {
    auto param = parameter.getDefiningOp<ParamOp>();
    update.setSubject(param);
    buildStep(update, param, gradient);
  }
}
