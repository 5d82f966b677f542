#include "runtime/calibrate/Bounds.h"
#include "runtime/calibrate/Calibrate.h"
#include "runtime/calibrate/Fit.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/machine/MachineFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

using namespace msc;

namespace {

/// What `truth` would measure, every fifth sample disturbed.
std::vector<CollectiveSample> samplesOf(const LinkCost &truth, std::mt19937 &random, bool disturbed) {
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  std::vector<CollectiveSample> samples;
  for (int64_t group : {2, 4, 8})
    for (int64_t bytes = 1 << 10; bytes <= 1 << 26; bytes *= 4)
      samples.push_back({MoveKind::AllGather, group, bytes,
                         truth.us(group, static_cast<double>(bytes)) * noise(random) *
                             (disturbed && samples.size() % 5 == 4 ? 4 : 1)});
  return samples;
}

/// Median of |predicted / true - 1|.
double medianError(const LinkCost &fit, const LinkCost &truth) {
  std::vector<double> errors;
  for (int64_t group : {2, 4, 8})
    for (double bytes = 1 << 10; bytes <= 1 << 26; bytes *= 2)
      errors.push_back(std::abs(fit.us(group, bytes) / truth.us(group, bytes) - 1));
  std::nth_element(errors.begin(), errors.begin() + static_cast<ptrdiff_t>(errors.size() / 2), errors.end());
  return errors[errors.size() / 2];
}

TEST(FitLinkCost, FindsTheModelBehindDisturbedSamples) {
  std::mt19937 random(1);
  const LinkCost truths[] = {{.alphaUs = 4, .hopUs = 0.5, .betaUsPerByte = 1e-4},
                             {.alphaUs = 2, .hopUs = 0, .betaUsPerByte = 5e-5, .ownShare = 1},
                             {.alphaUs = 8, .hopUs = 2, .betaUsPerByte = 6e-5, .ownShare = 0.5, .cacheBytes = 2 << 20,
                              .beyondCacheUsPerByte = 2e-4}};
  for (const LinkCost &truth : truths)
    for (bool disturbed : {false, true})
      EXPECT_LT(medianError(fitLinkCost(samplesOf(truth, random, disturbed)), truth), 0.05);
}

TEST(FitLinkCost, NeverFallsWithSizeOrGroup) {
  std::mt19937 random(2);
  for (int round = 0; round < 10; ++round) {
    std::vector<CollectiveSample> samples = samplesOf({.alphaUs = 4, .betaUsPerByte = 1e-4}, random, false);
    for (CollectiveSample &sample : samples) // what a very busy machine would measure
      sample.us *= std::exp(std::normal_distribution<double>(0, 1)(random));
    LinkCost cost = fitLinkCost(samples);
    for (double bytes = 1; bytes < 1e9; bytes *= 3)
      EXPECT_LE(cost.us(4, bytes), cost.us(4, 3 * bytes));
    for (int64_t group = 2; group < 16; ++group)
      EXPECT_LE(cost.us(group, 0), cost.us(group + 1, 0));
  }
}

TEST(FitLinkCost, FindsALatencyInNoise) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    // A busy machine leaves the time for few sizes, and single samples that took many times as long.
    std::vector<CollectiveSample> samples;
    double shortest = INFINITY;
    for (int64_t bytes = 512; bytes <= 512 << 2 * (round % 5); bytes *= 4) {
      double us = (4 + 1e-4 * static_cast<double>(bytes)) * std::exp(std::normal_distribution<double>(0, 1)(random));
      samples.push_back({MoveKind::AlltoAll, 2, bytes, us});
      shortest = std::min(shortest, us);
    }
    EXPECT_GE(fitLinkCost(samples).us(2, 0), 0.499 * shortest); // rounded to six digits
  }
}

TEST(FitLinkCost, TakesOneSample) {
  LinkCost cost = fitLinkCost({{MoveKind::AllReduce, 2, 1024, 10}});
  EXPECT_NEAR(cost.us(2, 1024), 10, 1e-3);
}

