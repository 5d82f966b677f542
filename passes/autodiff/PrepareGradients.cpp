// What the optimizer takes: gradients divided by the loss scale, accumulated over several batches, clipped.
#include "passes/autodiff/UpdateBuilder.h"

using namespace mlir;
using namespace msc;
using namespace msc::net;
using msc::autodiff::ParameterGradients;
using msc::autodiff::UpdateBuilder;

namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

class Preparation {
public:
  Preparation(UpdateBuilder &update, const ParameterGradients &gradients)
      : update(update), config(update.train.gradients), gradients(gradients) {}

  ParameterGradients run() {
    openCycle();
    each([&](ParamOp, Value gradient) { return unscaled(gradient); });
    if (config.accumulateSteps > 1)
      each([&](ParamOp param, Value gradient) { return accumulated(param, gradient); });
    update.applies = cycleEnds;
    if (config.lossScale.dynamic)
      skipOverflow();
    if (config.clipValue)
      each([&](ParamOp, Value gradient) { return clippedByValue(gradient); });
    if (config.clipGlobalNorm != 0)
      clipByGlobalNorm();
    update.setSubject(nullptr);
    return gradients;
  }

private:
  template <typename Change> void each(Change change) {
    for (auto &[parameter, gradient] : gradients) {
      update.setSubject(parameter.template getDefiningOp<ParamOp>());
      gradient = change(parameter.template getDefiningOp<ParamOp>(), gradient);
    }
    update.setSubject(nullptr);
  }

  Type f32() { return Float32Type::get(gradients.front().first.getContext()); }
  Value isEqual(Value scalar, double number) {
    return update.create<EqualOp>(scalar, update.constant(number, elementOf(scalar)));
  }

  /// The place of the batch among those that make one update.
  void openCycle() {
    if (config.accumulateSteps == 1)
      return;
    Value place = update.scheduled("accumulation_step", {.kind = "cycle", .values = {double(config.accumulateSteps)}}, f32());
    cycleBegins = isEqual(place, 0);
    cycleEnds = isEqual(place, double(config.accumulateSteps - 1));
  }

  /// The share of a gradient in the mean over the batches of an update, without the loss scale.
  Value unscaled(Value gradient) {
    Type element = elementOf(gradient);
    double share = 1.0 / double(config.accumulateSteps);
    if (!config.lossScale.dynamic) {
      double factor = share / config.lossScale.scale;
      return factor == 1 ? gradient : update.create<MulOp>(gradient, update.constant(factor, element));
    }
    if (!inverseScale) {
      Value scale = update.scalarState("loss_scale", config.lossScale.scale).getValue();
      inverseScale = update.create<RealDivOp>(update.constant(share, f32()), scale);
    }
    return update.create<MulOp>(gradient, update.inElement(inverseScale, element));
  }

  Value accumulated(ParamOp param, Value gradient) {
    ParamOp sofar = update.state("accu_grads", param);
    Value sum = update.create<AddOp>(sofar.getValue(), gradient);
    Value next = update.create<SelectOp>(cycleBegins, gradient, sum);
    update.create<UpdateOp>(sofar.getValue(), next);
    return next;
  }

  /// x - x is 0, or NaN where x is infinite or NaN; a sum of such differences tells of all elements on all ranks.
  Value allFinite() {
    SmallVector<Value> differences;
    each([&](ParamOp, Value gradient) {
      differences.push_back(update.sumOfAll(update.create<SubOp>(gradient, gradient)));
      return gradient;
    });
    return isEqual(update.total(differences), 0);
  }

  /// Leaves the update out where a gradient is not finite, and moves the loss scale on.
  void skipOverflow() {
    Value finite = allFinite();
    ParamOp scale = update.scalarState("loss_scale", config.lossScale.scale);
    ParamOp count = update.scalarState("loss_scale.finite_steps", 0);
    Value one = update.constant(1, f32()), zero = update.constant(0, f32());
    Value counted = update.create<AddOp>(count.getValue(), one);
    Value isFull = update.create<GreaterEqualOp>(counted, update.constant(double(config.lossScale.window), f32()));
    Value raised = update.create<MulOp>(scale.getValue(), update.constant(config.lossScale.factor, f32()));
    Value lowered = update.create<MaximumOp>(
        update.create<MulOp>(scale.getValue(), update.constant(1 / config.lossScale.factor, f32())), one);
    Value kept = update.create<SelectOp>(isFull, raised, scale.getValue());
    Value recounted = update.create<SelectOp>(isFull, zero, counted);
    update.write(scale, update.create<SelectOp>(finite, kept, lowered));
    update.write(count, update.create<SelectOp>(finite, recounted, zero));
    Value ends = update.applies;
    update.applies = ends ? update.create<SelectOp>(ends, finite, ends) : finite; // both
  }

  Value clippedByValue(Value gradient) {
    Type element = elementOf(gradient);
    Value low = update.constant(config.clipValue->first, element), high = update.constant(config.clipValue->second, element);
    return update.create<MinimumOp>(update.create<MaximumOp>(gradient, low), high);
  }

  /// gradient * bound / max(norm, bound), norm over all elements of all gradients.
  void clipByGlobalNorm() {
    SmallVector<Value> squares;
    each([&](ParamOp, Value gradient) {
      squares.push_back(update.sumOfAll(update.create<SquareOp>(gradient)));
      return gradient;
    });
    Value norm = update.create<SqrtOp>(update.total(squares));
    Value bound = update.constant(config.clipGlobalNorm, elementOf(norm));
    Value factor = update.create<RealDivOp>(bound, update.create<MaximumOp>(norm, bound));
    each([&](ParamOp, Value gradient) {
      return update.create<MulOp>(gradient, update.inElement(factor, elementOf(gradient))).getResult();
    });
  }

  UpdateBuilder &update;
  const GradientConfig &config;
  ParameterGradients gradients;
  Value cycleBegins, cycleEnds; ///< null: every batch makes an update
  Value inverseScale;           ///< of a dynamic loss scale
};

} // namespace

ParameterGradients msc::autodiff::prepareGradients(UpdateBuilder &update, const ParameterGradients &gradients) {
  return gradients.empty() ? gradients : Preparation(update, gradients).run();
}
