// How many values a thread holds where it sweeps a row that stays in its registers.
#pragma once

#include "passes/codegen/Schedule.h"

namespace msc::codegen {

/// 32-bit registers per element of the sweep, where most of them are taken: by what was read or computed and is needed again,
/// in this sweep or a later one.
unsigned liveRegisters(const Cluster &cluster, const Schedule &schedule);

} // namespace msc::codegen
