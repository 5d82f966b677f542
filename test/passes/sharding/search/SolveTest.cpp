// The exact solver against going through all assignments.
#include "Networks.h"
#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace msc::search;
using namespace msc::search::test;

namespace {

/// Cheapest cost under every option of a variable, by force.
std::vector<double> costsByForce(const CostNetwork &network, int32_t variable) {
  std::vector<double> costs(network.options[variable], infinity);
  forEachChoice(network.options, [&](const Choice &choice) {
    double &cost = costs[choice[variable]];
    cost = std::min(cost, costOf(network, choice));
  });
  return costs;
}

/// The same network with other numbers for variables, options, tables and items.
CostNetwork renamed(const CostNetwork &network, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> number(network.options.size());
  for (size_t i = 0; i < number.size(); ++i)
    number[i] = static_cast<int32_t>(i);
  random.shuffle(number);
  CostNetwork other = network;
  for (size_t i = 0; i < number.size(); ++i)
    other.options[number[i]] = network.options[i];
  for (Table &table : other.tables)
    for (int32_t &variable : table.scope)
      variable = number[variable];
  for (SharedCost &shared : other.shared) {
    shared.producer = number[shared.producer];
    for (SharedCost::Reader &reader : shared.readers)
      reader.variable = number[reader.variable];
    random.shuffle(shared.readers);
  }
  random.shuffle(other.tables);
  random.shuffle(other.shared);
  return other;
}

} // namespace

TEST(SolveTest, FindsTheCheapestAssignment) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    CostNetwork network = randomNetwork(seed, seed % 50 ? 20000 : 1e6);
    Solution solution = solveExactly(network);
    ASSERT_TRUE(solution.optimal);
    ASSERT_EQ(solution.choice.size(), network.options.size());
    ASSERT_EQ(solution.cost, costOf(network, solution.choice)) << "seed " << seed;
    ASSERT_PRED2(isNear, solution.cost, leastByForce(network)) << "seed " << seed;
  }
}

TEST(SolveTest, TiesAndOrderOfLinesChangeNothing) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    CostNetwork network = randomNetwork(seed);
    Solution first = solveExactly(network), again = solveExactly(network);
    ASSERT_EQ(first.choice, again.choice);
    ASSERT_PRED2(isNear, first.cost, solveExactly(renamed(network, seed)).cost) << "seed " << seed;
  }
}

TEST(SolveTest, CostsOfOptionsAreThoseOfTheWholeNetwork) {
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    const int32_t variable = seed % static_cast<int32_t>(network.options.size());
    std::vector<double> costs = costsOfOptions(network, variable).costs, expected = costsByForce(network, variable);
    ASSERT_EQ(costs.size(), expected.size());
    for (size_t option = 0; option < costs.size(); ++option)
      ASSERT_PRED2(isNear, costs[option], expected[option]) << "seed " << seed;
  }
}

TEST(SolveTest, OneEliminationSaysWhatAllOptionsOfAllVariablesCost) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    network.shared.clear();
    std::vector<int32_t> variables(network.options.size());
    std::iota(variables.begin(), variables.end(), 0);
    Workspace workspace;
    Elimination elimination(workspace, lower(workspace, network), all({}));
    ASSERT_TRUE(elimination.isExact());
    const std::vector<std::vector<double>> costs = elimination.costsOfAll(variables);
    for (int32_t variable : variables) {
      const std::vector<double> expected = costsByForce(network, variable);
      ASSERT_EQ(costs[variable].size(), expected.size());
      for (size_t option = 0; option < expected.size(); ++option)
        ASSERT_PRED2(isNear, costs[variable][option], expected[option]) << "seed " << seed << ", variable " << variable;
    }
  }
}

TEST(SolveTest, VariablesWithVeryManyFactorsAreEliminatedInTheOrderOfTheirWeights) {
  for (int seed = 0; seed < rounds(20, 100); ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> cost(0, 10);
    auto table = [&](int32_t a, int32_t b, int32_t rows, int32_t columns) {
      Table made{{a, b}, std::vector<double>(static_cast<size_t>(rows) * columns)};
      std::ranges::generate(made.costs, [&] { return cost(random); });
      return made;
    };
    constexpr int32_t spokes = 80, ofHub = 7, ofSpoke = 4;
    CostNetwork network; // a hub, and a chain of all others around it
    network.options.assign(1 + spokes, ofSpoke);
    network.options[0] = ofHub;
    for (int32_t spoke = 1; spoke <= spokes; ++spoke)
      network.tables.push_back(table(0, spoke, ofHub, ofSpoke));
    for (int32_t spoke = 2; spoke <= spokes; ++spoke)
      network.tables.push_back(table(spoke - 1, spoke, ofSpoke, ofSpoke));
    const Solution found = solveExactly(network);
    ASSERT_TRUE(found.optimal);
    ASSERT_LE(found.largestTable, ofHub * ofSpoke) << "seed " << seed; // the hub comes last but two
    double least = infinity;
    for (int32_t hub = 0; hub < ofHub; ++hub) {
      CostNetwork tied = network;
      tied.tables.push_back({{0}, std::vector<double>(ofHub, infinity)});
      tied.tables.back().costs[hub] = 0;
      least = std::min(least, solveExactly(tied).cost);
    }
    ASSERT_PRED2(isNear, found.cost, least) << "seed " << seed;
  }
}

