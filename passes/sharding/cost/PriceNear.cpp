// Prices of what is near the least: of the terms in which it differs.
#include "passes/sharding/cost/StepModel.h"

#include <algorithm>
#include <iterator>

namespace msc::passes {

StepModel::Terms StepModel::termsOf(const std::vector<search::Change> &changes) {
  if (termsOfVariables.empty()) {
    termsOfVariables.resize(costs.options.size());
    for (size_t i = 0; i < costs.tables.size(); ++i)
      for (int32_t variable : costs.tables[i].scope)
        if (i < firstOwn)
          termsOfVariables[variable].tables.push_back(static_cast<int32_t>(i));
        else
          termsOfVariables[variable].own.push_back(static_cast<int32_t>(i - firstOwn));
    for (size_t i = 0; i < costs.shared.size(); ++i) {
      termsOfVariables[costs.shared[i].producer].shared.push_back(static_cast<int32_t>(i));
      for (const search::SharedCost::Reader &reader : costs.shared[i].readers)
        termsOfVariables[reader.variable].shared.push_back(static_cast<int32_t>(i));
    }
  }
  Terms terms;
  for (auto list : {&Terms::own, &Terms::tables, &Terms::shared}) {
    for (const search::Change &change : changes)
      std::ranges::copy(termsOfVariables[change.variable].*list, std::back_inserter(terms.*list));
    std::ranges::sort(terms.*list);
    const auto repeated = std::ranges::unique(terms.*list);
    (terms.*list).erase(repeated.begin(), repeated.end());
  }
  return terms;
}

/// Under prices as they are.
double StepModel::usOf(const Terms &terms, const search::Choice &choice) const {
  double us = 0;
  for (int32_t op : terms.own)
    us += usOf(own[op][choice[op]].later) + usOf(own[op][choice[op]].first);
  for (int32_t table : terms.tables)
    us += search::costOf(costs.tables[table], choice, costs.options);
  for (int32_t flow : terms.shared) {
    const std::vector<Price> &row = sharedPrices[flow][rowOf(flow, choice)];
    for (int32_t item : search::itemsAsked(costs.shared[flow], choice))
      us += prices.us(row[item]) * costs.shared[flow].times;
  }
  return us;
}

bool StepModel::makeExact(const Terms &terms, const search::Choice &choice) {
  bool changes = false;
  for (int32_t op : terms.own)
    changes |= makeOwnExact(op, choice[op]);
  for (int32_t flow : terms.shared)
    changes |= makeFlowExact(flow, choice);
  return changes;
}

void StepModel::priceAll(const search::Nearest &near) {
  bool changes = false;
  search::Choice choice = near.best.choice;
  for (const search::NearAssignment &other : near.others) {
    for (auto [variable, option] : other.changes)
      choice[variable] = option;
    changes |= makeExact(termsOf(other.changes), choice);
    for (const search::Change &change : other.changes)
      choice[change.variable] = near.best.choice[change.variable];
  }
  if (changes)
    refresh();
}

void StepModel::priceNear(const search::Nearest &near, double us) {
  bool changes = false;
  const double usOfBest = search::costOf(costs, near.best.choice);
  search::Choice choice = near.best.choice;
  for (const search::NearAssignment &other : near.others) {
    if (other.cost >= us)
      break;
    const Terms terms = termsOf(other.changes);
    const double besides = usOfBest < search::infinity ? usOfBest - usOf(terms, near.best.choice) : 0;
    for (auto [variable, option] : other.changes)
      choice[variable] = option;
    if (besides + usOf(terms, choice) < us) {
      changes |= makeExact(terms, choice);
      us = std::min(us, usOfBest < search::infinity ? besides + usOf(terms, choice) : us);
    }
    for (const search::Change &change : other.changes)
      choice[change.variable] = near.best.choice[change.variable];
  }
  if (changes)
    refresh();
}

} // namespace msc::passes
