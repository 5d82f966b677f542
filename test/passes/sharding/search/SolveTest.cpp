// The exact solver against going through all assignments.
#include "Networks.h"
#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Fixing.h"
#include "passes/sharding/search/Repeat.h"
#include "passes/sharding/search/Workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <cmath>
#include <map>
#include <optional>
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

/// A value whose producer has many options, and a chain of readers, each of which knows the last two. `costBelow(below, most)` draws a cost.
template <typename CostBelow> CostNetwork hubNetwork(uint64_t seed, int32_t ofHub, CostBelow costBelow) {
  std::mt19937_64 draw(seed);
  auto below = [&](uint64_t bound) { return static_cast<int32_t>(draw() % bound); };
  constexpr int32_t readers = 10, options = 40, items = 8;
  CostNetwork network;
  network.options.assign(1 + readers, options);
  network.options[0] = ofHub;
  SharedCost shared{.producer = 0, .producerClass = {}, .readers = {}, .costs = {}};
  for (int32_t option = 0; option < ofHub; ++option) {
    shared.producerClass.push_back(option);
    std::vector<double> &prices = shared.costs.emplace_back();
    for (int32_t item = 0; item < items; ++item)
      prices.push_back(below(4000) / 1000.0);
  }
  auto table = [&](std::vector<int32_t> scope, int32_t most) {
    Table made{std::move(scope), {}};
    size_t size = 1;
    for (int32_t variable : made.scope)
      size *= network.options[variable];
    for (size_t i = 0; i < size; ++i)
      made.costs.push_back(costBelow(below, most));
    return made;
  };
  network.tables.push_back(table({0}, 4));
  for (int32_t i = 1; i <= readers; ++i) {
    SharedCost::Reader &reader = shared.readers.emplace_back(SharedCost::Reader{i, {}});
    for (int32_t option = 0; option < options; ++option)
      reader.items.push_back({option % items});
    network.tables.push_back(table({i}, 30));
    for (int32_t back = 1; back <= 2 && back < i; ++back)
      network.tables.push_back(table({i - back, i}, 30));
  }
  network.shared.push_back(shared);
  return network;
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
    std::mt19937_64 random(seed);
    if (seed % 3 == 0) // without what depends on the first half alone: several components
      std::erase_if(network.tables, [&](const Table &table) { return std::ranges::all_of(table.scope, [&](int32_t v) { return v * 2 < std::ssize(network.options); }); });
    for (Table &table : network.tables)
      for (double &cost : table.costs)
        cost -= seed % 2 == 0 ? 3 : 0;
    std::vector<int32_t> variables(network.options.size());
    std::iota(variables.begin(), variables.end(), 0);
    std::shuffle(variables.begin(), variables.end(), random);
    variables.resize(1 + seed % variables.size());
    Workspace workspace;
    Elimination elimination(workspace, lower(workspace, network), all({}));
    ASSERT_TRUE(elimination.isExact());
    const std::optional<std::vector<std::vector<double>>> costs = elimination.costsOfAll(variables);
    ASSERT_TRUE(costs);
    for (size_t i = 0; i < variables.size(); ++i) {
      const std::vector<double> expected = costsByForce(network, variables[i]);
      ASSERT_EQ((*costs)[i].size(), expected.size());
      for (size_t option = 0; option < expected.size(); ++option)
        ASSERT_PRED2(isNear, (*costs)[i][option], expected[option]) << "seed " << seed << ", variable " << variables[i];
    }
  }
}

