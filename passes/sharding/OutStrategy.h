// out_strategy: how an operator leaves a result, where its user wants it otherwise than its rule does. A sum that is partial
// goes straight there (ReduceScatter in the place of AllReduce).
#pragma once

#include "runtime/plan/Sharding.h"

#include <vector>

namespace msc::passes {

/// The sharding that cuts a result into `pieces` per dimension. `left` is how the operator leaves it: its axes keep their
/// dimensions, further pieces come from its partial axes, then from those that repeat it, so that as little as possible
/// moves; where that does not come out even, from all devices in order. The product of `pieces` divides their number.
Sharding outSharding(const Sharding &left, const std::vector<int64_t> &pieces);

} // namespace msc::passes