TEST(SolveTest, NearestAssignmentsBeginWithTheCheapestAndDifferInManyPlaces) {
  int64_t found = 0, changed = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    std::vector<Solution> nearest = nearestAssignments(network, 1 + seed % 40);
    ASSERT_LE(nearest.size(), size_t(1 + seed % 40));
    ASSERT_PRED2(isNear, nearest.front().cost, leastByForce(network)) << "seed " << seed;
    std::vector<char> isChanged(network.options.size());
    for (size_t i = 0; i < nearest.size(); ++i) {
      ASSERT_EQ(nearest[i].cost, costOf(network, nearest[i].choice));
      for (size_t j = 0; j < i; ++j)
        ASSERT_NE(nearest[i].choice, nearest[j].choice);
      for (size_t variable = 0; variable < isChanged.size(); ++variable)
        isChanged[variable] |= nearest[i].choice[variable] != nearest.front().choice[variable];
    }
    found += nearest.size() > 4;
    changed += nearest.size() > 4 && std::count(isChanged.begin(), isChanged.end(), 1) * 2 >= std::ssize(isChanged);
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(changed, found / 2);
}

TEST(SolveTest, BestAssignmentsAreTheFirstOfAllSorted) {
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    std::vector<double> all;
    forEachChoice(network.options, [&](const Choice &choice) {
      if (double cost = costOf(network, choice); cost < infinity)
        all.push_back(cost);
    });
    std::sort(all.begin(), all.end());
    const size_t k = 1 + seed % 40;
    std::vector<Solution> best = bestAssignments(network, k);
    ASSERT_EQ(best.size(), std::min(k, all.size())) << "seed " << seed;
    for (size_t i = 0; i < best.size(); ++i) {
      ASSERT_PRED2(isNear, best[i].cost, all[i]) << "seed " << seed << ", number " << i;
      ASSERT_EQ(best[i].cost, costOf(network, best[i].choice));
      for (size_t j = 0; j < i; ++j)
        ASSERT_NE(best[i].choice, best[j].choice);
    }
  }
}

TEST(SolveTest, SmallTablesLeadToBranchingAndTheSameAnswer) {
  int64_t branches = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    Solution solution = solveExactly(network, {.tableEntries = 3});
    branches += solution.branches;
    ASSERT_TRUE(solution.optimal) << "seed " << seed;
    ASSERT_PRED2(isNear, solution.cost, leastByForce(network)) << "seed " << seed;
  }
  EXPECT_GT(branches, 20);
}

TEST(SolveTest, CostsMayBeBelowNothing) {
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    network.constant = -1000;
    const Solution solution = solveExactly(network, {.tableEntries = 4});
    ASSERT_TRUE(solution.optimal) << "seed " << seed;
    ASSERT_PRED2(isNear, solution.cost, leastByForce(network)) << "seed " << seed;
  }
}

TEST(SolveTest, WhereWorkRunsOutTheBoundHolds) {
  int open = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    Solution solution = solveExactly(network, {.tableEntries = 3, .operations = 20 + seed});
    double least = leastByForce(network);
    ASSERT_LE(solution.bound, least + 1e-9) << "seed " << seed;
    ASSERT_GE(solution.cost, least - 1e-9) << "seed " << seed;
    if (solution.optimal)
      ASSERT_PRED2(isNear, solution.cost, least) << "seed " << seed;
    open += !solution.optimal;
  }
  EXPECT_GT(open, 30);
}

TEST(SolveTest, NothingAllowedIsInfinite) {
  CostNetwork network{{2, 2}, {{{0, 1}, {infinity, infinity, infinity, infinity}}}, {}, 1};
  Solution solution = solveExactly(network);
  EXPECT_EQ(solution.cost, infinity);
  EXPECT_TRUE(solution.optimal);
  EXPECT_TRUE(bestAssignments(network, 3).empty());
}

TEST(SolveTest, ANetworkWithoutVariablesCostsItsConstant) {
  EXPECT_EQ(solveExactly({{}, {}, {}, 7}).cost, 7);
  EXPECT_EQ(solveExactly({{}, {{{}, {2}}}, {}, 7}).cost, 9);
}

