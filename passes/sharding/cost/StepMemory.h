// The memory that a rank needs for a step, before there is a plan: by live ranges of what its events touch.
#pragma once

#include "passes/sharding/cost/StepEvents.h"

namespace msc::passes {

struct StepMemory {
  int64_t forRun = 0; ///< bytes of parameters and states
  int64_t packed = 0; ///< bytes beside them, as packMemory places them; of many, the most that is live at once

  int64_t arena() const { return forRun + packed; }
};

/// What msc-assign-memory will find, about: values between operators of one kernel have no memory, collectives are complete
/// where they start. Nothing of events that are empty.
StepMemory memoryOf(const StepEvents &step);

} // namespace msc::passes
