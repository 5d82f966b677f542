// What one forward operator makes of a training step: itself or what it expands to, and the operators of its gradient, as
// plain data.
#pragma once

#include "dialects/dist/Reshard.h"
#include "passes/sharding/Problem.h"

#include <memory>

namespace msc::passes {

/// Bytes of an element of f16 or bf16, and of f32, in which operators compute.
inline constexpr size_t narrowBytes = 2, wideBytes = 4;

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
  bool isCast = false;                   ///< of elements, to another type
  bool isCheap = false;                  ///< as net::isCheap
  bool computesWide = false;             ///< in f32: kernels of their own cast what of its operands and results is narrow
  bool addsWide = false;                 ///< it reads narrow operands as they are; what it leaves partial is f32, and rounded behind the sum
  bool isOfOneType = false;              ///< with addsWide: where what it leaves is partial, it does as if it computed wide
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
  /// What casts take where its result is partial, so that terms are summed in a wider type; absent: they are summed in its own.
  std::function<double(const std::vector<Shape> &operands, const std::vector<Shape> &results)> partialUs;
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

} // namespace msc::passes
