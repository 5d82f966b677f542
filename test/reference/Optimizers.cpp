#include "test/reference/Interpreter.h"

#include <cmath>

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

/// The function of one element: new values from old ones; scalars come as they are.
template <typename Op>
using ElementStep = std::vector<double> (*)(Op op, const std::vector<double> &);

/// Applies a step element by element; results have the shape of the first operand.
template <typename Op> static Evaluate elementwise(ElementStep<Op> step) {
  return [step](mlir::Operation *op, const std::vector<Tensor> &x) {
    std::vector<Tensor> results(op->getNumResults(), Tensor(x[0].shape));
    for (size_t i = 0; i < x[0].values.size(); ++i) {
      std::vector<double> elements;
      for (const Tensor &operand : x)
        elements.push_back(operand.values[operand.shape.empty() ? 0 : i]);
      std::vector<double> made = step(llvm::cast<Op>(op), elements);
      for (size_t result = 0; result < results.size(); ++result)
        results[result].values[i] = made[result];
    }
    return results;
  };
}

/// share * mean + (1 - share) * term.
static double moved(const llvm::APFloat &share, double mean, double term) {
  return share.convertToDouble() * mean + (1 - share.convertToDouble()) * term;
}

static std::vector<double> adam(AdamOp op, const std::vector<double> &x) {
  double decay = op.getWeightDecay().convertToDouble(), rate = x[5], var = x[0];
  double g = x[6] / op.getLossScale().convertToDouble() + (op.getDecoupled() ? 0 : decay * var);
  double m = moved(op.getBeta1(), x[1], g), v = moved(op.getBeta2(), x[2], g * g);
  double direction = (op.getUseNesterov() ? moved(op.getBeta1(), m, g) : m) * x[3];
  if (op.getDecoupled())
    var *= 1 - rate * decay;
  return {var - rate * direction / (std::sqrt(v * x[4]) + op.getEpsilon().convertToDouble()), m, v};
}

static std::vector<double> adamWeightDecay(AdamWeightDecayOp op, const std::vector<double> &x) {
  double g = x[4] / op.getLossScale().convertToDouble();
  double m = moved(op.getBeta1(), x[1], g), v = moved(op.getBeta2(), x[2], g * g);
  double update = m / (std::sqrt(v) + op.getEpsilon().convertToDouble()) + op.getWeightDecay().convertToDouble() * x[0];
  return {x[0] - x[3] * update, m, v};
}

static std::vector<double> lambNextMV(LambNextMVOp op, const std::vector<double> &x) {
  double g = x[5] / op.getLossScale().convertToDouble();
  double m = moved(op.getBeta1(), x[1], g), v = moved(op.getBeta2(), x[2], g * g);
  double direction = m * x[3] / (std::sqrt(v * x[4]) + op.getEpsilon().convertToDouble());
  return {direction + op.getWeightDecay().convertToDouble() * x[0], m, v};
}

static std::vector<double> lambUpdateWithLR(LambUpdateWithLROp, const std::vector<double> &x) {
  double ratio = x[1] > 0 && x[2] > 0 ? x[1] / x[2] : 1;
  return {x[0] - x[3] * ratio * x[4]};
}

static std::vector<double> rmsProp(ApplyRMSPropOp op, const std::vector<double> &x) {
  double g = effective(op, x[4], x[0]), square = moved(op.getDecay(), x[1], g * g);
  double step = x[3] * g / std::sqrt(square + op.getEpsilon().convertToDouble());
  double moment = op.getMomentum().convertToDouble() * x[2] + step;
  return {x[0] - moment, square, moment};
}

static std::vector<double> centeredRMSProp(ApplyCenteredRMSPropOp op, const std::vector<double> &x) {
  double g = effective(op, x[5], x[0]), mean = moved(op.getDecay(), x[1], g), square = moved(op.getDecay(), x[2], g * g);
  double step = x[4] * g / std::sqrt(square - mean * mean + op.getEpsilon().convertToDouble());
  double moment = op.getMomentum().convertToDouble() * x[3] + step;
  return {x[0] - moment, mean, square, moment};
}

static std::vector<double> adagrad(ApplyAdagradOp op, const std::vector<double> &x) {
  double g = effective(op, x[3], x[0]), accum = x[1] + g * g;
  return {x[0] - x[2] * g / std::sqrt(accum), accum};
}

void addOptimizers(Table &table) {
  table["Adam"] = elementwise(adam);
  table["AdamWeightDecay"] = elementwise(adamWeightDecay);
  table["LambNextMV"] = elementwise(lambNextMV);
  table["LambUpdateWithLR"] = elementwise(lambUpdateWithLR);
  table["ApplyRMSProp"] = elementwise(rmsProp);
  table["ApplyCenteredRMSProp"] = elementwise(centeredRMSProp);
  table["ApplyAdagrad"] = elementwise(adagrad);
  table["ApplyMomentum"] = applyMomentum;
  table["SGD"] = sgd;
}

} // namespace msc::reference
