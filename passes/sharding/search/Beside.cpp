// What the options of one variable cost beside an assignment of the others.
#include "passes/sharding/search/Repeat.h"

#include <algorithm>
#include <map>
#include <set>

namespace msc::search {

namespace {

std::vector<int32_t> variablesOf(const Table &table) { return table.scope; }

std::vector<int32_t> variablesOf(const SharedCost &shared) {
  std::vector<int32_t> variables = {shared.producer};
  for (const SharedCost::Reader &reader : shared.readers)
    variables.push_back(reader.variable);
  return variables;
}

/// Some terms of a network, in numbers of their own.
struct Part {
  CostNetwork network;
  std::map<int32_t, int32_t> numbers;

  int32_t numberOf(int32_t variable, const CostNetwork &whole) {
    auto [at, isNew] = numbers.try_emplace(variable, static_cast<int32_t>(network.options.size()));
    if (isNew)
      network.options.push_back(whole.options[variable]);
    return at->second;
  }
  void add(Table table, const CostNetwork &whole) {
    for (int32_t &variable : table.scope)
      variable = numberOf(variable, whole);
    network.tables.push_back(std::move(table));
  }
  void add(SharedCost shared, const CostNetwork &whole) {
    shared.producer = numberOf(shared.producer, whole);
    for (SharedCost::Reader &reader : shared.readers)
      reader.variable = numberOf(reader.variable, whole);
    network.shared.push_back(std::move(shared));
  }
};

} // namespace

OptionCosts costsBeside(const CostNetwork &network, const Choice &choice, int32_t variable, int32_t firstFollower, const SolveLimits &limits) {
  std::set<int32_t> free = {variable};
  auto forTerms = [&](auto take) {
    for (const Table &table : network.tables)
      take(table);
    for (const SharedCost &shared : network.shared)
      take(shared);
  };
  forTerms([&](const auto &term) {
    const std::vector<int32_t> variables = variablesOf(term);
    if (std::ranges::find(variables, variable) != variables.end())
      std::ranges::copy_if(variables, std::inserter(free, free.end()), [&](int32_t other) { return other >= firstFollower; });
  });
  Part part;
  const int32_t number = part.numberOf(variable, network);
  forTerms([&](const auto &term) {
    if (std::ranges::any_of(variablesOf(term), [&](int32_t other) { return free.contains(other); }))
      part.add(term, network);
  });
  for (auto [other, own] : part.numbers)
    if (!free.contains(other))
      keepOptions(part.network, own, {choice[other]});
  return costsOfOptions(part.network, number, limits);
}

} // namespace msc::search
