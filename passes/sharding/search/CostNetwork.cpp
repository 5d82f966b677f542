#include "passes/sharding/search/CostNetwork.h"

#include <algorithm>

namespace msc::search {

double costOf(const Table &table, const Choice &choice, const std::vector<int32_t> &options) {
  size_t index = 0;
  for (int32_t variable : table.scope)
    index = index * options[variable] + choice[variable];
  return table.costs[index];
}

std::vector<int32_t> itemsAsked(const SharedCost &shared, const Choice &choice) {
  std::vector<int32_t> asked;
  for (const SharedCost::Reader &reader : shared.readers) {
    const std::vector<int32_t> &items = reader.items[choice[reader.variable]];
    asked.insert(asked.end(), items.begin(), items.end());
  }
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  return asked;
}

static double costOf(const SharedCost &shared, const Choice &choice) {
  const std::vector<double> &costs = shared.costs[shared.producerClass[choice[shared.producer]]];
  double sum = 0;
  for (int32_t item : itemsAsked(shared, choice))
    sum += costs[item];
  return sum * shared.times;
}

double costOf(const CostNetwork &network, const Choice &choice) {
  double sum = network.constant;
  for (const Table &table : network.tables)
    sum += costOf(table, choice, network.options);
  for (const SharedCost &shared : network.shared)
    sum += costOf(shared, choice);
  return sum;
}

} // namespace msc::search