/// The first property that costs break, or empty.
std::string brokenBound(const std::array<LinkCost, moveKinds> &costs) {
  constexpr double rounding = 1 + 1e-9;
  for (int64_t group : {2, 3, 4, 6, 8, 16, 60, 64, 1000, 1024})
    for (double tensor = 1; tensor < 1e12; tensor *= 1.7) {
      double part = tensor * static_cast<double>(group - 1) / static_cast<double>(group);
      auto us = [&](MoveKind kind, double bytes) { return costs[static_cast<size_t>(kind)].us(group, bytes); };
      double scatter = us(MoveKind::ReduceScatter, part), gather = us(MoveKind::AllGather, part);
      double reduce = us(MoveKind::AllReduce, 2 * part);
      std::string where = " of " + std::to_string(tensor) + " bytes among " + std::to_string(group);
      if (scatter > reduce * rounding)
        return "ReduceScatter > AllReduce" + where;
      if (reduce > (scatter + gather) * rounding)
        return "AllReduce > ReduceScatter + AllGather" + where;
      if (us(MoveKind::AlltoAll, part / static_cast<double>(group)) > gather * rounding)
        return "AlltoAll > AllGather" + where;
    }
  return "";
}

TEST(KeepBounds, HoldsForWhateverWasMeasured) {
  std::mt19937 random(4);
  std::lognormal_distribution<double> spread(0, 1.5);
  int broken = 0;
  for (int round = 0; round < 200; ++round) {
    std::array<LinkCost, moveKinds> costs;
    for (LinkCost &cost : costs) {
      cost = {.alphaUs = spread(random), .hopUs = 0.3 * spread(random), .betaUsPerByte = 1e-4 * spread(random),
              .ownShare = 0.25 * static_cast<double>(random() % 9)};
      if (random() % 2) {
        cost.cacheBytes = static_cast<double>(int64_t{1} << (14 + random() % 11));
        cost.beyondCacheUsPerByte = 1e-4 * spread(random);
      }
      if (random() % 4 == 0)
        cost.betaUsPerByte = 0;
    }
    broken += !brokenBound(costs).empty();
    keepBounds(costs);
    ASSERT_EQ(brokenBound(costs), "") << "round " << round;
  }
  EXPECT_GT(broken, 100);
}

TEST(KeepBounds, LeavesWhatHolds) {
  const auto &kept = MachineModel::cpuLocal().levels[0].costs;
  std::array<LinkCost, moveKinds> costs = kept;
  keepBounds(costs);
  for (size_t kind = 1; kind < moveKinds; ++kind)
    for (double bytes = 1; bytes < 1e9; bytes *= 3)
      EXPECT_EQ(costs[kind].us(8, bytes), kept[kind].us(8, bytes)) << moveKindName(static_cast<MoveKind>(kind));
}

TEST(KeepBounds, AReduceScatterThatStartsSlowlyTakesTheStartOfAnAllReduce) {
  std::array<LinkCost, moveKinds> costs;
  costs.fill({.alphaUs = 2, .hopUs = 0.5, .betaUsPerByte = 1e-4});
  costs[static_cast<size_t>(MoveKind::AllReduce)] = {.alphaUs = 1.47, .hopUs = 0.465, .betaUsPerByte = 1e-4};
  costs[static_cast<size_t>(MoveKind::ReduceScatter)] = {.alphaUs = 1.8, .hopUs = 0.597, .betaUsPerByte = 1.1e-4};
  keepBounds(costs);
  const LinkCost &scatter = costs[static_cast<size_t>(MoveKind::ReduceScatter)];
  EXPECT_EQ(scatter.alphaUs, 1.47);
  EXPECT_EQ(scatter.hopUs, 0.465);
  EXPECT_EQ(scatter.betaUsPerByte, 1.1e-4); // of half the bytes
}

