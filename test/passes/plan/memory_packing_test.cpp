#include "passes/plan/MemoryPacking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
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
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return std::pair(blocks[a].bytes, blocks[a].last) > std::pair(blocks[b].bytes, blocks[b].last);
  });
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

/// As the activations of layers, whose order in time is not that of their numbers.
TEST(MemoryPacking, BlocksOfOneSizeNeedWhatIsLiveAtOnce) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<MemoryBlock> blocks(1 + random() % 80);
    for (MemoryBlock &block : blocks) {
      block.bytes = 640;
      block.first = static_cast<int64_t>(random() % 100);
      block.last = block.first + random() % 40;
    }
    EXPECT_EQ(packMemory(blocks).bytes, memoryLowerBound(blocks)) << "round " << round;
  }
}

/// Aligned, in the arena, and apart where both are live.
static void expectValid(const std::vector<MemoryBlock> &blocks, const Packing &packing, int round) {
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
    expectValid(blocks, packing, round);
    EXPECT_LE(packing.bytes, 2 * memoryLowerBound(blocks)); // first fit by decreasing size stays well below
  }
}

/// Blocks that fill an arena without gaps: rectangles that were cut again and again.
static std::vector<MemoryBlock> cutBlocks(std::mt19937 &random, int64_t bytes, int64_t steps, int cuts) {
  struct Piece {
    int64_t from, to, first, last;
  };
  std::vector<Piece> pieces{{0, bytes, 0, steps - 1}};
  for (int cut = 0; cut < cuts; ++cut) {
    const size_t at = random() % pieces.size();
    Piece &piece = pieces[at], rest = piece;
    if (random() % 2 && piece.to - piece.from > 64)
      piece.to = rest.from = piece.from + 64 * (1 + random() % ((piece.to - piece.from) / 64 - 1));
    else if (piece.last > piece.first)
      rest.first = (piece.last = piece.first + random() % (piece.last - piece.first)) + 1;
    else
      continue;
    pieces.push_back(rest);
  }
  std::vector<MemoryBlock> blocks;
  for (const Piece &piece : pieces)
    blocks.push_back({piece.to - piece.from, piece.first, piece.last});
  std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

TEST(MemoryPacking, OtherOrdersFindWhatFits) {
  std::mt19937 random(23);
  int perfect = 0, firstPerfect = 0;
  double first = 0, tight = 0;
  constexpr int count = 200;
  for (int round = 0; round < count; ++round) {
    const std::vector<MemoryBlock> blocks = cutBlocks(random, 64 * 200, 40, 5 + static_cast<int>(random() % 40));
    const int64_t least = memoryLowerBound(blocks);
    ASSERT_EQ(least, 64 * 200);
    const Packing plain = packMemory(blocks), packing = packTightly(blocks);
    expectValid(blocks, packing, round);
    EXPECT_LE(packing.bytes, plain.bytes);
    firstPerfect += plain.bytes == least;
    perfect += packing.bytes == least;
    first += static_cast<double>(plain.bytes) / static_cast<double>(least) / count;
    tight += static_cast<double>(packing.bytes) / static_cast<double>(least) / count;
  }
  std::printf("mean above the least: first fit %.1f %%, other orders %.1f %%; none above: %d and %d of %d\n", 100 * (first - 1), 100 * (tight - 1),
              firstPerfect, perfect, count);
  EXPECT_LT(tight - 1, 0.5 * (first - 1));
}

TEST(MemoryPacking, EnoughEndsTheSearch) {
  std::mt19937 random(29);
  for (int round = 0; round < 50; ++round) {
    const std::vector<MemoryBlock> blocks = cutBlocks(random, 64 * 200, 40, 40);
    const int64_t least = packTightly(blocks).bytes, plain = packMemory(blocks).bytes;
    for (int64_t enough : {least, (least + plain) / 2, plain}) { // one sequence of orders, whatever is enough
      const Packing packing = packTightly(blocks, enough);
      expectValid(blocks, packing, round);
      EXPECT_LE(packing.bytes, enough);
    }
    EXPECT_EQ(packTightly(blocks).offsets, packTightly(blocks).offsets);
  }
}
