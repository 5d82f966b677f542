// Exchange plans against index arithmetic: data is moved by following the plans of all members, then compared with what
// each member should hold.
#include "runtime/executor/Transfers.h"
#include "runtime/plan/Refinement.h"
#include "test/runtime/comm/RegionOffsets.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

using namespace msc;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

Sharding randomSharding(Random &random, int64_t devices, size_t rank) {
  Sharding sharding;
  for (int64_t left = devices; left > 1;) {
    int64_t factor = 0;
    do
      factor = pick(random, 2, left);
    while (left % factor != 0);
    sharding.axes.push_back(factor);
    left /= factor;
  }
  sharding.dims.resize(rank);
  for (size_t axis = 0; axis < sharding.axes.size(); ++axis)
    if (int64_t use = pick(random, -1, static_cast<int64_t>(rank) - 1); use >= 0)
      sharding.dims[use].push_back(static_cast<int32_t>(axis));
  return sharding;
}

/// The global indices of a box in row-major order.
std::vector<int64_t> indices(const Box &box, const std::vector<int64_t> &shape) {
  std::vector<int64_t> result{0};
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<int64_t> grown;
    for (int64_t base : result)
      for (int64_t i = box[dim].begin; i < box[dim].end; ++i)
        grown.push_back(base * shape[dim] + i);
    result = grown;
  }
  return result;
}

/// Follows the plans of all members; what they then hold.
std::vector<std::vector<int64_t>> follow(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                         const std::vector<int64_t> &members, std::vector<int64_t> *received = nullptr) {
  std::vector<comm::ExchangePlan> plans;
  for (size_t i = 0; i < members.size(); ++i)
    plans.push_back(exchangeBetween(from, to, shape, members, i, comm::ElementType::F32));
  std::vector<std::vector<int64_t>> targets;
  for (size_t i = 0; i < members.size(); ++i) {
    std::vector<int64_t> target(static_cast<size_t>(elementCount(to.localBox(shape, members[i]))), -1);
    for (const comm::Transfer &transfer : plans[i].receives) {
      std::vector<int64_t> source = indices(from.localBox(shape, members[transfer.peer]), shape);
      std::vector<int64_t> out = test::offsetsOf(transfer.source), in = test::offsetsOf(transfer.target);
      EXPECT_EQ(transfer.source.sizes, transfer.target.sizes);
      for (size_t e = 0; e < out.size(); ++e) {
        EXPECT_EQ(target.at(in[e]), -1) << "received twice";
        target.at(in[e]) = source.at(out[e]);
      }
      if (received && static_cast<size_t>(transfer.peer) != i)
        (*received)[i] += static_cast<int64_t>(out.size());
      // The peer lists the same as sent.
      const auto &sends = plans[transfer.peer].sends;
      auto same = [&](const comm::Transfer &sent) {
        return static_cast<size_t>(sent.peer) == i && test::offsetsOf(sent.source) == out && test::offsetsOf(sent.target) == in;
      };
      EXPECT_EQ(std::count_if(sends.begin(), sends.end(), same), 1);
    }
    targets.push_back(target);
  }
  size_t sends = 0, receives = 0;
  for (const comm::ExchangePlan &plan : plans) {
    sends += plan.sends.size();
    receives += plan.receives.size();
  }
  EXPECT_EQ(sends, receives);
  return targets;
}

TEST(Transfers, EveryMemberGetsItsBox) {
  Random random(1);
  for (int round = 0; round < 1500; ++round) {
    int64_t devices = pick(random, 1, 12);
    size_t rank = static_cast<size_t>(pick(random, 0, 3));
    std::vector<int64_t> shape;
    for (size_t i = 0; i < rank; ++i)
      shape.push_back(pick(random, 1, 9));
    Sharding from = randomSharding(random, devices, rank), to = randomSharding(random, devices, rank);
    std::vector<int64_t> members(static_cast<size_t>(devices));
    std::iota(members.begin(), members.end(), 0);
    auto held = follow(from, to, shape, members);
    for (int64_t member = 0; member < devices; ++member)
      ASSERT_EQ(held[member], indices(to.localBox(shape, member), shape)) << from.str() << " -> " << to.str();
  }
}

/// A region of one or two dimensions between tensors of other shapes.
struct RandomRegion {
  CopyRegion region;
  std::vector<int64_t> from, to;

