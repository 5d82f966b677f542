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

template <typename Take> static void forTerms(const CostNetwork &network, Take take) {
  for (const Table &table : network.tables)
    take(table);
  for (const SharedCost &shared : network.shared)
    take(shared);
}

/// The terms of some variables, all others as in an assignment.
static Part partBeside(const CostNetwork &network, const Choice &choice, const std::set<int32_t> &free) {
  Part part;
  for (int32_t variable : free)
    part.numberOf(variable, network);
  forTerms(network, [&](const auto &term) {
    if (std::ranges::any_of(variablesOf(term), [&](int32_t other) { return free.contains(other); }))
      part.add(term, network);
  });
  for (auto [other, own] : part.numbers)
    if (!free.contains(other))
      keepOptions(part.network, own, {choice[other]});
  return part;
}

OptionCosts costsBeside(const CostNetwork &network, const Choice &choice, int32_t variable, int32_t firstFollower, const SolveLimits &limits) {
  std::set<int32_t> free = {variable};
  forTerms(network, [&](const auto &term) {
    const std::vector<int32_t> variables = variablesOf(term);
    if (std::ranges::find(variables, variable) != variables.end())
      std::ranges::copy_if(variables, std::inserter(free, free.end()), [&](int32_t other) { return other >= firstFollower; });
  });
  const Part part = partBeside(network, choice, free);
  return costsOfOptions(part.network, part.numbers.at(variable), limits);
}

std::vector<NearAssignment> bestBeside(const CostNetwork &network, const Choice &choice, const std::set<int32_t> &free, size_t k, const SolveLimits &limits) {
  const Part part = partBeside(network, choice, free);
  Choice now(part.network.options.size());
  for (int32_t variable : free)
    now[part.numbers.at(variable)] = choice[variable];
  const double cost = costOf(part.network, now);
  std::vector<NearAssignment> list;
  for (const Solution &solution : bestAssignments(part.network, k, limits)) {
    NearAssignment &near = list.emplace_back(NearAssignment{solution.cost - cost, {}});
    for (int32_t variable : free)
      if (const int32_t option = solution.choice[part.numbers.at(variable)]; option != choice[variable])
        near.changes.push_back({variable, option});
  }
  return list;
}

} // namespace msc::search
