// Regions against counting: every index one by one.
#include "runtime/plan/CopyRegion.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace msc;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

/// A range within dimensions of these sizes.
CopyRange randomRange(Random &random, int64_t source, int64_t target) {
  CopyRange range;
  range.sourceStride = pick(random, 1, 3) * (pick(random, 0, 1) ? 1 : -1);
  range.targetStride = pick(random, 1, 3);
  int64_t step = std::abs(range.sourceStride);
  range.size = pick(random, 1, std::min((source - 1) / step, (target - 1) / range.targetStride) + 1);
  int64_t first = pick(random, 0, source - 1 - (range.size - 1) * step);
  range.source = range.sourceStride > 0 ? first : first + (range.size - 1) * step;
  range.target = pick(random, 0, target - 1 - (range.size - 1) * range.targetStride);
  return range;
}

Range randomBox(Random &random, int64_t size) {
  int64_t begin = pick(random, 0, size);
  return {begin, pick(random, begin, size)};
}

std::set<std::pair<int64_t, int64_t>> pairsOf(const CopyRange &range) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < range.size; ++i)
    pairs.emplace(range.source + i * range.sourceStride, range.target + i * range.targetStride);
  return pairs;
}

TEST(CopyRegion, IndicesInBoxesAreThoseThatLieThere) {
  Random random(1);
  for (int round = 0; round < 5000; ++round) {
    int64_t source = pick(random, 1, 12), target = pick(random, 1, 12);
    CopyRegion region{0, {randomRange(random, source, target)}};
    ASSERT_EQ(checkRegions({region}, {{source}}, {target}), "");
    const CopyRange &range = region.ranges[0];
    Box from{randomBox(random, source)}, to{randomBox(random, target)};
    Range inSource = indicesInSource(region, from)[0], inTarget = indicesInTarget(region, to)[0];
    for (int64_t i = 0; i < range.size; ++i) {
      int64_t at = range.source + i * range.sourceStride, there = range.target + i * range.targetStride;
      ASSERT_EQ(i >= inSource.begin && i < inSource.end, at >= from[0].begin && at < from[0].end);
      ASSERT_EQ(i >= inTarget.begin && i < inTarget.end, there >= to[0].begin && there < to[0].end);
    }
    ASSERT_LE(inSource.end, range.size);
    ASSERT_LE(inTarget.end, range.size);
  }
}

TEST(CopyRegion, TransposedCopiesTheSameElementsBack) {
  Random random(2);
  for (int round = 0; round < 2000; ++round) {
    int64_t source = pick(random, 1, 12), target = pick(random, 1, 12);
    CopyRegion region{3, {randomRange(random, source, target)}}, back = transposed(region);
    ASSERT_EQ(checkRegions({back}, {{target}}, {source}), "");
    std::set<std::pair<int64_t, int64_t>> swapped;
    for (auto [a, b] : pairsOf(back.ranges[0]))
      swapped.emplace(b, a);
    ASSERT_EQ(swapped, pairsOf(region.ranges[0]));
  }
}

std::set<int64_t> targetsOf(const CopyRange &range) {
  std::set<int64_t> targets;
  for (auto [from, to] : pairsOf(range))
    targets.insert(to);
  return targets;
}

TEST(CopyRegion, RegionsThatWriteOneElementTwiceAreRefused) {
  Random random(3);
  int meeting = 0, apart = 0;
  for (int round = 0; round < 5000; ++round) {
    int64_t source = pick(random, 1, 12), target = pick(random, 1, 20);
    CopyRegion a{0, {randomRange(random, source, target)}}, b{0, {randomRange(random, source, target)}};
    std::set<int64_t> both = targetsOf(a.ranges[0]), other = targetsOf(b.ranges[0]);
    size_t separate = both.size() + other.size();
    both.insert(other.begin(), other.end());
    bool meet = both.size() < separate, refused = !checkRegions({a, b}, {{source}}, {target}).empty();
    ASSERT_LE(meet, refused);
    meeting += meet;
    apart += !refused;
    // Lists without overlap hold all regions, in order.
    size_t count = 0;
    for (const CopyRegions &list : withoutOverlap({a, b, a})) {
      EXPECT_EQ(checkRegions(list, {{source}}, {target}), "");
      count += list.size();
    }
    EXPECT_EQ(count, 3u);
  }
  EXPECT_GE(meeting, 500);
  EXPECT_GE(apart, 500);
}

