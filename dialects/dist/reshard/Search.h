// Least modelled time from one sharding to another. Plain C++, no MLIR.
//
// A state says for every axis of a device matrix where it is: at a position of a dimension, repeating, or partial.
// Moves carry axes from one place to another, and each has a modelled time; the search is A* with a lower bound that
// counts what has to be received at least and which axes have to take part in some group at least.
#pragma once

#include "dialects/dist/Reshard.h"

#include <optional>

namespace msc::dist {

/// Steps of least time from one sharding to the other, over their common refinement and, with few axes, over all
/// matrices in which a part of an axis can move alone; nothing if there is no common refinement, if there are more axes
/// or dimensions than the search can hold, or if no sequence exists (only without the direct exchange). The target's
/// partial axes are partial in the source.
std::optional<std::vector<ReshardStep>> searchReshard(const Sharding &from, const Sharding &to,
                                                      const std::vector<int64_t> &shape, size_t elementBytes,
                                                      const MachineModel &machine, const ReshardOptions &options);

} // namespace msc::dist
