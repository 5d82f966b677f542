// Regions that move elements along a cut dimension and yet take none from another rank: the last element of every piece.
#pragma once

#include "runtime/plan/CopyRegion.h"

#include <algorithm>

namespace msc {

/// True if every rank holds all that it needs. False, too, where there are more regions on ranks than can be tried.
inline bool staysOnRanks(const CopyEnds &ends) {
  constexpr int64_t mostTried = 1 << 20;
  if (static_cast<int64_t>(ends.regions.size()) > mostTried / std::max<int64_t>(1, ends.target.devices()))
    return false;
  return receivedElements(std::span(&ends, 1)).front() == 0;
}

} // namespace msc
