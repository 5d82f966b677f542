// Good assignments of very large networks in near-linear time, without a proof.
#pragma once

#include "passes/sharding/search/CostNetwork.h"

namespace msc::search {

struct SweepLimits {
  int sweeps = 8; ///< at most; each takes time proportional to the tables
};

/// Assigns the variables in their order, each with a look ahead to those behind it; then chains of variables, one after
/// the other, take their cheapest options beside all that is not in the chain, until a sweep changes nothing. The bound
/// is -infinity.
///
/// recursive_programming calls it once per halving of the devices: the options are the ways to halve each operator once
/// more, so that there are few of them, however many devices there are.
Solution sweep(const CostNetwork &network, const SweepLimits &limits = {});

/// The chains alone, from an assignment that is known.
Solution sweepFrom(const CostNetwork &network, Choice start, const SweepLimits &limits = {});

} // namespace msc::search
