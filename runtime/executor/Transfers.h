// Which elements move between which ranks, computed at load from the shardings at both ends.
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/plan/CopyRegion.h"

#include <vector>

namespace msc {

/// The same box in two dense row-major arrays that hold the boxes `inFirst` and `inSecond`; dimensions of size 1 are gone
/// and those contiguous in both are merged, so that the sizes of both regions are equal.
struct RegionPair {
  comm::Region first, second;
};
RegionPair regionsOf(const Box &box, const Box &inFirst, const Box &inSecond);

/// What indices `indices` of a region copy, out of an array that holds the box `inSource` into one that holds `inTarget`.
RegionPair regionsOf(const CopyRegion &region, const Box &indices, const Box &inSource, const Box &inTarget);

/// What the member at `position` of `members` sends and receives so that every member gets its box under `to` out of the
/// boxes under `from`. An element that several members hold comes from the receiver itself if it is one of them; the other
/// receivers are dealt over the holders in turn.
comm::ExchangePlan exchangeBetween(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                   const std::vector<int64_t> &members, size_t position, comm::ElementType type);

/// The same for what a region copies out of a tensor of one shape into one of another.
struct CopySides {
  const Sharding &from;
  const std::vector<int64_t> &fromShape;
  const Sharding &to;
  const std::vector<int64_t> &toShape;
};
comm::ExchangePlan exchangeRegion(const CopyRegion &region, const CopySides &sides, const std::vector<int64_t> &members,
                                  size_t position, comm::ElementType type);

/// Adds the transfers of another tensor, which lies `sourceOffset` and `targetOffset` elements from where the plan's offsets
/// count, on all members alike.
void appendExchange(comm::ExchangePlan &plan, const comm::ExchangePlan &more, int64_t sourceOffset, int64_t targetOffset);

/// The region of the common source that each member keeps after a reduce-scatter to `to`.
std::vector<comm::Region> scatterPieces(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                        const std::vector<int64_t> &members);

/// Brings a whole array to member 0 of a group of all ranks: each element from the owner of its shard.
comm::ExchangePlan gatherToFirst(const Sharding &from, const std::vector<int64_t> &shape, int64_t rank,
                                 comm::ElementType type);

} // namespace msc
