#include "passes/sharding/search/Descent.h"

#include <algorithm>

namespace msc::search {

namespace {

class Descent {
public:
  Descent(const CostNetwork &network, Choice choice) : network(network), choice(std::move(choice)) {
    tablesOf.resize(network.options.size());
    sharedOf.resize(network.options.size());
    for (const Table &table : network.tables)
      for (int32_t variable : table.scope)
        tablesOf[variable].push_back(&table);
    for (const SharedCost &shared : network.shared) {
      sharedOf[shared.producer].push_back(&shared);
      for (const SharedCost::Reader &reader : shared.readers)
        sharedOf[reader.variable].push_back(&shared);
      items = std::max(items, shared.costs.empty() ? size_t(0) : shared.costs[0].size());
    }
    asked.resize(items);
  }

  Choice run(int rounds) {
    for (bool changed = true; changed && rounds > 0; --rounds) {
      changed = false;
      for (size_t variable = 0; variable < choice.size(); ++variable)
        changed |= improve(static_cast<int32_t>(variable));
    }
    return std::move(choice);
  }

private:
  bool improve(int32_t variable) {
    costs.assign(network.options[variable], 0);
    for (const Table *table : tablesOf[variable])
      add(*table, variable);
    for (const SharedCost *shared : sharedOf[variable])
      add(*shared, variable);
    const int32_t best = static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    if (!(costs[best] < costs[choice[variable]]))
      return false;
    choice[variable] = best;
    return true;
  }

  void add(const Table &table, int32_t variable) {
    size_t index = 0, stride = 0;
    for (int32_t other : table.scope) {
      index = index * network.options[other] + (other == variable ? 0 : choice[other]);
      stride = other == variable ? 1 : stride * network.options[other];
    }
    for (size_t option = 0; option < costs.size(); ++option)
      costs[option] += table.costs[index + option * stride];
  }

  void add(const SharedCost &shared, int32_t variable) {
    const SharedCost::Reader *own = nullptr;
    std::fill(asked.begin(), asked.end(), 0);
    for (const SharedCost::Reader &reader : shared.readers)
      if (reader.variable == variable)
        own = &reader;
      else
        for (int32_t item : reader.items[choice[reader.variable]])
          asked[item] = 1;
    for (size_t option = 0; option < costs.size(); ++option) {
      const size_t producer = own ? choice[shared.producer] : option;
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

  const CostNetwork &network;
  Choice choice;
  std::vector<std::vector<const Table *>> tablesOf;
  std::vector<std::vector<const SharedCost *>> sharedOf;
  size_t items = 0;
  std::vector<char> asked;
  std::vector<double> costs;
};

} // namespace

Choice descended(const CostNetwork &network, Choice choice, int rounds) {
  return Descent(network, std::move(choice)).run(rounds);
}

} // namespace msc::search
