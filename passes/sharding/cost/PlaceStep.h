// A step of one forward operator under one strategy: where each of its values lies, and what that takes. The shardings that all of its
// operators take follow from the strategy of the forward operator alone, so that a strategy is looked at once, whatever the rest of the
// network does. What follows is what `msc-partition` does.
#pragma once

#include "passes/sharding/cost/OperatorStep.h"

#include <algorithm>

namespace msc::passes {

/// What a value costs on its way from how it was left to where it is wanted.
struct StepMove {
  int32_t value = 0; ///< index into OperatorStep::values
  bool isBackward = false;
  Sharding from;
  std::vector<Sharding> wanted; ///< in order, shared by all who want the same
  Shape shape;
  size_t elementBytes = 4;
};

/// A sharding in which operators of a step read a value.
struct Wanted {
  Sharding sharding;
  bool forward = false;
  bool again = false; ///< by those that run again where the forward operator is computed again
  bool backward = false;
};

/// A result of a forward operator under one strategy.
struct PlacedResult {
  int32_t value = 0; ///< index into OperatorStep::values
  Sharding left; ///< by the operator, perhaps partial
  Sharding own;  ///< where its gradient is brought
  std::vector<Wanted> wanted; ///< by the operators of the step themselves
  size_t partialBytes = 4;      ///< as StepValue
  bool isStatistic = false;     ///< told where the step is recomputed: it never is, and its readers read what is there
  /// Of an element as it is left.
  size_t bytesLeft(size_t elementBytes) const { return left.isPartial() ? partialBytes : elementBytes; }
};

/// A gradient of an operand under one strategy.
struct PlacedGradient {
  int32_t operand = 0, value = 0; ///< the value is one of OperatorStep::values
  Sharding left;
  size_t bytesLeft = 4; ///< of an element as it is left
};

/// What computing a forward operator again takes, for the backward pass: all of it but statistics, which are there.
struct PlacedAgain {
  double computeUs = 0, exchangeUs = 0;
  std::vector<OwnExchange> exchanges;
  std::vector<StepMove> moves; ///< within
};

/// A step under one strategy. What happens between operators is not in here. Statistics that the gradient would compute and complete
/// a second time are there once, and linear operators compute with terms of sums, as `msc-reuse-statistics` and `msc-keep-partials`
/// let them.
struct PlacedStep {
  std::vector<PlacedResult> results;
  std::vector<std::vector<Wanted>> wanted; ///< of each operand; of a value that is read twice they stand at the first
  std::vector<PlacedGradient> gradients;
  std::vector<StepMove> moves; ///< within
  double computeUs = 0;
  double exchangeUs = 0; ///< of operators that move elements themselves
  std::vector<std::pair<bool, OwnExchange>> exchanges; ///< each of them, and whether it is of the backward pass
  PlacedAgain again; ///< nothing of it is in the above; where the step is recomputed
};

/// An operator of a step as it runs under one strategy; what it is a part of does not run.
struct TracedOperator {
  /// A value in a sharding.
  struct Use {
    int32_t value = 0; ///< index into OperatorStep::values
    Sharding sharding;
  };
  static constexpr int32_t brings = -2; ///< an operand of something that expands to where its parts want it
  StepKind kind = StepKind::Call;
  bool isEpilogue = false;
  bool isBackward = false;
  int32_t computes = -1;   ///< as StepOperator, or `brings`
  bool isThere = true;     ///< false: what it computes is a statistic that is there already, or only led to such
  bool runsAgain = false;  ///< where the forward operator is computed again: what it computes is no statistic, and does not only lead to such
  std::vector<Use> reads;
  std::vector<Use> writes; ///< as they are left
  const StepOperator *op = nullptr; ///< of the step; null: `brings`

  /// Kernels of their own cast what of its operands and results is narrow.
  bool computesWide() const {
    return op && (op->computesWide || (op->isOfOneType && std::ranges::any_of(writes, [](const Use &use) { return use.sharding.isPartial(); })));
  }
};

/// What a step reads and writes under one strategy, in order, behind `msc-reuse-statistics` and in front of all other passes that
/// improve it.
struct TracedStep {
  std::vector<TracedOperator> operators; ///< in one order under all strategies, also those that are not there
  std::vector<int32_t> results; ///< of each result of the forward operator: its value
  std::vector<Sharding> own;    ///< of each value: completed
  std::vector<std::pair<int32_t, int32_t>> gradients; ///< operands and the values that are their gradients
  std::vector<char> isStatistic; ///< of each value, where the step is recomputed: the backward pass reads that of the forward pass
  PlacedStep placed;            ///< the same, without times
};

/// Asks none of the functions in the step.
TracedStep traceStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices);

/// `out` as in ProblemOperator.
PlacedStep placeStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices,
                     dist::ReshardPlanner &planner);

} // namespace msc::passes
