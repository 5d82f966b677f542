// Copies of regions against copying element by element, for every element size, shape of runs and part of a region.
#include "runtime/comm/Region.h"
#include "test/runtime/comm/RegionOffsets.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace msc;
using namespace msc::comm;
using msc::test::offsetsOf;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random &random, int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

/// A region of these sizes somewhere in a buffer, its dimensions in any order in memory and with gaps; `elements` is what the
/// buffer must hold.
Region randomRegion(Random &random, const std::vector<int64_t> &sizes, int64_t &elements) {
  Region region{pick(random, 0, 5), sizes, std::vector<int64_t>(sizes.size(), 1)};
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (pick(random, 0, 2) == 0)
    std::shuffle(order.begin(), order.end(), random);
  int64_t stride = pick(random, 0, 3) ? 1 : 2;
  for (size_t i = order.size(); i-- > 0;) {
    region.strides[order[i]] = stride;
    stride *= sizes[order[i]] + (pick(random, 0, 1) ? 0 : pick(random, 0, 3));
  }
  elements = region.offset + stride + 1;
  return region;
}

TEST(Region, PartsOfRegionsAreCopiedPackedAndViewed) {
  Random random(7);
  for (int round = 0; round < 4000; ++round) {
    std::vector<int64_t> sizes(pick(random, 0, 4));
    for (int64_t &size : sizes)
      size = pick(random, 0, 40) ? pick(random, 1, 9) : 0;
    if (!sizes.empty() && pick(random, 0, 1))
      sizes.back() *= pick(random, 1, 40);
    size_t bytes = size_t{1} << pick(random, 0, 3);
    int64_t sourceElements = 0, targetElements = 0;
    Region source = randomRegion(random, sizes, sourceElements), target = randomRegion(random, sizes, targetElements);
    std::vector<uint8_t> from(sourceElements * bytes), to(targetElements * bytes, 0xee);
    for (uint8_t &byte : from)
      byte = static_cast<uint8_t>(random() % 0xee);
    int64_t count = source.count(), begin = pick(random, 0, count), end = pick(random, begin, count);
    if (pick(random, 0, 1))
      begin = 0, end = count;
    std::vector<int64_t> sources = offsetsOf(source), targets = offsetsOf(target);

    std::vector<uint8_t> expected = to, dense((end - begin) * bytes + 1), scratch(dense), unpacked = to;
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(&from[sources[i] * bytes], bytes, &expected[targets[i] * bytes]);
      std::copy_n(&from[sources[i] * bytes], bytes, &dense[(i - begin) * bytes]);
    }
    copyPart(to.data(), target, from.data(), source, begin, end, bytes, pick(random, 0, 1));
    streamFence();
    ASSERT_EQ(to, expected) << "round " << round;
    std::vector<uint8_t> packed(dense.size());
    packRegion(packed.data(), from.data(), source, begin, end, bytes);
    ASSERT_EQ(packed, dense) << "round " << round;
    unpackRegion(unpacked.data(), target, dense.data(), begin, end, bytes);
    ASSERT_EQ(unpacked, expected) << "round " << round;
    auto *view = static_cast<const uint8_t *>(viewRegion(from.data(), source, begin, end, bytes, scratch.data()));
    ASSERT_TRUE(std::equal(view, view + (end - begin) * bytes, dense.begin())) << "round " << round;
  }
}

} // namespace
