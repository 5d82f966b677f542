// What one forward operator makes of a training step: itself or what it expands to, and the operators of its gradient, as
// plain data. The shardings that all of them take follow from the strategy of the forward operator alone, so that a strategy
// is looked at once, whatever the rest of the network does. What follows is what `msc-partition` does.
#pragma once

#include "dialects/dist/Reshard.h"
#include "passes/sharding/Problem.h"

#include <memory>

namespace msc::passes {

/// A value of a step.
struct StepValue {
  enum class Kind {
    Operand,        ///< `number`: which operand of the forward operator, the first if several are the same value
    ResultGradient, ///< `number`: of which result of the forward operator
    Constant,       ///< the same everywhere
    Inner,
  };
  Kind kind = Kind::Inner;
  int32_t number = 0;
  Shape shape;              ///< global
  size_t elementBytes = 4;
  size_t partialBytes = 4;  ///< of an element while terms of it are still to be summed
  int32_t computes = -1;    ///< of a constant: as StepOperator::computes
};

/// What a plan makes of an operator.
enum class StepKind {
  Kernel,  ///< joins others in one kernel, where these agree
  Product, ///< carries what stands behind it
  View,    ///< shows the memory of its operand
  Call,    ///< a step of its own
};

/// An operator of a step; numbers are indices into OperatorStep::values.
struct StepOperator {
  OperatorFacts facts;
  std::vector<int32_t> operands, results;
  StepKind kind = StepKind::Call;
  bool isEpilogue = false;               ///< a product may carry it
  bool isBackward = false;
  bool isGradient = false;               ///< of the forward operator itself, not of a part of something that expanded
  std::vector<int32_t> gradientOfResult; ///< of each operand: the forward result whose gradient it is, or -1
  int32_t gradientOfOperand = -1;        ///< of the forward operator; -1: of none
  std::vector<int64_t> resultFactors;    ///< as net::getResultFactors
  bool addsTerms = false;                ///< an addition: it may add partial terms
  std::vector<bool> isLinearIn;          ///< of each operand: it may be partial, and so is the result then
  int32_t computes = -1;                 ///< operators with one number compute the same of the same operands; -1: no other does
  std::vector<StepOperator> parts;       ///< others stand in its place, if there are any
  std::vector<int32_t> brought;          ///< of each operand: the value that its parts read
  std::vector<int32_t> standIns;         ///< of each result: the value of a part that it is
  /// Modelled time on the largest shards, in us; absent: none.
  std::function<double(const std::vector<Shape> &operands, const std::vector<Shape> &results)> localUs;
  /// Elements that change the rank within the operator; absent: none do.
  std::function<OwnExchange(const Placement &)> exchange;
};

struct OperatorStep {
  std::vector<StepValue> values;
  std::vector<StepOperator> operators; ///< the forward operator, then those of its gradient
  /// Gradients of operands: (operand, value), in the order of the operands.
  std::vector<std::pair<int32_t, int32_t>> gradients;
  bool isRecomputed = false; ///< what the forward operator makes is not kept for the backward pass
  bool mayRepeat = false;    ///< some of its operators may compute the same
  /// What it is under a strategy, where that changes what the operator expands to; absent: the same. The strategy: of no cut.
  std::function<std::shared_ptr<const OperatorStep>(const Pieces &)> under;

  /// The value that stands for a result of the forward operator.
  int32_t resultOf(size_t result) const {
    const StepOperator &forward = operators.front();
    return forward.parts.empty() ? forward.results[result] : forward.standIns[result];
  }
  /// Whether operators of the gradient read that result of the forward operator.
  bool gradientReadsResult(size_t result) const;
  /// Whether they read that operand.
  bool gradientReads(int32_t operand) const;
};

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
/// Of the value as it was made first: what its backward readers want is made of the copy where it is computed again.
std::vector<Sharding> wantedOfOriginal(const std::vector<Wanted> &wanted, bool isComputedAgain);
/// Of the copy, where the value is computed again. `isReaderToo`: so are the readers.
std::vector<Sharding> wantedOfCopy(const std::vector<Wanted> &wanted, bool isReaderToo);

/// A result of a forward operator under one strategy.
struct PlacedResult {
  int32_t value = 0; ///< index into OperatorStep::values
  Sharding left; ///< by the operator, perhaps partial
  Sharding own;  ///< where its gradient is brought
  std::vector<Wanted> wanted; ///< by the operators of the step themselves
  size_t partialBytes = 4;      ///< as StepValue
  bool isStatistic = false;     ///< told where the step is recomputed: it never is, and its readers read what is there
};

/// A gradient of an operand under one strategy.
struct PlacedGradient {
  int32_t operand = 0, value = 0; ///< the value is one of OperatorStep::values
  Sharding left;
  size_t partialBytes = 4;
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
  std::vector<Use> reads;
  std::vector<Use> writes; ///< as they are left
};

/// What a step reads and writes under one strategy, in order, in front of all passes that improve it.
struct TracedStep {
  std::vector<TracedOperator> operators;
  std::vector<int32_t> results; ///< of each result of the forward operator: its value
  std::vector<Sharding> own;    ///< of each value: completed
  PlacedStep placed;            ///< the same, without times
};

/// Asks none of the functions in the step.
TracedStep traceStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices);

/// `out` as in ProblemOperator.
PlacedStep placeStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices,
                     dist::ReshardPlanner &planner);

} // namespace msc::passes
