// The events of an operator under all its strategies, as far as they decide in which order events of a step run (CertainOrder.h).
#pragma once

#include "passes/sharding/cost/CertainOrder.h"
#include "passes/sharding/cost/PlaceStep.h"

#include <array>
#include <span>

namespace msc::passes {

struct OrderedOperator {
  /// A step of the operator under one of them.
  struct Strategy {
    const OperatorStep *step = nullptr;
    const TracedStep *trace = nullptr;
  };
  /// An event of either pass.
  struct Place {
    bool isBackward = false;
    int32_t event = -1; ///< -1: none
  };
  struct Read {
    int32_t value = 0; ///< of its step
    Place since;       ///< the first event that certainly has it in the same sharding; none: itself
  };
  struct Event {
    OrderedEvent::Kind kind = OrderedEvent::Kind::Step;
    bool isEpilogue = false;
    std::vector<Read> reads;
    std::vector<int32_t> writes;
    bool isCheap = false, addsOnly = false; ///< under some strategy, as OrderedEvent
  };

  bool isKnown = true; ///< else it expands to something else under some strategies
  std::array<std::vector<Event>, 2> events; ///< of the forward and of the backward pass: those that some strategy has
  /// Of each value of its step: the one whose elements it shows, or itself; events name that one. Behind them, each once more: as it is
  /// computed in f32, where a kernel casts it.
  std::vector<int32_t> shown;
  std::vector<int32_t> ofTraced; ///< of each operator that is traced under the first strategy: which event of its pass; -1: none
};

OrderedOperator orderedUnderAll(std::span<const OrderedOperator::Strategy> strategies);

} // namespace msc::passes
