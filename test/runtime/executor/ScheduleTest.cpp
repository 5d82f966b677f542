// Values of schedules at the steps where something changes.
#include "runtime/executor/Schedule.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace msc;

namespace {

std::vector<double> valuesOf(const std::string &kind, std::vector<double> values, std::vector<uint64_t> steps,
                             uint64_t warmup = 0, uint64_t every = 0) {
  plan::Schedule schedule;
  schedule.set_kind(kind);
  schedule.mutable_values()->Add(values.begin(), values.end());
  schedule.set_warmup(warmup);
  schedule.set_every(every);
  std::vector<double> result;
  for (uint64_t step : steps)
    result.push_back(scheduleValue(schedule, step));
  return result;
}

void expectValues(const std::vector<double> &found, const std::vector<double> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-15 * std::max(1.0, std::abs(expected[i]))) << "step " << i;
}

TEST(Schedule, ConstantsWarmUp) {
  expectValues(valuesOf("constant", {0.5}, {0, 1000}), {0.5, 0.5});
  expectValues(valuesOf("constant", {0.5}, {0, 1, 2, 3, 4, 5}, 5), {0.1, 0.2, 0.3, 0.4, 0.5, 0.5});
}

TEST(Schedule, StepsAndDecaysCountFromTheEndOfTheWarmUp) {
  expectValues(valuesOf("exponential", {1, 0.5, 10}, {0, 9, 10, 25}), {1, 1, 0.5, 0.25});
  expectValues(valuesOf("exponential", {1, 0.5, 10}, {0, 1, 11, 12}, 2), {0.5, 1, 1, 0.5});
  expectValues(valuesOf("decay", {1, 0.25, 10}, {0, 5, 10}), {1, 0.5, 0.25});
}

TEST(Schedule, CosinesEndAtTheirTotal) {
  expectValues(valuesOf("cosine", {1, 0, 8}, {0, 2, 4, 8, 100}), {1, (1 + std::sqrt(0.5)) / 2, 0.5, 0, 0});
  expectValues(valuesOf("cosine", {1, 0.5, 12}, {0, 3, 4, 8, 12}, 4), {0.25, 1, 1, 0.75, 0.5});
}

TEST(Schedule, PolynomialsEndAtTheirTotal) {
  expectValues(valuesOf("polynomial", {1, 0, 10, 1}, {0, 5, 10, 11}), {1, 0.5, 0, 0});
  expectValues(valuesOf("polynomial", {1, 0.2, 10, 2}, {5, 10}), {0.4, 0.2});
}

TEST(Schedule, PiecesBeginAtStepsOfTheRun) {
  expectValues(valuesOf("piecewise", {3, 10, 2, 20, 1}, {0, 9, 10, 19, 20}), {3, 3, 2, 2, 1});
  expectValues(valuesOf("piecewise", {3, 10, 2}, {0, 2, 9, 10}, 3), {1, 3, 3, 2});
}

TEST(Schedule, CorrectionsOfMeans) {
  expectValues(valuesOf("correction", {0.9}, {0, 1}), {10, 1 / 0.19});
  EXPECT_EQ(valuesOf("correction", {0}, {7}), (std::vector<double>{1}));
}

TEST(Schedule, StepsOfTheRunMakeOneStepOfTheSchedule) {
  expectValues(valuesOf("step", {}, {0, 3, 4, 11}, 0, 4), {1, 1, 2, 3});
  expectValues(valuesOf("cycle", {3}, {0, 1, 2, 3, 7}), {0, 1, 2, 0, 1});
}

} // namespace
