// A proof by what a good assignment costs: options that none has which costs less are left out, until little is left.
#pragma once

#include "passes/sharding/search/Progress.h"

namespace msc::search {

/// True: the solution of `progress` is the cheapest assignment. Else `bound` is raised to what nothing costs less than, and `less`, a
/// network with some of the options, becomes what is left of it. Nothing is done where bounds are not easy. `near`, if given, takes what
/// costs hardly more than the solution.
bool isProvenWithin(Progress &progress, Lowered &less, double &bound, std::optional<Lowered> *near);

} // namespace msc::search