TEST(SolveTest, LimitsHoldOnTheWayBack) {
  // Forward the wide variable goes first; back its neighbours would.
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> cost(0, 10);
  auto table = [&](std::vector<int32_t> scope, const std::vector<int32_t> &options) {
    size_t size = 1;
    for (int32_t variable : scope)
      size *= options[variable];
    Table made{std::move(scope), std::vector<double>(size)};
    std::ranges::generate(made.costs, [&] { return cost(random); });
    return made;
  };
  CostNetwork network;
  network.options = {512, 2, 24, 24, 24};
  for (int32_t neighbour = 1; neighbour < 5; ++neighbour)
    network.tables.push_back(table({0, neighbour}, network.options));
  network.tables.push_back(table({1, 2, 3, 4}, network.options));
  for (int32_t leaf = 5; leaf < 10; ++leaf) {
    network.options.push_back(13);
    network.tables.push_back(table({0, leaf}, network.options));
  }
  std::vector<int32_t> variables(network.options.size());
  std::iota(variables.begin(), variables.end(), 0);
  Workspace workspace;
  const Lowered lowered = lower(workspace, network);
  const EliminationLimits limits{int64_t(1) << 16, int64_t(1) << 28, int64_t(1) << 20};
  Elimination elimination(workspace, lowered, limits);
  ASSERT_TRUE(elimination.isExact());
  const auto costs = elimination.costsOfAll(variables);
  EXPECT_LE(elimination.largestTable, limits.tableEntries);
  EXPECT_LE(elimination.allEntries, limits.allEntries);
  EXPECT_LE(elimination.operations, limits.operations);
  if (costs)
    for (size_t i = 0; i < variables.size(); ++i) {
      const std::vector<double> expected = costsOfOptions(network, variables[i]).costs;
      for (size_t option = 0; option < expected.size(); ++option)
        ASSERT_PRED2(isNear, (*costs)[i][option], expected[option]);
    }
}

TEST(SolveTest, CostsBesideAnAssignmentAreThoseOfWhatDependsOnTheVariable) {
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 5000);
    const auto all = static_cast<int32_t>(network.options.size());
    const int32_t variable = seed % all, firstFollower = all - seed % 3;
    if (variable >= firstFollower)
      continue;
    Choice choice(all);
    for (int32_t i = 0; i < all; ++i)
      choice[i] = seed % network.options[i];
    const std::vector<double> costs = costsBeside(network, choice, variable, firstFollower).costs;
    std::vector<double> expected(network.options[variable], infinity); // of the whole network, all followers at their best
    forEachChoice(network.options, [&](const Choice &other) {
      for (int32_t i = 0; i < firstFollower; ++i)
        if (i != variable && other[i] != choice[i])
          return;
      expected[other[variable]] = std::min(expected[other[variable]], costOf(network, other));
    });
    ASSERT_EQ(costs.size(), expected.size());
    if (firstFollower < all) // those that have no term with it do not follow
      continue;
    for (size_t option = 1; option < expected.size(); ++option)
      if (expected[0] < infinity && expected[option] < infinity)
        ASSERT_PRED2(isNear, costs[option] - costs[0], expected[option] - expected[0]) << "seed " << seed;
  }
}

