#include "passes/sharding/search/TermsMap.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace msc::search {

namespace {

/// A table in whose scope a variable may stand several times.
Table withDistinctScope(const Table &table, const std::vector<int32_t> &options) {
  Table result;
  for (int32_t variable : table.scope)
    if (std::find(result.scope.begin(), result.scope.end(), variable) == result.scope.end())
      result.scope.push_back(variable);
  if (result.scope.size() == table.scope.size())
    return table;
  size_t size = 1;
  for (int32_t variable : result.scope)
    size *= options[variable];
  Choice choice(options.size());
  for (size_t index = 0; index < size; ++index) {
    size_t rest = index, old = 0;
    for (size_t a = result.scope.size(); a-- > 0; rest /= options[result.scope[a]])
      choice[result.scope[a]] = static_cast<int32_t>(rest % options[result.scope[a]]);
    for (int32_t variable : table.scope)
      old = old * options[variable] + choice[variable];
    result.costs.push_back(table.costs[old]);
  }
  return result;
}

/// A reader that stands several times asks for what any of them asks for.
void joinReaders(SharedCost &shared) {
  std::vector<SharedCost::Reader> joined;
  for (SharedCost::Reader &reader : shared.readers) {
    auto known = std::find_if(joined.begin(), joined.end(),
                              [&](const SharedCost::Reader &other) { return other.variable == reader.variable; });
    if (known == joined.end()) {
      joined.push_back(std::move(reader));
      continue;
    }
    for (size_t option = 0; option < reader.items.size(); ++option) {
      std::vector<int32_t> both;
      std::set_union(known->items[option].begin(), known->items[option].end(), reader.items[option].begin(),
                     reader.items[option].end(), std::back_inserter(both));
      known->items[option] = std::move(both);
    }
  }
  shared.readers = std::move(joined);
}

/// A producer that reads its own value: what it asks for is a cost of its own, and free for the others.
void takeOutProducer(CostNetwork &to, SharedCost &shared) {
  auto own = std::find_if(shared.readers.begin(), shared.readers.end(),
                          [&](const SharedCost::Reader &reader) { return reader.variable == shared.producer; });
  if (own == shared.readers.end())
    return;
  Table alone{{shared.producer}, {}};
  std::map<std::pair<int32_t, std::vector<int32_t>>, int32_t> classes;
  std::vector<std::vector<double>> costs;
  for (size_t option = 0; option < own->items.size(); ++option) {
    const std::vector<int32_t> &items = own->items[option];
    const std::vector<double> &row = shared.costs[shared.producerClass[option]];
    double sum = 0;
    for (int32_t item : items)
      sum += row[item];
    alone.costs.push_back(sum * shared.times);
    auto [known, isNew] = classes.try_emplace({shared.producerClass[option], items}, int32_t(costs.size()));
    if (isNew) {
      costs.push_back(row);
      for (int32_t item : items)
        costs.back()[item] = 0;
    }
    shared.producerClass[option] = known->second;
  }
  shared.costs = std::move(costs);
  shared.readers.erase(own);
  to.tables.push_back(std::move(alone));
}

} // namespace

void append(CostNetwork &to, const Terms &terms, const VariableMap &rename, double times) {
  for (Table table : terms.tables) {
    for (int32_t &variable : table.scope)
      variable = rename(variable);
    for (double &cost : table.costs)
      cost *= times;
    to.tables.push_back(withDistinctScope(table, to.options));
  }
  for (SharedCost shared : terms.shared) {
    if (shared.readers.empty())
      continue;
    shared.producer = rename(shared.producer);
    for (SharedCost::Reader &reader : shared.readers)
      reader.variable = rename(reader.variable);
    shared.times *= times;
    joinReaders(shared);
    takeOutProducer(to, shared);
    to.shared.push_back(std::move(shared));
  }
}

namespace {

template <typename T> std::vector<T> picked(const std::vector<T> &all, const std::vector<int32_t> *kept) {
  if (!kept)
    return all;
  std::vector<T> some;
  for (int32_t option : *kept)
    some.push_back(all[option]);
  return some;
}

Table projected(const Table &table, const std::vector<int32_t> &options, const OptionMap &kept) {
  Table result{table.scope, {}};
  std::vector<const std::vector<int32_t> *> picks;
  std::vector<size_t> sizes, at(table.scope.size());
  size_t count = 1;
  for (int32_t reference : table.scope) {
    picks.push_back(kept(reference));
    sizes.push_back(picks.back() ? picks.back()->size() : options[variableOf(reference)]);
    count *= sizes.back();
  }
  for (; count > 0; --count) {
    size_t index = 0;
    for (size_t a = 0; a < at.size(); ++a)
      index = index * options[variableOf(table.scope[a])] + (picks[a] ? (*picks[a])[at[a]] : at[a]);
    result.costs.push_back(table.costs[index]);
    for (size_t a = at.size(); a-- > 0 && ++at[a] == sizes[a];)
      at[a] = 0;
  }
  return result;
}

} // namespace

Terms projected(const Terms &terms, const std::vector<int32_t> &options, const OptionMap &kept) {
  Terms result;
  for (const Table &table : terms.tables)
    result.tables.push_back(projected(table, options, kept));
  for (SharedCost shared : terms.shared) {
    shared.producerClass = picked(shared.producerClass, kept(shared.producer));
    for (SharedCost::Reader &reader : shared.readers)
      reader.items = picked(reader.items, kept(reader.variable));
    result.shared.push_back(std::move(shared));
  }
  return result;
}

static void keepOptions(Table &table, const std::vector<int32_t> &options, int32_t variable, const std::vector<int32_t> &left) {
  std::vector<size_t> sizes;
  for (int32_t reference : table.scope)
    sizes.push_back(options[variableOf(reference)]);
  for (size_t at = 0; at < sizes.size(); ++at) {
    if (variableOf(table.scope[at]) != variable)
      continue;
    const size_t inner = std::accumulate(sizes.begin() + at + 1, sizes.end(), size_t(1), std::multiplies<>());
    const size_t block = inner * sizes[at], blocks = table.costs.size() / block;
    auto to = table.costs.begin();
    for (size_t i = 0; i < blocks; ++i)
      for (int32_t option : left)
        to = std::copy_n(table.costs.begin() + i * block + option * inner, inner, to);
    table.costs.resize(blocks * inner * left.size());
    sizes[at] = left.size();
  }
}

/// Of the variable in whatever round terms mean it.
static void keepOptions(std::vector<Table> &tables, std::vector<SharedCost> &shared, const std::vector<int32_t> &options,
                        int32_t variable, const std::vector<int32_t> &left) {
  for (Table &table : tables)
    keepOptions(table, options, variable, left);
  for (SharedCost &cost : shared) {
    if (variableOf(cost.producer) == variable)
      cost.producerClass = picked(cost.producerClass, &left);
    for (SharedCost::Reader &reader : cost.readers)
      if (variableOf(reader.variable) == variable)
        reader.items = picked(reader.items, &left);
  }
}

void keepOptions(CostNetwork &network, int32_t variable, const std::vector<int32_t> &left) {
  keepOptions(network.tables, network.shared, network.options, variable, left);
  network.options[variable] = static_cast<int32_t>(left.size());
}

void keepOptions(RepeatedNetwork &network, int32_t variable, const std::vector<int32_t> &left) {
  for (Section &section : network.sections)
    for (Terms *terms : {&section.within, &section.carried, &section.entry, &section.exit})
      keepOptions(terms->tables, terms->shared, network.network.options, variable, left);
  keepOptions(network.network, variable, left);
}

} // namespace msc::search
