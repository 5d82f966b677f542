#include "passes/plan/MemoryPacking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace msc;
using namespace msc::passes;

static bool overlap(int64_t a, int64_t aEnd, int64_t b, int64_t bEnd) { return a < bEnd && b < aEnd; }

TEST(MemoryPacking, DisjointLiveRangesShareMemory) {
  Packing packing = packMemory({{1000, 0, 1}, {1000, 2, 3}, {1000, 4, 9}});
  EXPECT_EQ(packing.bytes, 1024);
  EXPECT_EQ(packing.offsets, (std::vector<int64_t>{0, 0, 0}));
}

TEST(MemoryPacking, GapBetweenNeighboursIsUsed) {
  // The block of steps 0-1 leaves a hole below the long one; the small late block fits into it.
  Packing packing = packMemory({{640, 0, 1}, {512, 0, 9}, {64, 5, 6}});
  EXPECT_EQ(packing.offsets[2], 0);
  EXPECT_EQ(packing.bytes, 640 + 512);
}

/// Goes through all blocks that are placed.
static std::vector<int64_t> firstFit(const std::vector<MemoryBlock> &blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  auto sizeOf = [](const MemoryBlock &block) { return (block.bytes + 63) / 64 * 64; };
  std::vector<int64_t> offsets(blocks.size());
  std::vector<size_t> placed;
  for (size_t index : order) {
    const MemoryBlock &block = blocks[index];
    auto isFree = [&](int64_t at) {
      return std::ranges::none_of(placed, [&](size_t other) {
        return overlap(block.first, block.last + 1, blocks[other].first, blocks[other].last + 1) &&
               overlap(at, at + sizeOf(block), offsets[other], offsets[other] + sizeOf(blocks[other]));
      });
    };
    while (!isFree(offsets[index]))
      offsets[index] += 64;
    placed.push_back(index);
  }
  return offsets;
}

TEST(MemoryPacking, EachBlockTakesTheLowestOffsetThatIsFree) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<MemoryBlock> blocks(1 + random() % 60);
    const uint32_t steps = 1 + random() % 100, length = 1 + random() % 100;
    for (MemoryBlock &block : blocks) {
      block.bytes = random() % 8 == 0 ? 0 : random() % 600;
      block.first = static_cast<int64_t>(random() % steps) - 5;
      block.last = block.first + random() % length;
    }
    EXPECT_EQ(packMemory(blocks).offsets, firstFit(blocks)) << "round " << round;
  }
}

TEST(MemoryPacking, LiveBlocksNeverOverlapAndOffsetsAreAligned) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<MemoryBlock> blocks(1 + random() % 40);
    for (MemoryBlock &block : blocks) {
      block.bytes = random() % 5000;
      block.first = random() % 30;
      block.last = block.first + random() % 10;
    }
    Packing packing = packMemory(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(packing.offsets[i] % 64, 0);
      EXPECT_LE(packing.offsets[i] + blocks[i].bytes, packing.bytes);
      for (size_t j = 0; j < i; ++j)
        if (overlap(blocks[i].first, blocks[i].last + 1, blocks[j].first, blocks[j].last + 1))
          EXPECT_FALSE(overlap(packing.offsets[i], packing.offsets[i] + blocks[i].bytes, packing.offsets[j],
                               packing.offsets[j] + blocks[j].bytes))
              << "round " << round;
    }
    EXPECT_GE(packing.bytes, memoryLowerBound(blocks));
    EXPECT_LE(packing.bytes, 2 * memoryLowerBound(blocks)); // first fit by decreasing size stays well below
  }
}
