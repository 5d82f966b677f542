// Repeated sections against their rounds one after the other.
#include "passes/sharding/search/Repeat.h"
#include "RepeatedNetworks.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace msc::search;
using namespace msc::search::test;

namespace {

/// The cheapest cost of equal rounds, by force.
double leastTiedByForce(const RepeatedNetwork &network) {
  double least = infinity;
  forEachChoice(network.network.options, [&](const Choice &choice) {
    RepeatedChoice repeated{choice, {}};
    for (const Section &section : network.sections) {
      Run run{section.rounds, {}};
      for (int32_t variable : section.variables)
        run.options.push_back(choice[variable]);
      repeated.runs.push_back({run});
    }
    least = std::min(least, costOf(network, repeated));
  });
  return least;
}

int64_t roundsOf(const std::vector<Run> &runs) {
  int64_t sum = 0;
  for (const Run &run : runs)
    sum += run.rounds;
  return sum;
}

} // namespace

TEST(RepeatTest, IsAsCheapAsAllRoundsByForce) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    RepeatedNetwork network = randomRepeated(seed, 5, 20000);
    Unrolled unrolled = unroll(network);
    RepeatedSolution solution = solveExactly(network);
    ASSERT_TRUE(solution.summary.optimal);
    ASSERT_PRED2(isNear, solution.summary.cost, leastByForce(unrolled.network)) << "seed " << seed;
    for (size_t s = 0; s < network.sections.size(); ++s)
      ASSERT_EQ(roundsOf(solution.choice.runs[s]), network.sections[s].rounds) << "seed " << seed;
    if (solution.summary.cost < infinity)
      ASSERT_PRED2(isNear, solution.summary.cost, costOf(network, solution.choice)) << "seed " << seed;
  }
}

TEST(RepeatTest, ManyRoundsAreAsCheapAsUnrolled) {
  for (int seed = 0; seed < rounds(100, 400); ++seed) {
    RepeatedNetwork network = randomRepeated(seed, 40, infinity);
    Unrolled unrolled = unroll(network);
    RepeatedSolution solution = solveExactly(network);
    Solution flat = solveExactly(unrolled.network);
    ASSERT_PRED2(isNear, solution.summary.cost, flat.cost) << "seed " << seed;
    if (flat.cost < infinity)
      ASSERT_PRED2(isNear, costOf(network, rolled(network, unrolled, flat.choice)), flat.cost) << "seed " << seed;
  }
}

TEST(RepeatTest, EqualRoundsAreTheCheapestOnesByForce) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    RepeatedNetwork network = randomRepeated(seed, 5, 20000);
    RepeatedSolution solution = solveTied(network);
    ASSERT_PRED2(isNear, solution.summary.cost, leastTiedByForce(network)) << "seed " << seed;
    ASSERT_GE(solution.summary.cost, solveExactly(network).summary.cost - 1e-9) << "seed " << seed;
  }
}

TEST(RepeatTest, OptionsCostWhatForcingThemCosts) {
  for (int seed = 0; seed < rounds(200, 2000); ++seed) {
    RepeatedNetwork network = randomRepeated(seed, 6, 20000);
    Random random(seed);
    const int32_t variable = random.below(static_cast<int32_t>(network.network.options.size()));
    const SolveLimits small{.tableEntries = 2};
    std::vector<double> costs = costsOfOptions(network, variable).costs, limited = costsOfOptions(network, variable, small).costs;
    for (int32_t option = 0; option < network.network.options[variable]; ++option) {
      RepeatedNetwork forced = network, kept = network;
      Table only{{variable}, std::vector<double>(network.network.options[variable], infinity)};
      only.costs[option] = 0;
      std::vector<Table> *place = &forced.network.tables;
      for (Section &section : forced.sections)
        if (std::find(section.variables.begin(), section.variables.end(), variable) != section.variables.end())
          place = &section.within.tables;
      place->push_back(std::move(only));
      keepOptions(kept, variable, {option});
      const double least = leastByForce(unroll(forced).network);
      ASSERT_PRED2(isNear, costs[option], least) << "seed " << seed;
      ASSERT_PRED2(isNear, limited[option], least) << "seed " << seed;
      ASSERT_PRED2(isNear, solveExactly(kept).summary.cost, least) << "seed " << seed;
    }
  }
}

