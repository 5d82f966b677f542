// Random networks that are small enough to go through all assignments.
#pragma once

#include "passes/sharding/search/CostNetwork.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>

namespace msc::search::test {

/// How many random networks a test looks at: `few`, or with MSC_LONG=1 many.
inline int rounds(int few, int many) {
  return std::getenv("MSC_LONG") ? many : few;
}

class Random {
public:
  explicit Random(uint64_t seed) : engine(seed), whole(below(2) == 0), forbids(below(3) == 0) {}

  int32_t below(int32_t bound) { return static_cast<int32_t>(engine() % uint64_t(bound)); }
  /// Small whole numbers in every other network, so that many assignments tie and sums are exact.
  double cost() {
    if (forbids && below(6) == 0)
      return infinity;
    return whole ? below(8) : std::uniform_real_distribution<double>(0, 10)(engine);
  }
  /// Never infinite.
  double price() { return whole ? below(5) : std::uniform_real_distribution<double>(0, 5)(engine); }
  double anyPrice() { return forbids && below(20) == 0 ? infinity : price(); }
  std::vector<double> costs(size_t count) {
    std::vector<double> values(count);
    for (double &value : values)
      value = cost();
    return values;
  }
  template <typename T> void shuffle(std::vector<T> &values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(static_cast<int32_t>(i))]);
  }

private:
  std::mt19937_64 engine;
  bool whole, forbids;
};

inline double assignments(const std::vector<int32_t> &options) {
  double product = 1;
  for (int32_t count : options)
    product *= count;
  return product;
}

/// Options of `variables` variables, at most `most` each, with at most `limit` assignments.
inline std::vector<int32_t> randomOptions(Random &random, int32_t variables, int32_t most, double limit) {
  std::vector<int32_t> options(variables);
  for (int32_t &count : options)
    count = 1 + random.below(most);
  while (assignments(options) > limit)
    options[random.below(variables)] = 1 + random.below(2);
  return options;
}

inline Table randomTable(Random &random, const std::vector<int32_t> &options, std::vector<int32_t> scope) {
  size_t size = 1;
  for (int32_t variable : scope)
    size *= options[variable];
  std::vector<double> costs = random.costs(size);
  // Some rows are equal, so that options are alike.
  if (scope.size() == 2 && random.below(2))
    for (int32_t row = 1; row < options[scope[0]]; ++row)
      if (random.below(2))
        std::copy_n(costs.begin(), options[scope[1]], costs.begin() + row * options[scope[1]]);
  return {std::move(scope), std::move(costs)};
}

inline SharedCost randomShared(Random &random, const std::vector<int32_t> &producerAndReaders,
                               const std::vector<int32_t> &options) {
  SharedCost shared;
  shared.producer = producerAndReaders[0];
  const int32_t classes = 1 + random.below(3), items = 1 + random.below(5);
  for (int32_t option = 0; option < options[shared.producer]; ++option)
    shared.producerClass.push_back(random.below(classes));
  for (size_t r = 1; r < producerAndReaders.size(); ++r) {
    SharedCost::Reader reader{producerAndReaders[r], {}};
    for (int32_t option = 0; option < options[reader.variable]; ++option) {
      reader.items.emplace_back();
      for (int32_t item = 0; item < items; ++item)
        if (random.below(items) == 0)
          reader.items.back().push_back(item);
    }
    shared.readers.push_back(std::move(reader));
  }
  for (int32_t c = 0; c < classes; ++c) {
    shared.costs.emplace_back();
    for (int32_t item = 0; item < items; ++item)
      shared.costs.back().push_back(random.anyPrice());
  }
  shared.times = 1 + random.below(3);
  return shared;
}

/// Distinct variables of `from`, at most `most`, at least one.
inline std::vector<int32_t> randomSubset(Random &random, std::vector<int32_t> from, size_t most) {
  random.shuffle(from);
  from.resize(std::min<size_t>(from.size(), 1 + random.below(static_cast<int32_t>(most))));
  return from;
}

/// Chains, trees, grids, stars with shared costs, anything.
inline CostNetwork randomNetwork(uint64_t seed, double limit = 20000) {
  Random random(seed);
  CostNetwork network;
  const int32_t variables = 1 + random.below(9);
  network.options = randomOptions(random, variables, 2 + random.below(6), limit);
  network.constant = random.price();
  auto table = [&](std::vector<int32_t> scope) {
    network.tables.push_back(randomTable(random, network.options, std::move(scope)));
  };
  std::vector<int32_t> all(variables);
  for (int32_t variable = 0; variable < variables; ++variable) {
    all[variable] = variable;
    table({variable});
  }
  const int32_t kind = random.below(5);
  for (int32_t variable = 1; variable < variables; ++variable) {
    if (kind == 0)
      table({variable - 1, variable});
    else if (kind == 1)
      table({variable, random.below(variable)});
    else if (kind == 2 && variable % 3)
      table({variable - 1, variable});
    if (kind == 2 && variable >= 3)
      table({variable, variable - 3});
  }
  if (kind == 3 && variables > 1)
    network.shared.push_back(randomShared(random, all, network.options));
  if (kind >= 3)
    for (int32_t i = random.below(6); i > 0; --i)
      table(randomSubset(random, all, 3));
  if (kind == 4)
    for (int32_t i = random.below(4); i > 0; --i)
      network.shared.push_back(randomShared(random, randomSubset(random, all, 6), network.options));
  return network;
}

/// Calls `visit` with every assignment, in lexicographic order.
inline void forEachChoice(const std::vector<int32_t> &options, const std::function<void(const Choice &)> &visit) {
  Choice choice(options.size());
  while (true) {
    visit(choice);
    size_t i = options.size();
    while (i > 0 && ++choice[i - 1] == options[i - 1])
      choice[--i] = 0;
    if (i == 0)
      return;
  }
}

inline double leastByForce(const CostNetwork &network) {
  double least = infinity;
  forEachChoice(network.options, [&](const Choice &choice) { least = std::min(least, costOf(network, choice)); });
  return least;
}

/// Equal but for the rounding of sums in another order.
inline bool isNear(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

} // namespace msc::search::test
