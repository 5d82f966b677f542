// Clocks of ranks that differ are set against each other by barriers.
#include "runtime/executor/Timeline.h"

#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/executor/Executor.h"

#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace msc;

namespace {

TEST(Timeline, OneBarrierBoundsTheOffsetOnBothSides) {
  // The first rank comes at 100 and leaves at 140. The other one's clock is 1000 ahead; it comes at 120 and leaves at 150.
  std::vector<int64_t> first{100, 140}, other{1120, 1150};
  ClockOffset offset = offsetBetween(other, first);
  // Between 1120 - 140 and 1150 - 100.
  EXPECT_EQ(offset.ahead, 1015);
  EXPECT_EQ(offset.error, 35);
}

TEST(Timeline, TheQuickestBarrierDecides) {
  std::vector<int64_t> first{0, 1000, 2000, 2010, 3000, 9000}, other{-500, 500, 1500, 1510, 2500, 8500};
  ClockOffset offset = offsetBetween(other, first);
  EXPECT_EQ(offset.ahead, -500);
  EXPECT_EQ(offset.error, 10);
}

TEST(Timeline, TheOffsetIsWithinItsErrorWhateverTheDelays) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  for (int run = 0; run < 2000; ++run) {
    int64_t skew = upTo(2'000'000'000) - 1'000'000'000, now = 0, quickest = 1'000'000'000;
    std::vector<int64_t> first, other;
    for (int64_t meeting = upTo(9); meeting >= 0; --meeting) {
      int64_t a = now + upTo(1000), b = now + upTo(1000), met = std::max(a, b);
      int64_t leftA = met + upTo(500), leftB = met + upTo(500);
      first.insert(first.end(), {a, leftA});
      other.insert(other.end(), {b + skew, leftB + skew});
      quickest = std::min(quickest, leftA - a + leftB - b);
      now = std::max(leftA, leftB);
    }
    ClockOffset offset = offsetBetween(other, first);
    EXPECT_LE(std::abs(offset.ahead - skew), offset.error) << "run " << run;
    EXPECT_LE(offset.error, (quickest + 1) / 2) << "run " << run;
  }
}

TEST(Timeline, ClocksOfRanksThatMeetAreSetAgainstEachOther) {
  constexpr int64_t ranks = 4;
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::vector<int64_t>> met(ranks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto world = hub->world(rank);
      comm::Group *all = *world->group({0, 1, 2, 3});
      met[rank] = *meetOften(*all, 16, [&] { return steadyNanoseconds() + rank * 5'000'000'000; });
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(met[rank].size(), 32u);
    ClockOffset offset = offsetBetween(met[rank], met[0]);
    EXPECT_LE(std::abs(offset.ahead - rank * 5'000'000'000), offset.error);
    EXPECT_LT(offset.error, 1'000'000'000);
  }
}

} // namespace