/// Among some options nothing costs more than what the cheapest of them costs in all rounds, and where all rounds have one of them it is
/// the cheapest.
TEST(RepeatTest, SomeOptionsCostNoMoreThanTheCheapestOfThem) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    const RepeatedNetwork network = randomRepeated(seed, 6, 20000);
    Random random(seed);
    const int32_t variable = random.below(static_cast<int32_t>(network.network.options.size()));
    const std::vector<double> costs = costsOfOptions(network, variable).costs;
    std::vector<int32_t> left;
    double least = infinity;
    for (int32_t option = 0; option < static_cast<int32_t>(costs.size()); ++option)
      if (random.below(3) > 0 || (left.empty() && option + 1 == static_cast<int32_t>(costs.size()))) {
        left.push_back(option);
        least = std::min(least, costs[option]);
      }
    RepeatedNetwork kept = network;
    keepOptions(kept, variable, left);
    const RepeatedSolution found = solveExactly(kept);
    const double byForce = leastByForce(unroll(kept).network);
    ASSERT_PRED2(isNear, found.summary.cost, byForce) << "seed " << seed;
    ASSERT_LE(found.summary.cost, least + 1e-9 * std::abs(least)) << "seed " << seed;
    if (!(found.summary.cost < infinity))
      continue;
    int32_t option = found.choice.choice[variable];
    bool isAlike = true;
    for (size_t s = 0; s < network.sections.size(); ++s) {
      const std::vector<int32_t> &own = network.sections[s].variables;
      if (auto at = std::find(own.begin(), own.end(), variable); at != own.end())
        for (const auto &run : found.choice.runs[s])
          isAlike &= run.options[at - own.begin()] == option;
    }
    if (isAlike)
      ASSERT_PRED2(isNear, found.summary.cost, costs[left[option]]) << "seed " << seed;
  }
}

/// Ends apart cost what the same rounds cost, and the cheapest of them nothing less than all rounds by themselves.
TEST(RepeatTest, EndsApartAreRounds) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    RepeatedNetwork network = randomRepeated(seed, 6, 20000);
    EndsApart apart(network);
    Solution solution = solveExactly(apart.network());
    ASSERT_GE(solution.cost, solveExactly(network).summary.cost - 1e-9) << "seed " << seed;
    ASSERT_LE(solution.cost, solveTied(network).summary.cost + 1e-9) << "seed " << seed;
    RepeatedChoice choice = apart.rolled(solution.choice);
    for (size_t s = 0; s < network.sections.size(); ++s)
      ASSERT_EQ(roundsOf(choice.runs[s]), network.sections[s].rounds) << "seed " << seed;
    if (solution.cost < infinity)
      ASSERT_PRED2(isNear, costOf(network, choice), solution.cost) << "seed " << seed;
    Random random(seed);
    Choice any;
    for (int32_t options : apart.network().options)
      any.push_back(random.below(options));
    if (double cost = costOf(apart.network(), any); cost < infinity)
      ASSERT_PRED2(isNear, costOf(network, apart.rolled(any)), cost) << "seed " << seed;
  }
}

TEST(RepeatTest, ParametersBeyondTheLimitsAreUnrolledOrBounded) {
  for (int seed = 0; seed < rounds(200, 1000); ++seed) {
    RepeatedNetwork network = randomRepeated(seed, 6, 20000);
    RepeatedSolution solution = solveExactly(network, {.tableEntries = 2});
    ASSERT_TRUE(solution.summary.optimal);
    ASSERT_PRED2(isNear, solution.summary.cost, leastByForce(unroll(network).network)) << "seed " << seed;
  }
}

TEST(RepeatTest, LayersMayDiffer) {
  // Staying with an option costs 1 a round, changing it 10, and the ends want different options.
  RepeatedNetwork network;
  network.network.options = {2};
  Section section;
  section.variables = {0};
  section.rounds = 1000000;
  section.carried.tables = {{{0, inNextRound(0)}, {1, 10, 10, 1}}};
  section.entry.tables = {{{0}, {0, 100}}};
  section.exit.tables = {{{0}, {100, 0}}};
  network.sections = {section};
  RepeatedSolution solution = solveExactly(network);
  EXPECT_EQ(solution.summary.cost, 999998 + 10);
  ASSERT_EQ(solution.choice.runs[0].size(), 2u);
  EXPECT_EQ(solution.choice.runs[0][0].options, (Choice{0}));
  EXPECT_EQ(solution.choice.runs[0][1].options, (Choice{1}));
  EXPECT_EQ(solveTied(network).summary.cost, 999999 + 100);
}

TEST(RepeatTest, WhatNoRoundAllowsIsInfinite) {
  RepeatedNetwork network;
  network.network.options = {2};
  Section section;
  section.variables = {0};
  section.rounds = 10;
  section.carried.tables = {{{0, inNextRound(0)}, {infinity, infinity, infinity, infinity}}};
  network.sections = {section};
  RepeatedSolution solution = solveExactly(network);
  EXPECT_EQ(solution.summary.cost, infinity);
  EXPECT_EQ(roundsOf(solution.choice.runs[0]), 10);
}
