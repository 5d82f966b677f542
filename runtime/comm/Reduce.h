// Reductions in ascending rank order, left to right, in the element type itself: the one place that decides the bits.
#pragma once

#include "runtime/comm/Communicator.h"

#include <span>

namespace msc::comm {

/// For i in [begin, end): all targets[t][i] = sources[0][i] op sources[1][i] op ... A target may be one of the sources.
/// With `stream` the targets are written past the caches; call streamFence() after.
void reduceOrdered(std::span<const void *const> sources, std::span<void *const> targets, int64_t begin, int64_t end,
                   ElementType type, ReduceKind kind, bool stream);

/// Elements [begin, end) of `region` of all sources, reduced into target[0 .. end - begin).
void reduceRegions(std::span<const void *const> sources, const Region &region, int64_t begin, int64_t end,
                   void *target, ElementType type, ReduceKind kind, bool stream);

} // namespace msc::comm
