// How many values a thread holds for each element of the row that it sweeps.
#pragma once

#include "passes/codegen/Schedule.h"

namespace msc::codegen {

/// 32-bit registers per element of a sweep, where most of them are taken.
struct LiveRegisters {
  unsigned inSweep = 1; ///< by what was read or computed and is needed again
  unsigned kept = 0;    ///< between two sweeps, by what a later one needs
  unsigned read = 0;    ///< by all that one sweep reads
};

/// With `rereads` what was read is not kept for a later sweep.
LiveRegisters liveRegisters(const Cluster &cluster, const Schedule &schedule, bool rereads);

} // namespace msc::codegen
