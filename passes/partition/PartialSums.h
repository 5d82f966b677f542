// When linear operators compute with the terms of a sum. Plain data, no IR: `msc-keep-partials` and the model of the search ask the same.
#pragma once

#include "dialects/dist/Reshard.h"

#include <optional>
#include <vector>

namespace msc::passes {

/// `result`, partial by sum over the axes over which `operand` is: what a linear operator makes of terms. Nothing if the result is
/// partial itself, or if an axis cuts the result or another operand: then the terms do not belong to the same piece.
std::optional<Sharding> partialResult(const Sharding &result, const Sharding &operand, const std::vector<Sharding> &others);

/// A partial value.
struct Terms {
  const Sharding &sharding;
  const std::vector<int64_t> &shape;
  size_t elementBytes = 4;
};

/// f(AllReduce(a)) = AllReduce(f(a)): whether completing what f makes takes less time.
bool completesSooner(const Terms &made, const Terms &operand, const MachineModel &machine);

/// AllReduce(a) + AllReduce(b) = AllReduce(a + b), also where `count` sums go on to the shards that the addition wants. The terms may
/// be larger than those shards, so adding them takes longer: whether it takes less time in all.
bool addsSooner(const Terms &terms, const Sharding &wanted, size_t count, dist::ReshardPlanner &planner);

} // namespace msc::passes
