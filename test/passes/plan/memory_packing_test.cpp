#include "passes/plan/MemoryPacking.h"

#include <gtest/gtest.h>

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
