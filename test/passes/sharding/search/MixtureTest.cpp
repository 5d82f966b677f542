// Mixtures of assignments by the optimality conditions of linear programs; assignments between two others.
#include "passes/sharding/search/Mixture.h"
#include "Networks.h"
#include "passes/sharding/search/Crossings.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace msc::search;
using namespace msc::search::test;

namespace {

struct Column {
  double cost = 0;
  std::vector<double> above;
};

/// What is allowed, has the prices' value, and nothing is cheaper at these prices: it is the cheapest (strong duality).
void expectCheapest(const Mixture &mixture, const std::vector<Column> &columns, int seed) {
  const double tolerance = 1e-7;
  double sum = 0, cost = 0, least = infinity;
  std::vector<double> above(mixture.prices().size());
  ASSERT_EQ(mixture.shares().size(), columns.size());
  for (size_t j = 0; j < columns.size(); ++j) {
    const double share = mixture.shares()[j];
    EXPECT_GE(share, 0) << "seed " << seed;
    sum += share;
    cost += share * columns[j].cost;
    double priced = columns[j].cost;
    for (size_t i = 0; i < above.size(); ++i) {
      above[i] += share * columns[j].above[i];
      priced += mixture.prices()[i] * columns[j].above[i];
    }
    least = std::min(least, priced);
  }
  for (size_t i = 0; i < above.size(); ++i) {
    EXPECT_GE(mixture.prices()[i], 0);
    EXPECT_LE(above[i], tolerance * 1e10) << "seed " << seed << ", limit " << i;
  }
  EXPECT_NEAR(sum, 1, tolerance) << "seed " << seed;
  EXPECT_NEAR(cost, mixture.cost(), tolerance * std::max(1.0, std::abs(cost))) << "seed " << seed;
  EXPECT_NEAR(least, mixture.cost(), tolerance * std::max(1.0, std::abs(cost))) << "seed " << seed;
}

} // namespace

TEST(MixtureTest, NothingIsCheaperAtItsPrices) {
  for (int seed = 0; seed < rounds(200, 5000); ++seed) {
    Random random(seed);
    size_t limits = random.below(5);
    auto draw = [&](bool fits) {
      Column column{1e6 * random.price(), {}};
      for (size_t i = 0; i < limits; ++i)
        column.above.push_back(1e10 * (fits ? -random.price() : random.price() - 2));
      return column;
    };
    std::vector<Column> columns{draw(true)};
    Mixture mixture(columns.front().cost, columns.front().above);
    for (int step = 0; step < 12; ++step) {
      if (random.below(4) == 0) { // a limit joins
        std::vector<double> above;
        for (size_t j = 0; j < columns.size(); ++j)
          above.push_back(columns[j].above.emplace_back(1e10 * (j == 0 ? -random.price() : random.price() - 2)));
        mixture.addLimit(above);
        ++limits;
      }
      columns.push_back(draw(false));
      mixture.add(columns.back().cost, columns.back().above);
      mixture.solve();
      expectCheapest(mixture, columns, seed);
    }
  }
}

TEST(MixtureTest, SharesMeetTheLimit) {
  Mixture mixture(10, {-2});
  mixture.add(4, {6});
  mixture.solve();
  EXPECT_DOUBLE_EQ(mixture.cost(), 8.5); // a quarter of the second
  EXPECT_DOUBLE_EQ(mixture.shares()[1], 0.25);
  EXPECT_DOUBLE_EQ(mixture.prices()[0], 0.75);
}

TEST(CrossingsTest, TheFirstAreOfOneAndTheRestOfTheOther) {
  for (int seed = 0; seed < rounds(100, 1000); ++seed) {
    const CostNetwork network = randomNetwork(seed, 3000);
    Random random(seed + 1);
    const auto variables = static_cast<int32_t>(network.options.size());
    Choice first, rest;
    std::vector<int32_t> list;
    for (int32_t variable = 0; variable < variables; ++variable) {
      first.push_back(random.below(network.options[variable]));
      rest.push_back(random.below(network.options[variable]));
      if (random.below(3) > 0)
        list.push_back(variable);
    }
    random.shuffle(list);
    Crossings crossings(network, list, first, rest);
    for (size_t count : {crossings.size(), size_t(0), crossings.size() / 2}) {
      const Choice choice = crossings.at(count);
      size_t taken = 0;
      for (int32_t variable : list)
        if (first[variable] != rest[variable])
          EXPECT_EQ(choice[variable], (taken++ < count ? first : rest)[variable]);
        else
          EXPECT_EQ(choice[variable], first[variable]);
      EXPECT_EQ(taken, crossings.size());
      if (static_cast<int32_t>(list.size()) + 1 == variables) // the one that is left takes what is cheapest
        for (int32_t variable = 0; variable < variables; ++variable)
          if (std::ranges::find(list, variable) == list.end())
            for (int32_t option = 0; option < network.options[variable]; ++option) {
              Choice other = choice;
              other[variable] = option;
              EXPECT_LE(costOf(network, choice), costOf(network, other)) << "seed " << seed;
            }
    }
  }
}
