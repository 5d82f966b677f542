#include "runtime/executor/Transfers.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace msc {
namespace {

std::vector<int64_t> rowMajorStrides(const Box &box) {
  std::vector<int64_t> strides(box.size(), 1);
  for (size_t i = box.size(); i-- > 1;)
    strides[i - 1] = strides[i] * box[i].size();
  return strides;
}

/// What moves: indices of a region, which the ranks at both ends hold in part.
struct Move {
  const CopyRegion &region;
  const CopySides &sides;

  Box held(int64_t rank) const { return indicesInSource(region, sides.from.localBox(sides.fromShape, rank)); }
  Box wanted(int64_t rank) const { return indicesInTarget(region, sides.to.localBox(sides.toShape, rank)); }
};

/// Members that hold the same part of a value, and those that need some of it without holding it.
struct Shard {
  Box box; ///< indices of the region
  std::vector<size_t> holders;   ///< positions, ascending
  std::vector<size_t> strangers; ///< positions, ascending
};

/// Coordinates on the partial axes over a factorisation that fits both ends: which term of a partial value a rank holds.
std::vector<int64_t> termOf(const Sharding &sharding, int64_t rank) {
  std::vector<int64_t> at = sharding.coordinates(rank), term;
  for (const PartialAxis &partial : sharding.partial)
    term.push_back(at[partial.axis]);
  return term;
}

/// The parts of the value among the members that `position` holds or needs some of: few of many, in large groups. Terms are
/// compared over the source's axes: the checker has proven that both ends are partial over the same ones.
std::vector<Shard> shardsOf(const Move &move, const std::vector<int64_t> &members, size_t position) {
  const Sharding &from = move.sides.from;
  std::map<int64_t, size_t> indexOfOwner;
  std::vector<Shard> shards;
  std::vector<Box> targets;
  std::vector<std::vector<int64_t>> terms;
  for (size_t member = 0; member < members.size(); ++member) {
    int64_t owner = from.ownerOf(members[member]);
    auto [at, isNew] = indexOfOwner.try_emplace(owner, shards.size());
    if (isNew)
      shards.push_back({move.held(members[member]), {}, {}});
    shards[at->second].holders.push_back(member);
    targets.push_back(move.wanted(members[member]));
    terms.push_back(termOf(from, members[member]));
  }
  std::erase_if(shards, [&](const Shard &shard) {
    return !std::binary_search(shard.holders.begin(), shard.holders.end(), position) &&
           elementCount(intersect(shard.box, targets[position])) == 0;
  });
  for (Shard &shard : shards)
    for (size_t member = 0; member < members.size(); ++member) {
      bool holds = std::binary_search(shard.holders.begin(), shard.holders.end(), member);
      if (!holds && terms[member] == terms[shard.holders.front()] &&
          elementCount(intersect(shard.box, targets[member])) != 0)
        shard.strangers.push_back(member);
    }
  return shards;
}

/// The position that sends its part to `receiver`; `shard` is needed there.
size_t senderTo(const Shard &shard, size_t receiver) {
  if (std::binary_search(shard.holders.begin(), shard.holders.end(), receiver))
    return receiver;
  auto turn = std::lower_bound(shard.strangers.begin(), shard.strangers.end(), receiver) - shard.strangers.begin();
  return shard.holders[static_cast<size_t>(turn) % shard.holders.size()];
}

/// From the shard of `holder` to the shard of `receiver`; the peer is at the other end.
comm::Transfer transfer(size_t peer, const Move &move, const Box &indices, int64_t holder, int64_t receiver) {
  RegionPair pair = regionsOf(move.region, indices, move.sides.from.localBox(move.sides.fromShape, holder),
                              move.sides.to.localBox(move.sides.toShape, receiver));
  return {static_cast<int32_t>(peer), std::move(pair.first), std::move(pair.second)};
}

} // namespace

/// Every index of every dimension to itself.
static CopyRegion wholeRegion(size_t dimensions, const std::vector<int64_t> &shape) {
  CopyRegion region;
  for (size_t dim = 0; dim < dimensions; ++dim)
    region.ranges.push_back({0, 0, dim < shape.size() ? shape[dim] : INT64_MAX});
  return region;
}

RegionPair regionsOf(const Box &box, const Box &inFirst, const Box &inSecond) {
  return regionsOf(wholeRegion(box.size(), {}), box, inFirst, inSecond);
}

