// Which statistics several operators of a network compute alike under given strategies: `msc-reuse-statistics` keeps one of them.
#pragma once

#include "passes/sharding/cost/StepModel.h"
#include "passes/sharding/cost/ValueNumbers.h"

namespace msc::passes {

class StatisticsOfStep {
public:
  StatisticsOfStep(const Problem &problem, const StepModel &model, const Choices &choices);

  static constexpr int64_t none = -1;
  /// Of a value of the step of an operator that runs: equal statistics of a round have one number; `none`: it is no statistic.
  int64_t numberOf(size_t op, Rounds rounds, int32_t value) const;

private:
  /// Operators of the network that are in the same repeats, in one of their rounds. What they compute alike is computed once.
  struct Body {
    explicit Body(size_t tensors) : tensors(tensors, -1), gradients(tensors, -1) {}
    ValueNumbers numbers;
    std::vector<int32_t> tensors, gradients; ///< of each tensor: its number, and that of a gradient of it; -1: not yet
  };
  /// An operator in a body.
  struct Instance {
    size_t body = 0;
    std::vector<int32_t> numbers; ///< of each value of its step
  };
  class Numbering;

  std::vector<Body> bodies;
  std::vector<Instance> all, first; ///< of each operator; `first` is empty where no repeat has a first round of its own
};

} // namespace msc::passes
