// Words for the steps of a plan, as reports, tables and traces write them.
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc {

/// "forward", "backward", "update".
const char *phaseName(plan::Step::Phase phase);

/// The rank lists of all groups that run at the same time.
std::vector<std::vector<int64_t>> groupsOf(const plan::Group &group);

/// "4 ranks: 0-1-2-3, 4-5-6-7, and 2 more groups".
std::string groupsText(const std::vector<std::vector<int64_t>> &groups);

} // namespace msc
