// A plan for people: msrun --print-plan and --save-graphs.
#pragma once

#include "runtime/plan/PlanIndex.h"

#include <string>

namespace msc {

/// Buffers, parameters, groups and steps as rank `rank` has them: local sizes, member lists, places.
std::string planText(const PlanIndex &index, int64_t rank);

} // namespace msc
