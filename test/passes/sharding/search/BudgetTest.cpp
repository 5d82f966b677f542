// Budgets against all assignments that fit.
#include "passes/sharding/search/Budget.h"
#include "Networks.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace msc::search;
using namespace msc::search::test;

namespace {

Budget randomBudget(uint64_t seed, const CostNetwork &network) {
  Random random(seed * 7 + 1);
  Budget budget;
  double least = 0, most = 0;
  for (int32_t options : network.options) {
    std::vector<double> &amounts = budget.amounts.emplace_back();
    if (random.below(5) == 0)
      continue;
    for (int32_t option = 0; option < options; ++option)
      amounts.push_back(random.price());
    least += *std::min_element(amounts.begin(), amounts.end());
    most += *std::max_element(amounts.begin(), amounts.end());
  }
  budget.limit = least + (most - least) * (random.below(12) - 1) / 10.0;
  return budget;
}

struct Forced {
  double cost = infinity, least = infinity;
};

Forced byForce(const CostNetwork &network, const Budget &budget) {
  Forced forced;
  forEachChoice(network.options, [&](const Choice &choice) {
    const double cost = costOf(network, choice), amount = amountOf(budget, choice);
    if (cost < infinity)
      forced.least = std::min(forced.least, amount);
    if (amount <= budget.limit)
      forced.cost = std::min(forced.cost, cost);
  });
  return forced;
}

} // namespace

TEST(BudgetTest, IsKeptAndTheGapHolds) {
  int fitting = 0, optimal = 0;
  double gaps = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 3000);
    Budget budget = randomBudget(seed, network);
    BudgetSolution solution = solveWithin(network, budget);
    Forced forced = byForce(network, budget);
    ASSERT_EQ(solution.fits, forced.cost < infinity) << "seed " << seed;
    if (forced.least < infinity)
      ASSERT_PRED2(isNear, solution.least, forced.least) << "seed " << seed;
    if (!solution.fits)
      continue;
    ASSERT_LE(solution.amount, budget.limit * (1 + 1e-9)) << "seed " << seed;
    ASSERT_EQ(solution.solution.cost, costOf(network, solution.solution.choice)) << "seed " << seed;
    ASSERT_LE(solution.solution.bound, forced.cost + 1e-9) << "seed " << seed;
    ASSERT_GE(solution.solution.cost, forced.cost - 1e-9) << "seed " << seed;
    ASSERT_LE(solution.gap(), 1.001e-3) << "seed " << seed;
    ++fitting;
    optimal += isNear(solution.solution.cost, forced.cost);
    gaps += solution.gap();
  }
  std::printf("%d fit, %d of them optimal, mean certified gap %.3g %%\n", fitting, optimal, 100 * gaps / fitting);
  EXPECT_GT(optimal, 0.9 * fitting);
}

TEST(BudgetTest, WhereWorkRunsOutNothingWrongIsProven) {
  int proven = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 1000);
    const Budget budget = randomBudget(seed, network);
    const Forced forced = byForce(network, budget);
    for (int64_t operations : {100, 30'000, 300'000})
      for (size_t best : {0, 1, 200}) {
        const BudgetSolution found =
            solveWithin(network, budget, {.solve = {.tableEntries = 4, .operations = operations}, .best = best, .gap = 0, .branchOperations = 1 << 22});
        if (!found.fits)
          continue;
        ASSERT_LE(found.solution.bound, forced.cost + 1e-9) << "seed " << seed << ", " << operations << ", " << best;
        if (found.solution.optimal)
          ASSERT_PRED2(isNear, found.solution.cost, forced.cost) << "seed " << seed << ", " << operations << ", " << best;
        proven += found.solution.optimal;
      }
  }
  EXPECT_GT(proven, 100);
}

TEST(BudgetTest, SaysWhatIsNeededAtLeast) {
  CostNetwork network{{2, 2}, {{{0}, {0, 5}}, {{1}, {0, 7}}, {{0, 1}, {0, 0, 0, infinity}}}, {}, 0};
  Budget budget{{{10, 4}, {20, 6}}, 5};
  BudgetSolution solution = solveWithin(network, budget);
  EXPECT_FALSE(solution.fits);
  EXPECT_EQ(solution.least, 16); // both small ones together are not allowed
  EXPECT_EQ(solution.solution.choice, (Choice{0, 1}));
}

TEST(BudgetTest, EnoughBudgetChangesNothing) {
  CostNetwork network = randomNetwork(4);
  Budget budget;
  for (int32_t options : network.options)
    budget.amounts.emplace_back(options, 1);
  budget.limit = double(network.options.size());
  BudgetSolution solution = solveWithin(network, budget);
  EXPECT_TRUE(solution.fits);
  EXPECT_EQ(solution.solution.cost, solveExactly(network).cost);
  EXPECT_EQ(solution.gap(), 0);
}

namespace {

/// Layers that are fast and large or slow and small; changing between them costs.
RepeatedNetwork layers(int64_t rounds) {
  RepeatedNetwork network;
  network.network.options = {2};
  Section section;
  section.variables = {0};
  section.rounds = rounds;
  section.within.tables = {{{0}, {10, 15}}};
  section.carried.tables = {{{0, inNextRound(0)}, {0, 3, 3, 0}}};
  network.sections = {section};
  return network;
}

} // namespace

TEST(BudgetTest, SomeLayersSaveWhatAllNeed) {
  for (int64_t rounds : {20, 100000}) {
    Budget budget{{{8, 2}}, 5.0 * double(rounds)};
    RepeatedBudgetSolution solution = solveWithin(layers(rounds), budget);
    EXPECT_TRUE(solution.summary.fits);
    EXPECT_LE(solution.summary.amount, budget.limit);
    EXPECT_EQ(solution.summary.solution.cost, 12.5 * double(rounds) + 3); // half of them, next to each other
    EXPECT_LT(solution.summary.gap(), 0.013);
    EXPECT_EQ(solution.choice.runs[0].size(), 2u);
  }
}
