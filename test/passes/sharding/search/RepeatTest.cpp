// Repeated sections against their rounds one after the other.
#include "passes/sharding/search/Repeat.h"
#include "Networks.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace msc::search;
using namespace msc::search::test;

namespace {

/// Terms over some of these references.
class RandomTerms {
public:
  RandomTerms(Random &random, const std::vector<int32_t> &options) : random(random), options(options) {}

  Terms over(const std::vector<int32_t> &references, int32_t tables, int32_t shared) {
    // In place of the references, which may be negative, their positions.
    std::vector<int32_t> positions, ofPositions;
    for (int32_t reference : references) {
      positions.push_back(static_cast<int32_t>(positions.size()));
      ofPositions.push_back(options[reference < 0 ? ~reference : reference]);
    }
    Terms terms;
    for (int32_t i = random.below(tables + 1); i > 0; --i) {
      Table table = randomTable(random, ofPositions, randomSubset(random, positions, 3));
      for (int32_t &variable : table.scope)
        variable = references[variable];
      terms.tables.push_back(std::move(table));
    }
    for (int32_t i = random.below(shared + 1); i > 0; --i) {
      SharedCost cost = randomShared(random, randomSubset(random, positions, 4), ofPositions);
      cost.producer = references[cost.producer];
      for (SharedCost::Reader &reader : cost.readers)
        reader.variable = references[reader.variable];
      terms.shared.push_back(std::move(cost));
    }
    return terms;
  }

private:
  Random &random;
  const std::vector<int32_t> &options;
};

/// One or two sections with parameters, some variables outside, and anything between them.
RepeatedNetwork randomRepeated(uint64_t seed, int32_t mostRounds, double limit) {
  while (true) {
    Random random(seed);
    RepeatedNetwork network;
    const int32_t outside = random.below(3), sections = 1 + random.below(2);
    std::vector<int32_t> &options = network.network.options;
    for (int32_t i = 0; i < outside; ++i)
      options.push_back(1 + random.below(4));
    double size = assignments(options);
    for (int32_t s = 0; s < sections; ++s) {
      Section &section = network.sections.emplace_back();
      section.rounds = 1 + random.below(mostRounds);
      for (int32_t i = 1 + random.below(3); i > 0; --i) {
        section.variables.push_back(static_cast<int32_t>(options.size()));
        options.push_back(1 + random.below(4));
        size *= std::pow(options.back(), section.rounds);
      }
    }
    if (size > limit) {
      seed += 1000003;
      continue;
    }
    RandomTerms terms(random, options);
    std::vector<int32_t> out(outside);
    for (int32_t i = 0; i < outside; ++i)
      out[i] = i;
    if (outside) {
      Terms around = terms.over(out, 3, 1);
      network.network.tables = around.tables;
      network.network.shared = around.shared;
    }
    std::vector<int32_t> every = out;
    for (const Section &section : network.sections)
      every.insert(every.end(), section.variables.begin(), section.variables.end());
    for (Section &section : network.sections) {
      std::vector<int32_t> own = section.variables, both = own;
      for (int32_t variable : section.variables)
        both.push_back(inNextRound(variable));
      if (random.below(3) == 0)
        for (std::vector<int32_t> *list : {&own, &both})
          list->insert(list->end(), out.begin(), out.end());
      section.within = terms.over(own, 4, 1);
      section.carried = terms.over(both, 3, 2);
      section.entry = terms.over(every, 2, 1);
      section.exit = terms.over(every, 2, 1);
    }
    return network;
  }
}

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
    std::vector<double> costs = costsOfOptions(network, variable), limited = costsOfOptions(network, variable, small);
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
    const std::vector<double> costs = costsOfOptions(network, variable);
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
