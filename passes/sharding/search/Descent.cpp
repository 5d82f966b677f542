#include "passes/sharding/search/Descent.h"

#include <algorithm>

namespace msc::search {

/// From pairs (variable, number) to lists: those of variable v are values[first[v]] to values[first[v + 1] - 1].
template <typename ForEach>
static void group(size_t variables, std::vector<int32_t> &first, std::vector<int32_t> &values, ForEach forEach) {
  first.assign(variables + 1, 0);
  forEach([&](int32_t variable, int32_t) { ++first[variable + 1]; });
  for (size_t v = 0; v < variables; ++v)
    first[v + 1] += first[v];
  values.resize(first.back());
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  forEach([&](int32_t variable, int32_t number) { values[next[variable]++] = number; });
}

Neighbourhood::Neighbourhood(const CostNetwork &network, Choice choice) : network(network), current(std::move(choice)) {
  group(current.size(), firstTable, tables, [&](auto visit) {
    for (size_t i = 0; i < network.tables.size(); ++i)
      for (int32_t variable : network.tables[i].scope)
        visit(variable, static_cast<int32_t>(i));
  });
  group(current.size(), firstShared, shared, [&](auto visit) {
    for (size_t i = 0; i < network.shared.size(); ++i) {
      visit(network.shared[i].producer, static_cast<int32_t>(i));
      for (const SharedCost::Reader &reader : network.shared[i].readers)
        visit(reader.variable, static_cast<int32_t>(i));
    }
  });
}

const std::vector<double> &Neighbourhood::costsOf(int32_t variable) {
  costs.assign(network.options[variable], 0);
  for (int32_t i = firstTable[variable]; i < firstTable[variable + 1]; ++i)
    add(network.tables[tables[i]], variable);
  for (int32_t i = firstShared[variable]; i < firstShared[variable + 1]; ++i)
    add(network.shared[shared[i]], variable);
  return costs;
}

void Neighbourhood::add(const Table &table, int32_t variable) {
  size_t index = 0, stride = 0;
  for (int32_t other : table.scope) {
    index = index * network.options[other] + (other == variable ? 0 : current[other]);
    stride = other == variable ? 1 : stride * network.options[other];
  }
  for (size_t option = 0; option < costs.size(); ++option)
    costs[option] += table.costs[index + option * stride];
}

void Neighbourhood::add(const SharedCost &shared, int32_t variable) {
  const SharedCost::Reader *own = nullptr;
  asked.assign(shared.costs[0].size(), 0);
  for (const SharedCost::Reader &reader : shared.readers)
    if (reader.variable == variable)
      own = &reader;
    else
      for (int32_t item : reader.items[current[reader.variable]])
        asked[item] = 1;
  for (size_t option = 0; option < costs.size(); ++option) {
    const size_t producer = own ? current[shared.producer] : option;
    const std::vector<double> &prices = shared.costs[shared.producerClass[producer]];
    double sum = 0;
    if (own) {
      for (int32_t item : own->items[option])
        sum += asked[item] ? 0 : prices[item];
    } else {
      for (size_t item = 0; item < prices.size(); ++item)
        sum += asked[item] ? prices[item] : 0;
    }
    costs[option] += sum * shared.times;
  }
}

Choice descended(const CostNetwork &network, Choice choice, int rounds) {
  Neighbourhood neighbourhood(network, std::move(choice));
  for (bool changed = true; changed && rounds > 0; --rounds) {
    changed = false;
    for (size_t v = 0; v < network.options.size(); ++v) {
      const int32_t variable = static_cast<int32_t>(v);
      const std::vector<double> &costs = neighbourhood.costsOf(variable);
      const int32_t best = static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
      if (!(costs[best] < costs[neighbourhood.choice()[variable]]))
        continue;
      neighbourhood.set(variable, best);
      changed = true;
    }
  }
  return neighbourhood.choice();
}

} // namespace msc::search