TEST(SolveTest, OfEqualOptionsTheLowestIsTaken) {
  CostNetwork network{{3, 3, 3}, {}, {}, 0};
  network.tables = {{{0, 1}, std::vector<double>(9, 1)}, {{1, 2}, std::vector<double>(9, 1)}};
  EXPECT_EQ(solveExactly(network).choice, (Choice{0, 0, 0}));
}

TEST(SolveTest, EqualLayersAreReducedOnce) {
  // A ring of layers a -> b, c -> d, of which b and c have few options and go first.
  CostNetwork network;
  Random random(1);
  const int32_t layers = 50, many = 6, few = 2;
  std::vector<double> in(many * few), out(few * many), next(many * many);
  for (std::vector<double> *costs : {&in, &out, &next})
    for (double &cost : *costs)
      cost = random.price();
  for (int32_t a = 0; a < 4 * layers; a += 4) {
    network.options.insert(network.options.end(), {many, few, few, many});
    for (int32_t inner : {a + 1, a + 2}) {
      network.tables.push_back({{a, inner}, in});
      network.tables.push_back({{inner, a + 3}, out});
    }
    network.tables.push_back({{a > 0 ? a - 1 : 4 * layers - 1, a}, next});
  }
  Solution solution = solveExactly(network);
  EXPECT_EQ(solution.eliminations, 4 * layers);
  EXPECT_GE(solution.repeated, 2 * layers - 2);
}

TEST(SolveTest, DominatedOptionsAreNotNeeded) {
  int32_t before = 0, after = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    Workspace workspace;
    Lowered all = lower(workspace, network), fewer = withoutDominated(workspace, all);
    CostNetwork pruned = network;
    for (size_t variable = 0; variable < network.options.size(); ++variable) {
      before += all.options[variable];
      after += fewer.options[variable];
      if (fewer.origin[variable].empty())
        continue;
      pruned.tables.push_back({{static_cast<int32_t>(variable)}, std::vector<double>(all.options[variable], infinity)});
      for (int32_t option : fewer.origin[variable])
        pruned.tables.back().costs[option] = 0;
    }
    ASSERT_PRED2(isNear, leastByForce(pruned), leastByForce(network)) << "seed " << seed;
  }
  EXPECT_LT(after, 0.9 * before);
}

TEST(SolveTest, ManyReadersOfOneValueEnd) {
  // Readers with sets that differ little, tied to variables of their own: the choice of all together cannot be branched to its end.
  std::mt19937_64 draw(1);
  auto below = [&](uint64_t bound) { return static_cast<int32_t>(draw() % bound); };
  constexpr int32_t readers = 14, options = 10, items = 30;
  CostNetwork network;
  network.options.assign(1 + 2 * readers, options);
  SharedCost shared{.producer = 0, .producerClass = {}, .readers = {}, .costs = {}};
  shared.producerClass.assign(options, 0);
  shared.costs = {{}};
  for (int32_t item = 0; item < items; ++item)
    shared.costs[0].push_back(8 + below(4));
  auto randomCosts = [&](size_t count) {
    std::vector<double> costs(count);
    for (double &cost : costs)
      cost = below(8);
    return costs;
  };
  for (int32_t i = 0; i < readers; ++i) {
    SharedCost::Reader &reader = shared.readers.emplace_back(SharedCost::Reader{1 + i, {}});
    for (int32_t option = 0; option < options; ++option) {
      std::vector<int32_t> set = {below(items), below(items), below(items)};
      std::ranges::sort(set);
      set.erase(std::unique(set.begin(), set.end()), set.end());
      reader.items.push_back(set);
    }
    network.tables.push_back({{1 + i, 1 + readers + i}, randomCosts(options * options)});
    if (i > 0)
      network.tables.push_back({{readers + i, 1 + readers + i}, randomCosts(options * options)});
  }
  network.shared.push_back(shared);
  const Solution found = solveExactly(network, {.operations = int64_t(1) << 28, .branching = int64_t(1) << 26});
  EXPECT_LE(found.bound, found.cost);
  EXPECT_EQ(costOf(network, found.choice), found.cost);
  for (int start = 0; start < 200; ++start) {
    Choice choice;
    for (int32_t count : network.options)
      choice.push_back(below(count));
    EXPECT_LE(found.bound, costOf(network, descended(network, choice)) * (1 + 1e-12));
  }
  const std::vector<double> least = costsOfOptions(network, 1, {.operations = int64_t(1) << 28, .branching = int64_t(1) << 26}).costs;
  for (int32_t option = 0; option < options; ++option)
    EXPECT_LE(least[option], (option == found.choice[1] ? found.cost : infinity));
}
