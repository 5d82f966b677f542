// How many bytes a collective makes each rank receive: the figure that plans, reports and the search share.
#pragma once

#include "runtime/plan/Sharding.h"

namespace msc::passes {

/// Elements that a rank receives from others when a tensor of `shape` goes from one sharding to the other within groups of
/// `groupSize` ranks; the maximum over ranks. A reduction counts a bandwidth-optimal algorithm: reduce-scatter
/// (each rank receives its piece from g - 1 peers) and, unless pieces are what the target wants, all-gather.
/// `reduces`: the source is partial on axes on which the target is not.
int64_t receivedElements(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, int64_t groupSize,
                         bool reduces);

} // namespace msc::passes
