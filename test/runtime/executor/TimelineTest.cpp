// Clocks of ranks that differ are set against each other by barriers; the file of ranks on several hosts.
#include "runtime/executor/Timeline.h"
#include "test/runtime/executor/OnRanks.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

using namespace msc;
using namespace msc::test;

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

/// Ranks that are threads and say that each of them is on a host of its own.
class OneRankPerHost : public comm::World {
public:
  explicit OneRankPerHost(comm::World &world) : world(world) {}
  int64_t rank() const override { return world.rank(); }
  int64_t size() const override { return world.size(); }
  int64_t localSize() const override { return 1; }
  int64_t localRank() const override { return 0; }
  const char *transport() const override { return world.transport(); }
  Result<comm::Group *> group(const std::vector<int64_t> &ranks) override { return world.group(ranks); }
  void abort(const Error &error) override { world.abort(error); }
  std::optional<Error> firstFailure() override { return world.firstFailure(); }
  bool takeReport() override { return world.takeReport(); }
  void enterStep(uint64_t epoch, uint64_t step) override { world.enterStep(epoch, step); }
  void setTimeout(std::chrono::milliseconds limit) override { world.setTimeout(limit); }
  std::chrono::milliseconds timeout() const override { return world.timeout(); }

private:
  comm::World &world;
};

TEST(Timeline, OfSeveralHostsSaysHowExactlyClocksAreAligned) {
  PlanBuilder builder(3, plan::Program::PREDICT);
  uint32_t x = builder.buffer("x", {3, 4}, builder.cut(2, 0)), y = builder.buffer("y", {3, 4}, builder.cut(2, -1));
  builder.fill("x", x, 1);
  builder.collective("gather", plan::Collective::ALL_GATHER, x, y);
  std::string path = (std::filesystem::temp_directory_path() / ("timeline-" + std::to_string(getpid()))).string();
  onAllRanks(builder, [&](Bound &rank) {
    OneRankPerHost world(rank.world);
    auto timeline = Timeline::create(rank.index, *builder.program, world, {path, 2, 2}, 5);
    ASSERT_TRUE(timeline);
    for (uint64_t step = 1; !(*timeline)->isComplete(); ++step) {
      ASSERT_EQ((*timeline)->startStep(1, step), step == 2 || step == 3);
      if (step == 1)
        continue;
      ASSERT_TRUE(rank.executor.runStep((*timeline)->startPlan()));
      (*timeline)->endPlan();
    }
    Status written;
    ASSERT_TRUE((*timeline)->write(**world.group({0, 1, 2}), written));
    ASSERT_TRUE(written);
  });
  std::ifstream file(path);
  auto events = nlohmann::json::parse(file)["traceEvents"];
  std::filesystem::remove(path);
  std::vector<int> labels(3), steps(3), wholes(3);
  double earliest = 1e9;
  for (const auto &event : events) {
    int64_t rank = event["pid"];
    if (event["name"] == "process_labels") {
      ++labels[rank];
      EXPECT_EQ(event["args"]["labels"].get<std::string>().rfind("clock within ", 0), 0u);
    }
    if (event["ph"] != "X")
      continue;
    ++(event["tid"] == 2 ? wholes : steps)[rank];
    earliest = std::min(earliest, event["ts"].get<double>());
  }
  // Rank 0 has the clock that all others are set against.
  EXPECT_EQ(labels, (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(steps, (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(wholes, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(earliest, 0);
}

} // namespace
