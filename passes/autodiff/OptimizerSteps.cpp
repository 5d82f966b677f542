// One step of each optimizer: its states, its scalars, its operator.
#include "passes/autodiff/UpdateBuilder.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;
using msc::autodiff::UpdateBuilder;

namespace {

class Step {
public:
  Step(UpdateBuilder &update, ParamOp param, Value gradient)
      : update(update), param(param), gradient(gradient), optimizer(update.train.optimizer),
        attributes(param.getContext()) {}

  void build() {
    using Build = void (Step::*)();
    Build build = llvm::StringSwitch<Build>(optimizer.name)
                      .Case("Momentum", &Step::momentum)
                      .Cases("Adam", "AdamW", &Step::adam)
                      .Case("AdamWeightDecay", &Step::adamWeightDecay)
                      .Case("Lamb", &Step::lamb)
                      .Case("RMSProp", optimizer.numbers.count("centered") && optimizer.flag("centered") ? &Step::centeredRMSProp : &Step::rmsProp)
                      .Case("Adagrad", &Step::adagrad)
                      .Default(&Step::sgd);
    (this->*build)();
  }

private:
  Type element() { return cast<RankedTensorType>(param.getValue().getType()).getElementType(); }
  FloatAttr number(double value) { return attributes.getF64FloatAttr(value); }
  FloatAttr argument(const std::string &name) { return number(optimizer.number(name)); }
  FloatAttr lossScale() { return argument("loss_scale"); }
  Value learningRate() { return update.scheduled("learning_rate", optimizer.learningRate, element()); }

  /// MindSpore leaves normalisation parameters alone, unless patterns say what is spared.
  FloatAttr decay() {
    bool spared = param.getName().contains("beta") || param.getName().contains("gamma");
    if (optimizer.noDecay)
      spared = llvm::any_of(*optimizer.noDecay, [&](const std::string &pattern) {
        llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
        bool matches = glob && glob->match(param.getName());
        llvm::consumeError(glob.takeError());
        return matches;
      });
    return number(spared ? 0 : optimizer.number("weight_decay"));
  }

  /// 1 / (1 - beta^t), t the updates so far and this one. Where updates may be left out, a state counts them: c = 1 - beta^t
  /// moves on to beta * c + (1 - beta).
  Value correction(const std::string &name) {
    double beta = optimizer.number(name);
    if (!update.train.gradients.lossScale.dynamic)
      return update.scheduled(name + "_correction", {.kind = "correction", .values = {beta}}, element());
    ParamOp counted = update.scalarState(name + "_correction", 0);
    for (Operation *user : counted.getValue().getUsers())
      if (auto kept = dyn_cast<MulOp>(user)) // made for the first parameter
        return inverse((*kept->user_begin())->getResult(0));
    Type f32 = attributes.getF32Type();
    Value kept = update.create<MulOp>(counted.getValue(), update.constant(beta, f32));
    Value grown = update.create<AddOp>(kept, update.constant(1 - beta, f32));
    update.write(counted, grown);
    return inverse(grown);
  }
  Value inverse(Value scalar) {
    Value one = update.constant(1, attributes.getF32Type());
    return update.inElement(update.create<RealDivOp>(one, scalar), element());
  }

  void momentum() {
    ParamOp accum = update.state("moments", param);
    bool isSGD = optimizer.name == "SGD";
    auto step = update.create<ApplyMomentumOp>(param.getValue(), accum.getValue(), learningRate(), gradient,
                                               argument("momentum"), flag("use_nesterov"), decay(), lossScale(),
                                               isSGD ? argument("dampening") : number(0));
    update.write(param, step.getNewVar());
    update.write(accum, step.getNewAccum());
  }

  BoolAttr flag(const std::string &name) { return attributes.getBoolAttr(optimizer.flag(name)); }

