// Lower bounds of redistributions against what the planner makes.
#include "dialects/dist/Reshard.h"
#include "dialects/dist/reshard/LowerBounds.h"
#include "runtime/machine/MachineFile.h"
#include "test/dialects/dist/AllShardings.h"
#include "test/Campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

using namespace msc;
using namespace msc::dist;
using namespace msc::test;

namespace {

Sharding randomSharding(std::mt19937_64 &random, int64_t devices, size_t dims, bool isPartial) {
  Sharding sharding{.dims = std::vector<std::vector<int32_t>>(dims)};
  for (int64_t left = devices; left > 1;) {
    std::vector<int64_t> divisors;
    for (int64_t d = 2; d <= left; ++d)
      if (left % d == 0)
        divisors.push_back(d);
    sharding.axes.push_back(divisors[random() % divisors.size()]);
    left /= sharding.axes.back();
  }
  std::vector<int32_t> order(sharding.axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (int32_t axis : order)
    if (size_t place = random() % (dims + 2); place < dims)
      sharding.dims[place].push_back(axis);
    else if (place == dims && isPartial)
      sharding.partial.push_back({axis, ReduceKind::Sum});
  std::ranges::sort(sharding.partial, {}, &PartialAxis::axis);
  return sharding.canonical();
}

/// Units of 4 ranks, and of 8 in some, with dearer links between them.
std::vector<MachineModel> machines() {
  std::vector<MachineModel> list{MachineModel::cpuLocal()};
  for (bool isStaged : {false, true})
    for (CollectiveAlgorithm algorithm : {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree, CollectiveAlgorithm::Switch}) {
      MachineModel machine = MachineModel::cpuLocal();
      for (int64_t ranks : {8, 4}) {
        for (LinkCost &cost : machine.levels[0].costs) {
          cost.betaUsPerByte *= 5;
          cost.alphaUs *= 1.5;
          cost.algorithm = algorithm;
        }
        machine.levels[0].isStaged = isStaged;
        machine.levels.insert(machine.levels.begin(), MachineModel::cpuLocal().levels[0]);
        machine.levels[0].ranks = ranks;
        list.push_back(machine);
      }
    }
  return list;
}

/// `sizeOf` draws the size of a dimension; `least`: what bounds tell of prices on the average.
void checkBounds(std::initializer_list<int64_t> counts, const std::function<int64_t(std::mt19937_64 &)> &sizeOf, double least) {
  std::mt19937_64 random(1);
  for (const MachineModel &machine : machines()) {
    double told = 0, questions = 0;
    ReshardPlanner planner(machine);
    LowerBounds bounds(machine);
    for (uint64_t i = 0; i < campaignCases(500, 40); ++i) {
      int64_t devices = counts.begin()[random() % counts.size()];
      std::vector<int64_t> shape(1 + random() % 3);
      for (int64_t &size : shape)
        size = sizeOf(random);
      Sharding from = randomSharding(random, devices, shape.size(), true), to = randomSharding(random, devices, shape.size(), false);
      size_t bytes = random() % 2 ? 4 : 4 << 20; // of what is started and of what is received too little is seen in a sum
      double bound = bounds.us(bounds.numberOf(from), bounds.numberOf(to), bounds.numberOfShape(shape), bytes);
      double us = planner.us(from, to, shape, bytes);
      ASSERT_LE(bound, us * (1 + 1e-9)) << machine.levels.size() << " levels, " << from.str() << " -> " << to.str() << " of "
                                        << testing::PrintToString(shape);
      told += us > 0 ? bound / us : 1;
      ++questions;
    }
    EXPECT_GT(told, least * questions); // they say something
  }
}

TEST(LowerBounds, NoPlanTakesLess) {
  checkBounds({4, 6, 8, 12, 16},
              [](auto &random) { return random() % 2 ? 48 << random() % 6 : 7 + static_cast<int64_t>(random() % 300); }, 0.5);
}

/// Dimensions such as a batch or the heads of an attention have fewer elements than there are devices, or one.
TEST(LowerBounds, NoPlanOfSmallDimensionsTakesLess) {
  checkBounds({4, 6, 8, 12, 16, 24, 32, 64},
              [](auto &random) { return random() % 2 ? 1 << random() % 7 : 1 + static_cast<int64_t>(random() % 64); }, 0.3);
}

/// Where two shardings have no common matrix, what moves among all ranks is bounded by what the largest pieces can have in common: searches
/// on devices with several prime factors would plan millions of such moves.
TEST(LowerBounds, SayMuchWithoutCommonMatrix) {
  const MachineModel machine = MachineModel::cpuLocal();
  LowerBounds bounds(machine);
  double told = 0, questions = 0;
  for (int64_t a : {2, 4, 8, 16})
    for (int64_t b : {3, 5, 9, 15})
      for (double startShare : {1.0, 0.25}) {
        const std::vector<int64_t> shape{720, 1440};
        Sharding from{.axes = {a, 720 / a}, .dims = {{0}, {1}}}, to{.axes = {b, 720 / b}, .dims = {{0}, {1}}};
        ASSERT_FALSE(overCommonMatrix(from, to));
        const double bound = bounds.us(bounds.numberOf(from), bounds.numberOf(to), bounds.numberOfShape(shape), 4096, startShare);
        double us = 0;
        for (const ReshardStep &step : planReshard(from, to, shape, 4096, machine)) {
          const GroupShape group = groupShape(step.groupMatrix, step.groupAxes);
          us += machine.moveUs(step.kind, group, 4096.0 * static_cast<double>(step.receivedElements)) -
                (1 - startShare) * machine.moveUs(step.kind, group, 0);
        }
        ASSERT_LE(bound, us * (1 + 1e-9)) << from.str() << " -> " << to.str();
        told += bound / us;
        ++questions;
      }
  EXPECT_GT(told, 0.5 * questions);
}

/// Five rows in 32 pieces lie alike with two axes exchanged: what moves for nothing is paid when rows are gathered, but only once
/// for a unit.
TEST(LowerBounds, NoPlanThroughEmptyPiecesTakesLess) {
  const MachineModel machine = *readMachine("dgx-h100");
  auto check = [&](const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, size_t bytes) {
    LowerBounds bounds(machine);
    double bound = bounds.us(bounds.numberOf(from), bounds.numberOf(to), bounds.numberOfShape(shape), bytes);
    double us = reshardUs(planReshard(from, to, shape, bytes, machine), bytes, machine);
    ASSERT_LE(bound, us * (1 + 1e-9)) << from.str() << " -> " << to.str() << " of " << testing::PrintToString(shape);
  };
  Sharding from{.axes = {2, 2, 8}, .dims = {{0}, {}}}, to{.axes = {2, 2, 8}, .dims = {{1}, {}}};
  check(from.canonical(), to.canonical(), {5, int64_t(1) << 25}, 4);
  for (int64_t size : {1, 2, 3, 4, 5, 6, 7, 11, 12}) {
    std::vector<Sharding> all = allShardings(32, 1, false);
    std::erase_if(all, [&](const Sharding &sharding) { return sharding.pieces(0) > size; });
    for (const Sharding &a : all)
      for (const Sharding &b : all)
        check(a, b, {size}, size_t(1) << 32);
  }
}

} // namespace
