// Options that are left out because of their costs, against going through all assignments.
#include "Networks.h"
#include "passes/sharding/search/Fixing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace msc::search;
using namespace msc::search::test;

namespace {

std::vector<int32_t> allVariables(const CostNetwork &network) {
  std::vector<int32_t> variables(network.options.size());
  std::iota(variables.begin(), variables.end(), 0);
  return variables;
}

bool has(const Lowered &network, const Choice &choice) {
  for (size_t variable = 0; variable < choice.size(); ++variable)
    if (const std::vector<int32_t> &left = network.origin[variable]; !left.empty() && std::ranges::find(left, choice[variable]) == left.end())
      return false;
  return true;
}

} // namespace

TEST(FixingTest, BoundsHoldAndAllThatIsCheapIsLeft) {
  int64_t leftOut = 0;
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 5000);
    Workspace workspace;
    const std::vector<int32_t> variables = allVariables(network);
    int64_t operations = 0;
    Fixing fixing(workspace, network, lower(workspace, network), variables, Choice(network.options.size()), {}, operations);
    std::vector<std::vector<double>> least;
    for (int32_t options : network.options)
      least.emplace_back(options, infinity);
    double cheapest = infinity;
    forEachChoice(network.options, [&](const Choice &choice) {
      const double cost = costOf(network, choice);
      cheapest = std::min(cheapest, cost);
      for (size_t variable = 0; variable < choice.size(); ++variable)
        least[variable][choice[variable]] = std::min(least[variable][choice[variable]], cost);
    });
    ASSERT_LE(fixing.bound(), cheapest + 1e-9) << "seed " << seed;
    ASSERT_EQ(fixing.cost(), costOf(network, fixing.choice())) << "seed " << seed;
    for (size_t variable = 0; variable < variables.size(); ++variable)
      if (network.options[variable] > 1)
        for (int32_t option = 0; option < network.options[variable]; ++option)
          ASSERT_LE(fixing.boundsOf(variable)[option], least[variable][option] + 1e-9) << "seed " << seed;
    if (cheapest == infinity)
      continue;
    for (double most : {cheapest, 1.1 * cheapest, 1.5 * cheapest}) {
      const std::optional<Fixing::Part> left = fixing.within(most);
      ASSERT_TRUE(left) << "seed " << seed;
      forEachChoice(network.options, [&](const Choice &choice) {
        if (costOf(network, choice) <= most)
          ASSERT_TRUE(has(left->network, choice)) << "seed " << seed;
      });
      leftOut += left->network.options != network.options;
    }
    if (const std::optional<Fixing::Part> none = fixing.within(0.5 * fixing.bound() - 1))
      ASSERT_LE(none->network.options.size(), network.options.size());
  }
  EXPECT_GT(leftOut, 300);
}

TEST(FixingTest, HalvesHaveAllThatIsCheapAndEndInSingleAssignments) {
  constexpr double margin = 0.05;
  int64_t parts = 0;
  for (int seed = 0; seed < rounds(200, 2000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 5000);
    const double cheapest = leastByForce(network);
    if (cheapest == infinity)
      continue;
    Workspace workspace;
    int64_t operations = 0;
    Fixing fixing(workspace, network, lower(workspace, network), allVariables(network), Choice(network.options.size()), {}, operations, margin);
    std::vector<Choice> cheap;
    forEachChoice(network.options, [&](const Choice &choice) {
      if (costOf(network, choice) <= (1 + margin) * cheapest)
        cheap.push_back(choice);
    });
    size_t found = 0;
    std::vector<Fixing::Part> open{fixing.within((1 + margin) * cheapest).value()};
    while (!open.empty()) {
      const Fixing::Part part = std::move(open.back());
      open.pop_back();
      ++parts;
      const auto inside = std::ranges::count_if(cheap, [&](const Choice &choice) { return has(part.network, choice); });
      std::vector<Fixing::Part> halves = fixing.halves(part);
      if (halves.empty()) {
        ASSERT_LE(inside, 1) << "seed " << seed;
        found += static_cast<size_t>(inside);
        continue;
      }
      ASSERT_EQ(halves.size(), 2U);
      for (const Choice &choice : cheap)
        if (has(part.network, choice))
          ASSERT_NE(has(halves[0].network, choice), has(halves[1].network, choice)) << "seed " << seed;
      for (Fixing::Part &half : halves)
        if (std::optional<Fixing::Part> left = fixing.within(std::move(half), (1 + margin) * cheapest))
          open.push_back(std::move(*left));
    }
    ASSERT_EQ(found, cheap.size()) << "seed " << seed;
  }
  EXPECT_GT(parts, 300);
}

TEST(FixingTest, WhatIsLeftHasTheCheapestAssignment) {
  for (int seed = 0; seed < rounds(300, 3000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 5000);
    Workspace workspace;
    std::optional<Lowered> near;
    const Solution solution = solveExactly(workspace, network, {}, allVariables(network), &near);
    const double least = leastByForce(network);
    ASSERT_PRED2(isNear, solution.cost, least) << "seed " << seed;
    ASSERT_TRUE(solution.optimal) << "seed " << seed;
    if (near)
      ASSERT_TRUE(has(*near, solution.choice)) << "seed " << seed;
  }
}