  explicit RandomRegion(Random &random) {
    for (int64_t rank = pick(random, 1, 2); rank > 0; --rank) {
      CopyRange range{0, 0, pick(random, 1, 6), pick(random, 1, 2) * (pick(random, 0, 1) ? 1 : -1), pick(random, 1, 2)};
      int64_t step = std::abs(range.sourceStride), before = pick(random, 0, 2);
      range.source = before + (range.sourceStride < 0 ? (range.size - 1) * step : 0);
      range.target = pick(random, 0, 2);
      from.push_back(before + (range.size - 1) * step + pick(random, 1, 3));
      to.push_back(range.target + (range.size - 1) * range.targetStride + pick(random, 1, 3));
      region.ranges.push_back(range);
    }
  }

  /// What each element of the target holds: the number of a source element, -1 where nothing is written.
  std::vector<int64_t> expected() const {
    std::vector<int64_t> result(static_cast<size_t>(elementCount(to)), -1);
    Box whole;
    for (const CopyRange &range : region.ranges)
      whole.push_back({0, range.size});
    for (int64_t index : indices(whole, sizes(whole))) {
      int64_t source = 0, target = 0, left = index;
      std::vector<int64_t> at(region.ranges.size());
      for (size_t dim = at.size(); dim-- > 0; left /= region.ranges[dim].size)
        at[dim] = left % region.ranges[dim].size;
      for (size_t dim = 0; dim < at.size(); ++dim) {
        source = source * from[dim] + region.ranges[dim].source + at[dim] * region.ranges[dim].sourceStride;
        target = target * to[dim] + region.ranges[dim].target + at[dim] * region.ranges[dim].targetStride;
      }
      result[target] = source;
    }
    return result;
  }
};

TEST(Transfers, RegionsArriveFromWhereverTheyAre) {
  Random random(7);
  for (int round = 0; round < 1500; ++round) {
    int64_t devices = pick(random, 1, 8);
    RandomRegion made(random);
    Sharding from = randomSharding(random, devices, made.from.size()), to = randomSharding(random, devices, made.to.size());
    std::vector<int64_t> members(static_cast<size_t>(devices)), expected = made.expected();
    std::iota(members.begin(), members.end(), 0);
    std::vector<comm::ExchangePlan> plans;
    for (size_t i = 0; i < members.size(); ++i)
      plans.push_back(exchangeRegion(made.region, {from, made.from, to, made.to}, members, i, comm::ElementType::F32));
    std::vector<int64_t> received(members.size(), 0);
    for (size_t i = 0; i < members.size(); ++i) {
      std::vector<int64_t> wanted = indices(to.localBox(made.to, members[i]), made.to);
      std::vector<int64_t> target(wanted.size(), -1);
      for (const comm::Transfer &transfer : plans[i].receives) {
        std::vector<int64_t> source = indices(from.localBox(made.from, members[transfer.peer]), made.from);
        std::vector<int64_t> out = test::offsetsOf(transfer.source), in = test::offsetsOf(transfer.target);
        for (size_t e = 0; e < out.size(); ++e) {
          ASSERT_EQ(target.at(in[e]), -1) << "received twice";
          target.at(in[e]) = source.at(out[e]);
        }
        received[i] += static_cast<size_t>(transfer.peer) == i ? 0 : static_cast<int64_t>(out.size());
        const auto &sends = plans[transfer.peer].sends;
        ASSERT_EQ(std::count_if(sends.begin(), sends.end(),
                                [&](const comm::Transfer &sent) {
                                  return static_cast<size_t>(sent.peer) == i && test::offsetsOf(sent.source) == out &&
                                         test::offsetsOf(sent.target) == in;
                                }),
                  1);
      }
      for (size_t e = 0; e < wanted.size(); ++e)
        ASSERT_EQ(target[e], expected[wanted[e]]) << from.str() << " -> " << to.str();
    }
    std::vector<CopyEnds> ends{{from, made.from, to, made.to, {made.region}}};
    ASSERT_EQ(receivedElements(ends)[0], *std::max_element(received.begin(), received.end()));
  }
}

TEST(Transfers, GroupsMoveAmongThemselves) {
  // 2 x 2 devices, gather along the second axis: groups (0, 1) and (2, 3).
  Sharding rows{{2, 2}, {{0, 1}, {}}, {}}, half{{2, 2}, {{0}, {}}, {}};
  std::vector<int64_t> shape{9, 4};
  for (std::vector<int64_t> members : {std::vector<int64_t>{0, 1}, {2, 3}}) {
    auto held = follow(rows, half, shape, members);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(held[i], indices(half.localBox(shape, members[i]), shape));
  }
}

TEST(Transfers, WhatARankHoldsIsNotSent) {
  // Half the ranks hold the first half, replicated; all want everything: each receives exactly what it lacks.
  Sharding from{{2, 4}, {{0}}, {}}, to{{8}, {{}}, {}};
  std::vector<int64_t> members(8), received(8, 0);
  std::iota(members.begin(), members.end(), 0);
  follow(from, to, {16}, members, &received);
  EXPECT_EQ(received, std::vector<int64_t>(8, 8));
}

