// Spliced assignments against all of them.
#include "passes/sharding/search/Splices.h"
#include "RepeatedNetworks.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace msc::search;
using namespace msc::search::test;

namespace {

RepeatedChoice randomChoice(Random &random, const RepeatedNetwork &network) {
  RepeatedChoice choice;
  for (int32_t options : network.network.options)
    choice.choice.push_back(random.below(options));
  for (const Section &section : network.sections) {
    std::vector<Run> &runs = choice.runs.emplace_back();
    for (int64_t left = section.rounds; left > 0; left -= runs.back().rounds) {
      Run run{1 + random.below(static_cast<int32_t>(left)), {}};
      for (int32_t variable : section.variables)
        run.options.push_back(runs.empty() ? choice.choice[variable] : random.below(network.network.options[variable]));
      runs.push_back(std::move(run));
    }
  }
  return choice;
}

double amountOf(const Budget &budget, const RepeatedNetwork &network, const std::vector<std::vector<int32_t>> &inRounds, const RepeatedChoice &choice) {
  const Choice options = unrolledChoice(network, inRounds, choice);
  double sum = 0;
  for (size_t variable = 0; variable < options.size(); ++variable)
    if (!budget.amounts[variable].empty())
      sum += budget.amounts[variable][options[variable]];
  return sum;
}

/// Three stretches of the section, beside one of them, ends and kinds by force; false: something is not allowed.
template <typename Visit> bool forEachSplice(const RepeatedNetwork &network, size_t section, const std::vector<RepeatedChoice> &from, Visit visit) {
  std::vector<Choice> kinds;
  for (const RepeatedChoice &choice : from)
    for (const Run &run : choice.runs[section])
      if (std::ranges::find(kinds, run.options) == kinds.end())
        kinds.push_back(run.options);
  const int64_t rounds = network.sections[section].rounds;
  bool isAllowed = true;
  for (const RepeatedChoice &beside : from)
    for (const Choice &first : kinds)
      for (const Choice &middle : kinds)
        for (const Choice &last : kinds)
          for (int64_t a = 1; a < rounds - 1; ++a)
            for (int64_t b = a + 1; b < rounds; ++b) {
              RepeatedChoice choice = beside;
              choice.runs[section] = {{a, first}, {b - a, middle}, {rounds - b, last}};
              for (size_t i = 0; i < first.size(); ++i)
                choice.choice[network.sections[section].variables[i]] = first[i];
              const double cost = costOf(network, choice);
              isAllowed &= cost < infinity;
              if (first != middle && middle != last)
                visit(choice, cost);
            }
  return isAllowed;
}

} // namespace

TEST(SplicesTest, TheCheapestThatFits) {
  int fitting = 0, refused = 0;
  for (int seed = 0; seed < rounds(300, 5000); ++seed) {
    const RepeatedNetwork network = randomRepeated(seed, 8, infinity);
    Random random(seed + 1);
    const size_t section = random.below(static_cast<int32_t>(network.sections.size()));
    std::vector<RepeatedChoice> from;
    for (int32_t count = 1 + random.below(3); count > 0; --count)
      from.push_back(randomChoice(random, network));
    const std::vector<std::vector<int32_t>> inRounds = variablesInRounds(network);
    const Unrolled unrolled = unroll(network);
    std::vector<Budget> budgets(random.below(3));
    for (Budget &budget : budgets) {
      budget.amounts.resize(unrolled.network.options.size());
      for (size_t variable = 0; variable < budget.amounts.size(); ++variable)
        for (int32_t option = 0; option < unrolled.network.options[variable]; ++option)
          budget.amounts[variable].push_back(random.price());
      budget.limit = 2.2 * static_cast<double>(budget.amounts.size());
    }
    double least = infinity;
    std::vector<std::pair<double, double>> all; // cost, and the most that is above a budget
    const bool isAllowed = forEachSplice(network, section, from, [&](const RepeatedChoice &choice, double cost) {
      double above = -infinity;
      for (const Budget &budget : budgets)
        above = std::max(above, amountOf(budget, network, inRounds, choice) - budget.limit);
      all.emplace_back(cost, above);
      if (above <= 0)
        least = std::min(least, cost);
    });
    if (!isAllowed) // costs of pairs are asked for, whatever the ends
      continue;
    Splices splices(network, section, from, budgets, infinity);
    std::optional<RepeatedChoice> found = splices.cheapest();
    ASSERT_EQ(found.has_value(), least < infinity) << "seed " << seed;
    if (!found)
      continue;
    ++fitting;
    EXPECT_NEAR(costOf(network, *found), least, 1e-9 * std::max(1.0, least)) << "seed " << seed;
    // In truth everything takes two more: what is found then is the cheapest that is so far below all budgets.
    constexpr double more = 2;
    auto isAbove = [&](const RepeatedChoice &choice) {
      return std::ranges::any_of(budgets, [&](const Budget &budget) { return amountOf(budget, network, inRounds, choice) + more > budget.limit; });
    };
    for (; found && isAbove(*found); found = splices.cheapest()) {
      splices.refuse(more);
      ++refused;
    }
    double expected = infinity;
    for (auto [cost, above] : all)
      if (above + more <= 0)
        expected = std::min(expected, cost);
    ASSERT_EQ(found.has_value(), expected < infinity) << "seed " << seed;
    if (found)
      EXPECT_NEAR(costOf(network, *found), expected, 1e-9 * std::max(1.0, expected)) << "seed " << seed;
    EXPECT_FALSE(Splices(network, section, from, budgets, least * (1 - 1e-6)).cheapest()) << "seed " << seed; // all costs are >= 0
  }
  EXPECT_GT(fitting, 50);
  EXPECT_GT(refused, 20);
}