  void sgd() {
    if (optimizer.number("momentum") != 0)
      return momentum();
    auto step = update.create<SGDOp>(param.getValue(), learningRate(), gradient, decay(), lossScale());
    update.write(param, step.getNewVar());
  }

  void adam() {
    ParamOp m = update.state("moment1", param), v = update.state("moment2", param);
    bool decoupled = optimizer.name == "AdamW";
    Value first = correction("beta1"), second = correction("beta2");
    auto step = update.create<AdamOp>(param.getValue(), m.getValue(), v.getValue(), first, second, learningRate(),
                                      gradient, argument("beta1"), argument("beta2"), argument("eps"),
                                      decoupled ? attributes.getBoolAttr(false) : flag("use_nesterov"),
                                      attributes.getBoolAttr(decoupled), decay(), lossScale());
    update.write(param, step.getNewVar());
    update.write(m, step.getNewM());
    update.write(v, step.getNewV());
  }

  void adamWeightDecay() {
    ParamOp m = update.state("adam_m", param), v = update.state("adam_v", param);
    auto step = update.create<AdamWeightDecayOp>(param.getValue(), m.getValue(), v.getValue(), learningRate(), gradient,
                                                 argument("beta1"), argument("beta2"), argument("eps"), decay(),
                                                 lossScale());
    update.write(param, step.getNewVar());
    update.write(m, step.getNewM());
    update.write(v, step.getNewV());
  }

  Value norm(Value value) {
    return update.create<SqrtOp>(update.sumOfAll(update.create<SquareOp>(value)));
  }

  void lamb() {
    ParamOp m = update.state("lamb_m", param), v = update.state("lamb_v", param);
    Value first = correction("beta1"), second = correction("beta2");
    auto next = update.create<LambNextMVOp>(param.getValue(), m.getValue(), v.getValue(), first, second, gradient,
                                            argument("beta1"), argument("beta2"), argument("eps"), decay(), lossScale());
    Value length = norm(param.getValue()), reach = norm(next.getUpdate());
    auto step = update.create<LambUpdateWithLROp>(param.getValue(), length, reach, learningRate(), next.getUpdate());
    update.write(param, step.getNewVar());
    update.write(m, next.getNewM());
    update.write(v, next.getNewV());
  }

  void rmsProp() {
    ParamOp square = update.state("mean_square", param), moment = update.state("moment", param);
    auto step = update.create<ApplyRMSPropOp>(param.getValue(), square.getValue(), moment.getValue(), learningRate(),
                                              gradient, argument("decay"), argument("momentum"), argument("epsilon"),
                                              decay(), lossScale());
    update.write(param, step.getNewVar());
    update.write(square, step.getNewMeanSquare());
    update.write(moment, step.getNewMoment());
  }

  void centeredRMSProp() {
    ParamOp mean = update.state("mean_grad", param), square = update.state("mean_square", param);
    ParamOp moment = update.state("moment", param);
    auto step = update.create<ApplyCenteredRMSPropOp>(
        param.getValue(), mean.getValue(), square.getValue(), moment.getValue(), learningRate(), gradient,
        argument("decay"), argument("momentum"), argument("epsilon"), decay(), lossScale());
    update.write(param, step.getNewVar());
    update.write(mean, step.getNewMeanGrad());
    update.write(square, step.getNewMeanSquare());
    update.write(moment, step.getNewMoment());
  }

  void adagrad() {
    ParamOp accum = update.state("accum", param, optimizer.number("accum"));
    auto step = update.create<ApplyAdagradOp>(param.getValue(), accum.getValue(), learningRate(), gradient, decay(),
                                              lossScale());
    update.write(param, step.getNewVar());
    update.write(accum, step.getNewAccum());
  }

  UpdateBuilder &update;
  ParamOp param;
  Value gradient;
  const OptimizerConfig &optimizer;
  Builder attributes;
};

} // namespace

void msc::autodiff::buildStep(UpdateBuilder &update, ParamOp param, Value gradient) {
  Step(update, param, gradient).build();
}
