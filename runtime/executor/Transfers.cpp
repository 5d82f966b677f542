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

/// Members that hold the same part of a value, and those that need some of it without holding it.
struct Shard {
  Box box;
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
std::vector<Shard> shardsOf(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                            const std::vector<int64_t> &members, size_t position) {
  std::map<int64_t, size_t> indexOfOwner;
  std::vector<Shard> shards;
  std::vector<Box> targets;
  std::vector<std::vector<int64_t>> terms;
  for (size_t member = 0; member < members.size(); ++member) {
    int64_t owner = from.ownerOf(members[member]);
    auto [at, isNew] = indexOfOwner.try_emplace(owner, shards.size());
    if (isNew)
      shards.push_back({from.localBox(shape, members[member]), {}, {}});
    shards[at->second].holders.push_back(member);
    targets.push_back(to.localBox(shape, members[member]));
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

comm::Transfer transfer(size_t peer, const Box &box, const Box &source, const Box &target) {
  RegionPair pair = regionsOf(box, source, target);
  return {static_cast<int32_t>(peer), std::move(pair.first), std::move(pair.second)};
}

} // namespace

RegionPair regionsOf(const Box &box, const Box &inFirst, const Box &inSecond) {
  RegionPair pair;
  std::vector<int64_t> strides1 = rowMajorStrides(inFirst), strides2 = rowMajorStrides(inSecond);
  for (size_t i = 0; i < box.size(); ++i) {
    pair.first.offset += (box[i].begin - inFirst[i].begin) * strides1[i];
    pair.second.offset += (box[i].begin - inSecond[i].begin) * strides2[i];
    int64_t size = box[i].size();
    if (size == 1)
      continue;
    bool merges = !pair.first.sizes.empty() && pair.first.strides.back() == size * strides1[i] &&
                  pair.second.strides.back() == size * strides2[i];
    if (merges) {
      pair.first.sizes.back() *= size;
      pair.first.strides.back() = strides1[i];
      pair.second.strides.back() = strides2[i];
    } else {
      pair.first.sizes.push_back(size);
      pair.first.strides.push_back(strides1[i]);
      pair.second.strides.push_back(strides2[i]);
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
  comm::ExchangePlan plan;
  plan.type = type;
  Box source = from.localBox(shape, members[position]), target = to.localBox(shape, members[position]);
  for (const Shard &shard : shardsOf(from, to, shape, members, position)) {
    bool mine = std::binary_search(shard.holders.begin(), shard.holders.end(), position);
    bool needed = mine || std::binary_search(shard.strangers.begin(), shard.strangers.end(), position);
    Box common = intersect(shard.box, target);
    if (needed && elementCount(common) != 0)
      plan.receives.push_back(transfer(senderTo(shard, position), common, shard.box, target));
    if (!mine)
      continue;
    std::vector<size_t> receivers = shard.strangers;
    receivers.push_back(position);
    for (size_t receiver : receivers) {
      Box theirs = to.localBox(shape, members[receiver]), sent = intersect(source, theirs);
      if (senderTo(shard, receiver) == position && elementCount(sent) != 0)
        plan.sends.push_back(transfer(receiver, sent, source, theirs));
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
    return transfer(static_cast<size_t>(peer), box, box, whole);
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