TEST(SolveTest, TheBestBesideAnAssignmentAreThoseWithOtherOptionsOfSomeVariables) {
  int compared = 0;
  for (int seed = 0; seed < rounds(300, 2000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 5000);
    Choice choice;
    std::set<int32_t> free;
    for (int32_t i = 0; i < static_cast<int32_t>(network.options.size()); ++i) {
      choice.push_back(seed % network.options[i]);
      if ((seed >> i) % 2)
        free.insert(i);
    }
    const double own = costOf(network, choice);
    if (own == infinity)
      continue;
    std::vector<double> expected;
    forEachChoice(network.options, [&](const Choice &other) {
      for (int32_t i = 0; i < static_cast<int32_t>(other.size()); ++i)
        if (other[i] != choice[i] && !free.contains(i))
          return;
      if (costOf(network, other) < infinity)
        expected.push_back(costOf(network, other) - own);
    });
    std::ranges::sort(expected);
    const std::vector<NearAssignment> found = bestBeside(network, choice, free, 10);
    ASSERT_EQ(found.size(), std::min<size_t>(10, expected.size())) << "seed " << seed;
    for (size_t i = 0; i < found.size(); ++i) {
      Choice other = choice;
      for (auto [variable, option] : found[i].changes)
        other[variable] = option;
      ASSERT_PRED2(isNear, own + found[i].cost, own + expected[i]) << "seed " << seed;
      ASSERT_PRED2(isNear, costOf(network, other), own + expected[i]) << "seed " << seed;
    }
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(SolveTest, ManyPartitionsMeetInOneThatIsFinerThanAll) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    std::mt19937_64 random(seed);
    const size_t options = 1 + random() % 200, count = 1 + random() % 24;
    Partitions partitions;
    std::vector<PartitionRef> parts;
    std::map<std::vector<int32_t>, int32_t> numbers;
    std::vector<std::vector<int32_t>> labels(options);
    for (size_t i = 0; i < count; ++i) {
      std::vector<int32_t> classes(options);
      for (int32_t &label : classes)
        label = static_cast<int32_t>(random() % 12 == 0 ? random() % (1 + seed % 7) : 0);
      parts.push_back(partitions.of(classes));
      for (size_t option = 0; option < options; ++option)
        labels[option].push_back(classes[option]);
    }
    std::vector<int32_t> expected;
    for (const std::vector<int32_t> &own : labels)
      expected.push_back(numbers.try_emplace(own, static_cast<int32_t>(numbers.size())).first->second);
    ASSERT_EQ(partitions.meet(parts), partitions.of(expected)) << "seed " << seed;
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
    constexpr int32_t spokes = 80, ofHub = 7;
    const int32_t ofSpoke = 2 + seed % 3;
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
    const Nearest changes = nearestChanges(network, 1 + seed % 40);
    for (size_t i = 0; i < changes.others.size(); ++i) { // what is chosen anew behind a deviation costs what the tables say
      Choice choice = changes.best.choice;
      for (auto [variable, option] : changes.others[i].changes)
        ASSERT_NE(std::exchange(choice[variable], option), option);
      ASSERT_PRED2(isNear, changes.others[i].cost, costOf(network, choice)) << "seed " << seed;
      ASSERT_TRUE(i == 0 || changes.others[i - 1].cost <= changes.others[i].cost);
    }
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

TEST(SolveTest, AWorkspaceThatRemembersFindsTheSame) {
  for (int seed = 0; seed < rounds(100, 1000); ++seed) {
    CostNetwork network = randomNetwork(seed, 5000);
    Random random(seed);
    Workspace kept;
    for (int change = 0; change < 6; ++change) {
      const Nearest fresh = nearestChanges(network, 20), known = nearestChanges(kept, network, 20, {}, infinity);
      ASSERT_EQ(fresh.best.choice, known.best.choice) << "seed " << seed;
      ASSERT_EQ(fresh.others.size(), known.others.size()) << "seed " << seed;
      for (size_t i = 0; i < fresh.others.size(); ++i)
        ASSERT_PRED2(isNear, fresh.others[i].cost, known.others[i].cost) << "seed " << seed;
      const double below = fresh.others.size() < 4 ? infinity : fresh.others[3].cost;
      const Nearest few = nearestChanges(kept, network, 20, {}, below);
      ASSERT_EQ(few.others.size(), std::ranges::count_if(fresh.others, [&](const NearAssignment &other) { return other.cost < below; })) << "seed " << seed;
      for (Table &table : network.tables) // as prices that become exact: some cost more
        for (double &cost : table.costs)
          if (random.below(10) == 0)
            cost += random.below(5);
    }
  }
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

TEST(SolveTest, AHubIsTiedToOneOptionAtATimeWhereBoundsAreNotEasyWithAllOfThem) {
  constexpr int32_t ofHub = 900;
  const CostNetwork network = hubNetwork(2, ofHub, [](auto below, int32_t most) { return double(below(most)); });
  Workspace workspace;
  const Lowered lowered = lower(workspace, network);
  constexpr int64_t most = int64_t(1) << 30;
  int64_t operations = 0;
  EXPECT_FALSE(hasEasyBounds(workspace, lowered, most, operations));
  EXPECT_EQ(hubOf(lowered), 0);
  EXPECT_TRUE(hasEasyBoundsTied(workspace, lowered, most, operations));
  std::vector<int32_t> crowded(network.options.size());
  std::iota(crowded.begin(), crowded.end(), 0);
  const Solution found = solveExactly(workspace, network, {}, crowded); // an elimination gave up
  EXPECT_TRUE(found.optimal);
  EXPECT_GT(found.branches, 0); // it was tied
  EXPECT_EQ(found.cost, solveExactly(network).cost);
  auto leastTied = [&](int32_t option) {
    CostNetwork tied = network;
    keepOptions(tied, 0, {option});
    const Solution ofOption = solveExactly(tied);
    EXPECT_TRUE(ofOption.optimal);
    return ofOption.cost;
  };
  EXPECT_EQ(found.cost, leastTied(found.choice[0]));
  for (int32_t option = 0; option < ofHub; option += 150)
    EXPECT_LE(found.cost, leastTied(option));
  // What stands for several options is a bound on each of them.
  std::mt19937_64 draw(3);
  auto below = [&](uint64_t bound) { return static_cast<int32_t>(draw() % bound); };
  for (int round = 0; round < 4; ++round) {
    std::vector<int32_t> some;
    for (int32_t option = 0; option < ofHub; ++option)
      if (below(20) == 0)
        some.push_back(option);
    const std::optional<double> bound = some.empty() ? std::nullopt : easyBound(workspace, leastOf(workspace, lowered, 0, some), most, operations);
    for (size_t i = 0; i < std::min<size_t>(some.size(), 2) && bound; ++i)
      EXPECT_LE(*bound, leastTied(some[i]) + 1e-9);
  }
}

TEST(SolveTest, SetsOfOptionsOfAHubLeaveNoCheaperAssignmentOut) {
  for (uint64_t seed = 3; seed <= 2 + static_cast<uint64_t>(rounds(1, 4)); ++seed) {
    const CostNetwork network = hubNetwork(seed, 600, [](auto below, int32_t most) { return below(1000 * most) / 1000.0; });
    Workspace workspace;
    const Lowered lowered = lower(workspace, network);
    std::vector<int32_t> crowded(network.options.size());
    std::iota(crowded.begin(), crowded.end(), 0);
    const Solution found = solveExactly(workspace, network, {}, crowded);
    ASSERT_TRUE(found.optimal);
    EXPECT_NEAR(costOf(network, found.choice), found.cost, 1e-12 * found.cost);
    int32_t solved = 0;
    for (int32_t option = 0; option < network.options[0]; ++option) {
      int64_t operations = 0;
      workspace.forgetReductions(0);
      if (easyBound(workspace, restricted(workspace, lowered, 0, {option}), int64_t(1) << 30, operations).value_or(-infinity) > found.cost)
        continue;
      ++solved;
      CostNetwork tied = network;
      keepOptions(tied, 0, {option});
      EXPECT_GE(solveExactly(tied).cost, found.cost * (1 - 1e-12)) << "seed " << seed << ", option " << option;
    }
    EXPECT_GT(solved, 0); // the one that is cheapest
  }
}

TEST(SolveTest, NearestAssignmentsClaimNoMoreThanTheSearchWithinTheirLimits) {
  const CostNetwork network = hubNetwork(2, 900, [](auto below, int32_t most) { return below(1000 * most) / 1000.0; });
  for (int64_t operations : {int64_t(1) << 28, int64_t(1) << 29}) {
    const SolveLimits limits{.tableEntries = int64_t(1) << 20, .operations = operations};
    const Solution found = solveExactly(network, limits), nearest = nearestAssignments(network, 4, limits).front();
    EXPECT_FALSE(found.optimal);
    EXPECT_FALSE(nearest.optimal);
    EXPECT_LE(nearest.bound, found.cost);
    EXPECT_EQ(nearest.cost, found.cost);
  }
}

TEST(SolveTest, OptionsDoNotDominateEachOtherInACircle) {
  // Each of the first three options costs 1 in all; the sums of the rounded differences are above 0 all the way round.
  const double costs[3][3] = {{0.028, 0.086, 1 - 0.028 - 0.086}, {0.37, 0.183, 1 - 0.37 - 0.183}, {0.086, 0.021, 1 - 0.086 - 0.021}};
  for (int a = 0; a < 3; ++a) {
    double difference = 0;
    for (int i = 0; i < 3; ++i)
      difference += costs[a][i] - costs[(a + 1) % 3][i];
    ASSERT_GT(difference, 0);
  }
  CostNetwork network{{4, 2}, {}, {}, 0};
  for (int i = 0; i < 3; ++i)
    network.tables.push_back({{0}, {costs[0][i], costs[1][i], costs[2][i], i == 0 ? 5.0 : 0}});
  network.tables.push_back({{0, 1}, {0, 0, 0, 0, 0, 0, 0, -4.5}});
  network.tables.push_back({{1}, {0, 3}});
  EXPECT_PRED2(isNear, nearestAssignments(network, 1).front().cost, 1.0);
  EXPECT_PRED2(isNear, costsOfOptions(network, 1).costs[0], 1.0);
}

TEST(SolveTest, WhatIsDecidedTakesNoTime) {
  // All readers of a value have one option, and so have the sums of what they make: nothing is in a table with anything else.
  constexpr int32_t readers = 2000;
  CostNetwork network;
  network.options.assign(1 + 2 * readers, 1);
  network.options[0] = 4;
  SharedCost shared{.producer = 0, .producerClass = {0, 1, 2, 3}, .readers = {}, .costs = {{3, 1}, {2, 2}, {1, 5}, {9, 0}}};
  for (int32_t reader = 1; reader <= readers; ++reader)
    shared.readers.push_back({reader, {{reader % 2}}});
  network.shared.push_back(shared);
  for (int32_t i = 0; i < readers; ++i) {
    network.tables.push_back({{1 + readers + i, 1 + i}, {1}});
    if (i > 0)
      network.tables.push_back({{readers + i, 1 + readers + i}, {2}});
    network.tables.push_back({{0, 1 + i}, {0, 0.5, 0, 0}});
  }
  const Solution found = solveExactly(network);
  EXPECT_TRUE(found.optimal);
  EXPECT_EQ(found.cost, readers + 2 * (readers - 1) + 4); // the producer's options cost 4, 4 + readers / 2, 6 and 9
  EXPECT_EQ(found.choice[0], 0);
  EXPECT_LE(found.largestTable, 4);
}

TEST(SolveTest, TablesOfAllBucketsKeepWithinTheirLimit) {
  std::mt19937_64 draw(3);
  constexpr int32_t variables = 60, options = 32;
  CostNetwork network;
  network.options.assign(variables, options);
  for (int32_t variable = 0; variable < variables; ++variable)
    for (int32_t k = 1; k <= 4; ++k) {
      Table &table = network.tables.emplace_back(Table{{variable, (variable + k * k) % variables}, {}});
      for (int32_t i = 0; i < options * options; ++i)
        table.costs.push_back(static_cast<double>(draw() % 1000));
    }
  Workspace workspace;
  const Lowered lowered = lower(workspace, network);
  constexpr int64_t all = int64_t(1) << 19;
  const Elimination elimination(workspace, lowered, {int64_t(1) << 20, int64_t(1) << 33, all});
  EXPECT_TRUE(elimination.isFinished());
  EXPECT_FALSE(elimination.isExact());
  EXPECT_LE(elimination.allEntries, 2 * all);
}

TEST(SolveTest, AnOrderOfOptionsNeedsNoItems) {
  CostNetwork network;
  network.options.assign(12, 3);
  SharedCost shared{.producer = 0, .producerClass = {0, 1, 2}, .readers = {}, .costs = {{}, {}, {}}};
  for (int32_t reader = 1; reader < 12; ++reader)
    shared.readers.push_back({reader, {{}, {}, {}}});
  network.shared.push_back(shared);
  Workspace workspace;
  EXPECT_EQ(leastOfOptions(lower(workspace, network), 0), std::vector<double>(3));
}