TEST(MeasureCollectives, CoversEveryKindAndGroupAlikeOnAllRanks) {
  constexpr int64_t ranks = 4;
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::vector<CollectiveSample>> all(ranks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto world = hub->world(rank);
      Result<std::vector<CollectiveSample>> samples = measureCollectives(*world, consecutiveGroups(ranks), 0.3);
      ASSERT_TRUE(samples) << samples.error().message;
      all[rank] = *samples;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t kind = 1; kind < moveKinds; ++kind)
    for (int64_t size : {2, 4})
      EXPECT_TRUE(std::any_of(all[0].begin(), all[0].end(), [&](const CollectiveSample &sample) {
        return static_cast<size_t>(sample.kind) == kind && sample.groupSize == size && sample.us > 0;
      })) << moveKindName(static_cast<MoveKind>(kind)) << " among " << size;
  for (const auto &samples : all) {
    ASSERT_EQ(samples.size(), all[0].size());
    for (size_t i = 0; i < samples.size(); ++i)
      EXPECT_EQ(samples[i].us, all[0][i].us);
  }
  // Closed forms for a tensor of 1 KiB in groups of 4.
  auto bytesOf = [&](MoveKind kind) {
    return std::find_if(all[0].begin(), all[0].end(), [&](const CollectiveSample &sample) {
             return sample.kind == kind && sample.groupSize == 4;
           })->bytes;
  };
  EXPECT_EQ(bytesOf(MoveKind::AllReduce), 2 * 768);
  EXPECT_EQ(bytesOf(MoveKind::ReduceScatter), 768);
  EXPECT_EQ(bytesOf(MoveKind::AllGather), 768);
  EXPECT_EQ(bytesOf(MoveKind::AlltoAll), 192);
  EXPECT_EQ(bytesOf(MoveKind::CollectivePermute), 1024);
}

TEST(MeasuredGroupSizes, AreDivisorsAtMostFour) {
  EXPECT_EQ(measuredGroupSizes(2), (std::vector<int64_t>{2}));
  EXPECT_EQ(measuredGroupSizes(7), (std::vector<int64_t>{7}));
  EXPECT_EQ(measuredGroupSizes(8), (std::vector<int64_t>{2, 4, 8}));
  std::vector<int64_t> sizes = measuredGroupSizes(64);
  EXPECT_EQ(sizes.size(), 4u);
  EXPECT_EQ(sizes.front(), 2);
  EXPECT_EQ(sizes.back(), 64);
}

TEST(CalibrateThreads, GivesAModelThatAFileHolds) {
  Result<Calibration> calibration = calibrateThreads(2, 0.5);
  ASSERT_TRUE(calibration) << calibration.error().message;
  const MachineModel &machine = calibration->machine;
  EXPECT_EQ(machine.name, "threads-2");
  EXPECT_EQ(machine.source, "measured");
  EXPECT_GE(calibration->spread, 0);
  std::string path = testing::TempDir() + "/measured.json";
  std::FILE *file = std::fopen(path.c_str(), "w");
  std::fputs(machineJson(machine).c_str(), file);
  std::fclose(file);
  Result<MachineModel> read = readMachine(path);
  std::remove(path.c_str());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(machineJson(*read), machineJson(machine));
}

/// The middle half of runs that take 80 to 120 us lies 20 % apart, that of equal ones not at all.
TEST(Stopwatch, KnowsHowFarRepetitionsLieApart) {
  auto hub = *comm::ThreadHub::create(1);
  std::unique_ptr<comm::World> world = hub->world(0);
  comm::Group *alone = *world->group({0});
  double now = 0;
  Stopwatch watch(*alone, 1, [&] { return now; });
  for (double step : {0.0, 200.0}) {
    int run = 0;
    // Above what is timed as one batch; two runs warm up.
    Result<double> median = watch.median([&] { now += 1000 + step * (run++ % 5 - 2) / 2; return Status(); }, 1e5);
    ASSERT_TRUE(median) << median.error().message;
    EXPECT_DOUBLE_EQ(*median, 1000);
  }
  EXPECT_EQ(watch.spreads(), (std::vector<double>{0, 0.2}));
}

} // namespace