TEST(Transfers, SendersShareTheLoad) {
  // Four replicas of each half serve four receivers: each sends once.
  Sharding from{{2, 4}, {{0}}, {}}, to{{8}, {{}}, {}};
  std::vector<int64_t> members(8);
  std::iota(members.begin(), members.end(), 0);
  for (size_t i = 0; i < 8; ++i) {
    auto plan = exchangeBetween(from, to, {16}, members, i, comm::ElementType::F32);
    EXPECT_EQ(plan.sends.size(), 2u) << i; // to itself and to one other
  }
}

TEST(Transfers, PartialTermsComeFromRanksWithTheSameTerm) {
  // Partial over axis 0, rows cut over axis 1; the group is all ranks: terms must not mix.
  Sharding from{{2, 2}, {{1}}, {{0, ReduceKind::Sum}}}, to{{2, 2}, {{}}, {{0, ReduceKind::Sum}}};
  std::vector<int64_t> members{0, 1, 2, 3};
  for (size_t i = 0; i < 4; ++i)
    for (const comm::Transfer &transfer : exchangeBetween(from, to, {8}, members, i, comm::ElementType::F32).receives)
      EXPECT_EQ(transfer.peer / 2, static_cast<int32_t>(i) / 2);
}

TEST(Transfers, ContiguousDimensionsAreMerged) {
  // Whole rows of a 4 x 6 x 5 array are one run.
  RegionPair rows = regionsOf({{1, 3}, {0, 6}, {0, 5}}, {{0, 4}, {0, 6}, {0, 5}}, {{1, 3}, {0, 6}, {0, 5}});
  EXPECT_EQ(rows.first.sizes, (std::vector<int64_t>{60}));
  EXPECT_EQ(rows.first.offset, 30);
  EXPECT_EQ(rows.second.offset, 0);
  RegionPair middle = regionsOf({{0, 4}, {2, 4}, {0, 5}}, {{0, 4}, {0, 6}, {0, 5}}, {{0, 4}, {2, 4}, {0, 5}});
  EXPECT_EQ(middle.first.sizes, (std::vector<int64_t>{4, 10}));
  EXPECT_EQ(middle.first.strides, (std::vector<int64_t>{30, 1}));
  EXPECT_EQ(middle.second.strides, (std::vector<int64_t>{10, 1}));
}

TEST(Transfers, ScatterPiecesAreTheTargets) {
  Sharding from{{2, 3}, {{0}, {}}, {{1, ReduceKind::Sum}}}, to{{2, 3}, {{0}, {1}}, {}};
  std::vector<int64_t> shape{5, 7};
  for (std::vector<int64_t> members : {std::vector<int64_t>{0, 1, 2}, {3, 4, 5}}) {
    std::vector<comm::Region> pieces = scatterPieces(from, to, shape, members);
    for (size_t i = 0; i < members.size(); ++i) {
      std::vector<int64_t> source = indices(from.localBox(shape, members[i]), shape), kept;
      for (int64_t offset : test::offsetsOf(pieces[i]))
        kept.push_back(source.at(offset));
      EXPECT_EQ(kept, indices(to.localBox(shape, members[i]), shape));
    }
  }
}

TEST(Transfers, GatherTakesEachShardOnce) {
  Sharding from{{2, 3}, {{1}, {}}, {}};
  std::vector<int64_t> shape{7, 2};
  int64_t elements = 0;
  for (const comm::Transfer &transfer : gatherToFirst(from, shape, 0, comm::ElementType::F32).receives) {
    EXPECT_LT(transfer.peer, 3);
    elements += transfer.target.count();
  }
  EXPECT_EQ(elements, 14);
  EXPECT_TRUE(gatherToFirst(from, shape, 4, comm::ElementType::F32).sends.empty());
  EXPECT_EQ(gatherToFirst(from, shape, 2, comm::ElementType::F32).sends.size(), 1u);
}

/// Minutes if each member looked at all pairs of members.
TEST(Transfers, LargePrimeGroups) {
  constexpr int64_t devices = 1021;
  Sharding rows;
  rows.axes = {devices};
  rows.dims = {{0}, {}};
  std::vector<int64_t> shape{4 * devices + 3, 2}, members(devices);
  std::iota(members.begin(), members.end(), int64_t{0});
  for (size_t position = 0; position < members.size(); ++position)
    EXPECT_EQ(exchangeBetween(rows, rows, shape, members, position, comm::ElementType::F32).receives.size(), 1u);
}

} // namespace