RegionPair regionsOf(const CopyRegion &region, const Box &indices, const Box &inSource, const Box &inTarget) {
  RegionPair pair;
  std::vector<int64_t> strides1 = rowMajorStrides(inSource), strides2 = rowMajorStrides(inTarget);
  for (size_t i = 0; i < indices.size(); ++i) {
    const CopyRange &range = region.ranges[i];
    pair.first.offset += (range.source + indices[i].begin * range.sourceStride - inSource[i].begin) * strides1[i];
    pair.second.offset += (range.target + indices[i].begin * range.targetStride - inTarget[i].begin) * strides2[i];
    int64_t size = indices[i].size(), stride1 = range.sourceStride * strides1[i], stride2 = range.targetStride * strides2[i];
    if (size == 1)
      continue;
    bool merges = !pair.first.sizes.empty() && pair.first.strides.back() == size * stride1 &&
                  pair.second.strides.back() == size * stride2;
    if (merges) {
      pair.first.sizes.back() *= size;
      pair.first.strides.back() = stride1;
      pair.second.strides.back() = stride2;
    } else {
      pair.first.sizes.push_back(size);
      pair.first.strides.push_back(stride1);
      pair.second.strides.push_back(stride2);
    }
    pair.second.sizes = pair.first.sizes;
  }
  // A single element is a run of length one.
  if (pair.first.sizes.empty())
    pair.first.sizes = pair.first.strides = pair.second.sizes = pair.second.strides = {1};
  return pair;
}

comm::ExchangePlan exchangeBetween(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                   const std::vector<int64_t> &members, size_t position, comm::ElementType type) {
  return exchangeRegion(wholeRegion(shape.size(), shape), {from, shape, to, shape}, members, position, type);
}

comm::ExchangePlan exchangeRegion(const CopyRegion &region, const CopySides &sides, const std::vector<int64_t> &members,
                                  size_t position, comm::ElementType type) {
  comm::ExchangePlan plan;
  plan.type = type;
  Move move{region, sides};
  int64_t rank = members[position];
  Box source = move.held(rank), target = move.wanted(rank);
  for (const Shard &shard : shardsOf(move, members, position)) {
    bool mine = std::binary_search(shard.holders.begin(), shard.holders.end(), position);
    bool needed = mine || std::binary_search(shard.strangers.begin(), shard.strangers.end(), position);
    Box common = intersect(shard.box, target);
    if (needed && elementCount(common) != 0) {
      size_t sender = senderTo(shard, position);
      plan.receives.push_back(transfer(sender, move, common, members[sender], rank));
    }
    if (!mine)
      continue;
    std::vector<size_t> receivers = shard.strangers;
    receivers.push_back(position);
    for (size_t receiver : receivers) {
      Box sent = intersect(source, move.wanted(members[receiver]));
      if (senderTo(shard, receiver) == position && elementCount(sent) != 0)
        plan.sends.push_back(transfer(receiver, move, sent, rank, members[receiver]));
    }
  }
  auto byPeer = [](const comm::Transfer &a, const comm::Transfer &b) { return a.peer < b.peer; };
  std::sort(plan.receives.begin(), plan.receives.end(), byPeer);
  std::sort(plan.sends.begin(), plan.sends.end(), byPeer);
  return plan;
}

void appendExchange(comm::ExchangePlan &plan, const comm::ExchangePlan &more, int64_t sourceOffset,
                    int64_t targetOffset) {
  auto append = [&](std::vector<comm::Transfer> &list, std::vector<comm::Transfer> added) {
    for (comm::Transfer &transfer : added) {
      transfer.source.offset += sourceOffset;
      transfer.target.offset += targetOffset;
    }
    std::vector<comm::Transfer> merged;
    std::merge(list.begin(), list.end(), added.begin(), added.end(), std::back_inserter(merged),
               [](const comm::Transfer &a, const comm::Transfer &b) { return a.peer < b.peer; });
    list = std::move(merged);
  };
  append(plan.receives, more.receives);
  append(plan.sends, more.sends);
}

std::vector<comm::Region> scatterPieces(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                        const std::vector<int64_t> &members) {
  std::vector<comm::Region> pieces;
  for (int64_t member : members) {
    Box kept = to.localBox(shape, member);
    pieces.push_back(regionsOf(kept, from.localBox(shape, member), kept).first);
  }
  return pieces;
}

comm::ExchangePlan gatherToFirst(const Sharding &from, const std::vector<int64_t> &shape, int64_t rank,
                                 comm::ElementType type) {
  comm::ExchangePlan plan;
  plan.type = type;
  Box whole;
  for (int64_t size : shape)
    whole.push_back({0, size});
  auto piece = [&](int64_t owner, int64_t peer) {
    Box box = from.localBox(shape, owner);
    RegionPair pair = regionsOf(box, box, whole);
    return comm::Transfer{static_cast<int32_t>(peer), std::move(pair.first), std::move(pair.second)};
  };
  auto sends = [&](int64_t owner) {
    return from.ownerOf(owner) == owner && elementCount(from.localBox(shape, owner)) != 0;
  };
  if (sends(rank))
    plan.sends.push_back(piece(rank, 0));
  for (int64_t owner = 0; rank == 0 && owner < from.devices(); ++owner)
    if (sends(owner))
      plan.receives.push_back(piece(owner, owner));
  return plan;
}

} // namespace msc
