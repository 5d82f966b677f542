// The heuristic: its costs are true, chains are exact, and how far it is from the optimum.
#include "passes/sharding/search/Sweep.h"
#include "Networks.h"
#include "passes/sharding/search/Repeat.h"

#include "Transformer.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace msc::search;
using namespace msc::search::test;

TEST(SweepTest, IsNeverBetterThanTheOptimumAndOftenEqual) {
  int equal = 0, all = 0;
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    CostNetwork network = randomNetwork(seed);
    Solution found = sweep(network), best = solveExactly(network);
    ASSERT_EQ(found.cost, costOf(network, found.choice)) << "seed " << seed;
    ASSERT_GE(found.cost, best.cost - 1e-9) << "seed " << seed;
    ASSERT_EQ(found.choice, sweep(network).choice);
    if (best.cost < infinity) {
      ++all;
      equal += isNear(found.cost, best.cost);
    }
  }
  std::printf("%d of %d optimal\n", equal, all);
  EXPECT_GT(equal, all / 2);
}

TEST(SweepTest, ChainsAreExact) {
  for (int seed = 0; seed < 100; ++seed) {
    Random random(seed);
    CostNetwork network;
    network.options = randomOptions(random, 12, 5, infinity);
    for (int32_t variable = 1; variable < 12; ++variable) {
      network.tables.push_back({{variable - 1, variable}, {}});
      for (int32_t i = network.options[variable - 1] * network.options[variable]; i > 0; --i)
        network.tables.back().costs.push_back(random.price());
    }
    ASSERT_PRED2(isNear, sweep(network).cost, solveExactly(network).cost) << "seed " << seed;
  }
}

TEST(SweepTest, LeavesWhatIsImpossible) {
  const CostNetwork network{{2, 2}, {{{0}, {infinity, 1}}, {{0, 1}, {0, infinity, infinity, 0}}}, {}, 0};
  EXPECT_EQ(sweepFrom(network, {0, 0}).cost, 1);
}

TEST(SweepTest, IsNearTheOptimumOfATransformer) {
  CostNetwork network = unroll(SyntheticTransformer(4, 3).repeated).network;
  const double found = sweep(network).cost, best = solveExactly(network).cost;
  std::printf("%.3g %% above the optimum\n", 100 * (found / best - 1));
  EXPECT_LT(found, 1.2 * best);
}
