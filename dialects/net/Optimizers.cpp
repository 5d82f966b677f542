#include "dialects/net/Optimizers.h"

#include "llvm/ADT/STLExtras.h"

namespace msc::net {

using Argument = OptimizerArgument;
using Range = OptimizerArgument::Range;

static constexpr Argument weightDecay(double otherwise = 0) { return {"weight_decay", otherwise}; }
static constexpr Argument lossScale{"loss_scale", 1, Range::Positive};
static constexpr Argument nesterov{"use_nesterov", 0, Range::Flag, "nesterov"};
static constexpr Argument beta1{"beta1", 0.9, Range::Share}, beta2{"beta2", 0.999, Range::Share};
static constexpr Argument epsilon(double otherwise) { return {"eps", otherwise, Range::NotNegative, "epsilon"}; }

static constexpr Argument sgd[] = {{"momentum", 0}, {"dampening", 0}, weightDecay(), lossScale, nesterov};
static constexpr Argument momentum[] = {{"momentum", std::nullopt}, weightDecay(), lossScale, nesterov};
static constexpr Argument adam[] = {beta1, beta2, epsilon(1e-8), weightDecay(), lossScale, nesterov};
static constexpr Argument adamW[] = {beta1, beta2, epsilon(1e-8), weightDecay(0.01), lossScale};
static constexpr Argument adamWeightDecay[] = {beta1, beta2, epsilon(1e-6), weightDecay(), lossScale};
static constexpr Argument lamb[] = {beta1, beta2, epsilon(1e-6), weightDecay(), lossScale};
static constexpr Argument rmsProp[] = {{"decay", 0.9, Range::Share}, {"momentum", 0},
                                       {"epsilon", 1e-10, Range::NotNegative, "eps"}, {"centered", 0, Range::Flag},
                                       weightDecay(), lossScale};
static constexpr Argument adagrad[] = {{"accum", 0.1, Range::Positive}, weightDecay(), lossScale};

llvm::ArrayRef<OptimizerForm> optimizerForms() {
  static const OptimizerForm forms[] = {
      {"SGD", 0.1, sgd, 0, 0},
      {"Momentum", std::nullopt, momentum, 1, 1},
      {"Adam", 1e-3, adam, 0, 2},
      {"AdamW", 1e-3, adamW, 0, 2},
      {"AdamWeightDecay", 1e-3, adamWeightDecay, 0, 2},
      {"Lamb", std::nullopt, lamb, 0, 2},
      {"RMSProp", 0.1, rmsProp, 0, 2},
      {"Adagrad", 1e-3, adagrad, 0, 1}};
  return forms;
}

const OptimizerForm *findOptimizer(llvm::StringRef name) {
  const OptimizerForm *form = llvm::find_if(optimizerForms(), [&](const OptimizerForm &f) { return f.name == name; });
  return form == optimizerForms().end() ? nullptr : form;
}

} // namespace msc::net
