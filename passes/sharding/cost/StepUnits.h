// Which events of a step run as one, and in which order, as passes/plan/Units.h makes steps of operators: on plain data, without a kernel
// compiler.
#pragma once

#include "passes/sharding/cost/StepEvents.h"

#include <unordered_map>

namespace msc::passes {

/// Of how many events it is known which need each other; in longer steps no kernel waits for what a later operator reads.
inline constexpr size_t mostEventsOrdered = 20'000;

/// Keeps nothing of the step.
class StepUnits {
public:
  explicit StepUnits(const StepEvents &step);

  /// Of the steps that events become.
  int64_t count() const { return steps; }
  /// Which of them, in the order in which they run.
  int64_t stepOf(size_t event) const { return place[unitOf[event]]; }
  /// What one of `step` reads there: a sum may make what it adds itself.
  const std::vector<int32_t> &readsOf(const StepEvents &step, size_t event) const {
    const auto instead = readsInstead.find(event);
    return instead == readsInstead.end() ? step.events[event].reads : instead->second;
  }

private:
  std::vector<int32_t> unitOf; ///< of each event: a number, in the order in which units begin
  std::vector<int64_t> place;  ///< of each unit
  int64_t steps = 0;
  std::unordered_map<size_t, std::vector<int32_t>> readsInstead; ///< by event

  friend class StepUnitBuilder;
};

} // namespace msc::passes
