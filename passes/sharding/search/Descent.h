// Local improvement of an assignment.
#pragma once

#include "passes/sharding/search/CostNetwork.h"

namespace msc::search {

/// Goes through the variables and gives each its cheapest option beside all others, until nothing changes or `rounds` are
/// over. Never dearer than `choice`.
Choice descended(const CostNetwork &network, Choice choice, int rounds = 20);

} // namespace msc::search
