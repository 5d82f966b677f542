// Values that depend on the step: learning rates and the like.
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace msc {

/// The value of a schedule at step `step` of the whole run, from 0; see plan.proto for the kinds.
double scheduleValue(const plan::Schedule &schedule, uint64_t step);

} // namespace msc