TEST(CopyRegion, WhatLeavesTheTensorsIsRefused) {
  CopyRegion sound{0, {{1, 0, 3, 2, 1}}};
  EXPECT_EQ(checkRegions({sound}, {{6}}, {3}), "");
  auto refuse = [&](CopyRange range) { return !checkRegions({{0, {range}}}, {{6}}, {3}).empty(); };
  EXPECT_TRUE(refuse({2, 0, 3, 2, 1}));
  EXPECT_TRUE(refuse({1, 1, 3, 2, 1}));
  EXPECT_TRUE(refuse({1, 0, 0, 1, 1}));
  EXPECT_TRUE(refuse({1, 0, 3, 0, 1}));
  EXPECT_TRUE(refuse({1, 0, 3, -1, 1}));
  EXPECT_TRUE(refuse({1, 2, 2, 1, -1}));
  EXPECT_TRUE(refuse({-1, 0, 3, 1, 1}));
  EXPECT_TRUE(refuse({0, 0, INT64_MAX, INT64_MAX, 1}));
  EXPECT_FALSE(checkRegions({{1, {{0, 0, 1}}}}, {{6}}, {3}).empty());
  EXPECT_FALSE(checkRegions({{0, {{0, 0, 1}, {0, 0, 1}}}}, {{6}}, {3}).empty());
  EXPECT_FALSE(coverTarget({sound}, {4}));
  EXPECT_TRUE(coverTarget({sound}, {3}));
}

TEST(CopyRegion, MovedDimensionsAreThoseWhereAnIndexChanges) {
  // Rows shifted, columns whole.
  CopyRegions shift{{0, {{0, 1, 3}, {0, 0, 5}}}, {0, {{3, 0, 1}, {0, 0, 5}}}};
  EXPECT_EQ(movedDimensions(shift, {{4, 5}}, {4, 5}), (std::vector<bool>{true, false}));
  CopyRegions part{{0, {{0, 0, 4}, {0, 0, 3}}}};
  EXPECT_EQ(movedDimensions(part, {{4, 5}}, {4, 3}), (std::vector<bool>{false, true}));
}

TEST(CopyRegion, ReceivedElementsAreThoseOfTheBusiestRank) {
  // (6) cut into 3, its middle taken: ranks hold 0-1, 2-3, 4-5 and want indices 1, 2, 3.
  Sharding thirds{{3}, {{0}}, {}};
  std::vector<CopyEnds> ends{{thirds, {6}, thirds, {3}, {{0, {{1, 0, 3}}}}}};
  EXPECT_EQ(receivedElements(ends), (std::vector<int64_t>{1})); // rank 2 wants 3, which rank 1 holds
  ends[0].target = {{3}, {{}}, {}};
  EXPECT_EQ(receivedElements(ends), (std::vector<int64_t>{3})); // rank 2 holds none of 1, 2, 3
}

TEST(CopyRegion, NumbersMakeTheSameRegionsAgain) {
  CopyRegions regions{{1, {{1, 2, 3, 4, 5}, {6, 7, 8, -9, 10}}}, {0, {{0, 0, 1}, {0, 0, 2}}}};
  EXPECT_EQ(regionsFrom(flattened(regions), 2), regions);
  EXPECT_TRUE(regionsFrom(std::vector<int64_t>(7, 1), 2).empty());
}

} // namespace
