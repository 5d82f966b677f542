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

TEST(MeasureCollectives, CoversEveryKindAndGroupAlikeOnAllRanks) {
  constexpr int64_t ranks = 4;
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::vector<CollectiveSample>> all(ranks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto world = hub->world(rank);
      Result<std::vector<CollectiveSample>> samples = measureCollectives(*world, 0.3);
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
  Result<MachineModel> machine = calibrateThreads(2, 0.5);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->name, "threads-2");
  EXPECT_EQ(machine->source, "measured");
  std::string path = testing::TempDir() + "/measured.json";
  std::FILE *file = std::fopen(path.c_str(), "w");
  std::fputs(machineJson(*machine).c_str(), file);
  std::fclose(file);
  Result<MachineModel> read = readMachine(path);
  std::remove(path.c_str());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(machineJson(*read), machineJson(*machine));
}

} // namespace
