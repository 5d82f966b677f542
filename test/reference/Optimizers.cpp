#include "test/reference/Interpreter.h"

using namespace msc::net;

namespace msc::reference {

/// grad / loss_scale + weight_decay * var.
template <typename Op> static double effective(Op op, double grad, double var) {
  return grad / op.getLossScale().convertToDouble() + op.getWeightDecay().convertToDouble() * var;
}

static std::vector<Tensor> applyMomentum(mlir::Operation *op, const std::vector<Tensor> &x) {
  auto step = llvm::cast<ApplyMomentumOp>(op);
  double momentum = step.getMomentum().convertToDouble(), dampening = step.getDampening().convertToDouble();
  double rate = x[2].values[0];
  Tensor var = x[0], accum = x[1];
  for (size_t i = 0; i < var.values.size(); ++i) {
    double g = effective(step, x[3].values[i], var.values[i]);
    accum.values[i] = momentum * accum.values[i] + (1 - dampening) * g;
    double direction = step.getUseNesterov() ? g + momentum * accum.values[i] : accum.values[i];
    var.values[i] -= rate * direction;
  }
  return {var, accum};
}

static std::vector<Tensor> sgd(mlir::Operation *op, const std::vector<Tensor> &x) {
  Tensor var = x[0];
  for (size_t i = 0; i < var.values.size(); ++i)
    var.values[i] -= x[1].values[0] * effective(llvm::cast<SGDOp>(op), x[2].values[i], var.values[i]);
  return {var};
}

void addOptimizers(Table &table) {
  table["ApplyMomentum"] = applyMomentum;
  table["SGD"] = sgd;
}

} // namespace msc::reference
