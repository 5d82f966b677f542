// The parts of the arena that nothing uses while a step runs: working memory for operations that need some.
#pragma once

#include "runtime/plan/PlanIndex.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace msc {

/// Of one variant of a program, whose plan has passed checkPlan. `index` and `variant` must outlive it.
class FreeMemory {
public:
  using Range = std::pair<uint64_t, uint64_t>; ///< bytes [first, second) of the arena

  FreeMemory(const PlanIndex &index, const plan::Program &program, const plan::Variant &variant);

  /// In the order of their addresses, apart. Steps are asked for in increasing order. For devices that run steps in the order of the list, one
  /// after the other: buffers are in use from the first step that touches them to the last one, those of a collective that was started until
  /// its wait; parameters, states, scalars, constants, inputs and outputs always.
  std::vector<Range> at(uint32_t step);

private:
  struct Life {
    uint32_t first = 0, last = 0, buffer = 0;
  };

  const PlanIndex &index;
  std::vector<Life> byFirst, byLast;
  size_t begun = 0, ended = 0;
  uint32_t asked = 0;
  std::multiset<Range> used; ///< now
};

} // namespace msc
