#include "passes/sharding/LocalMoves.h"

#include <algorithm>
#include <iterator>

namespace msc::passes {

static constexpr size_t operatorsAtPlace = 4, mostListed = 64, mostLookedAt = 8;
static constexpr int64_t mostWork = 1'000'000;
static constexpr double least = 1e-5; ///< of its cost, what a move saves

search::CostNetwork priced(search::CostNetwork network, RoundsModel::Amounts added) {
  for (size_t variable = 0; variable < added.size(); ++variable)
    if (!added[variable].empty())
      network.tables.push_back({{static_cast<int32_t>(variable)}, std::move(added[variable])});
  return network;
}

std::vector<int32_t> operatorsInRounds(const Problem &problem, const search::RepeatedNetwork &shape,
                                       const std::vector<std::vector<int32_t>> &inRounds) {
  const size_t operators = problem.operators.size();
  std::vector<int32_t> order;
  std::vector<char> isDone(operators);
  auto take = [&](int32_t variable, size_t round) {
    isDone[variable] = 1;
    order.push_back(inRounds[variable][round]);
  };
  std::vector<const std::vector<int32_t> *> sectionOf(operators);
  for (const search::Section &section : shape.sections)
    for (int32_t variable : section.variables)
      if (static_cast<size_t>(variable) < operators)
        sectionOf[variable] = &section.variables;
  for (size_t op = 0; op < operators; ++op)
    if (!isDone[op] && !sectionOf[op])
      take(static_cast<int32_t>(op), 0);
    else if (!isDone[op])
      for (size_t round = 0; round < inRounds[op].size(); ++round)
        for (int32_t variable : *sectionOf[op])
          if (static_cast<size_t>(variable) < operators)
            take(variable, round);
  return order;
}

LocalMoves::LocalMoves(const Problem &problem, RoundsModel &rounds, const search::RepeatedNetwork &shape,
                       const std::vector<std::vector<int32_t>> &inRounds, const RoundsModel::Amounts &prices, double most,
                       const search::SolveLimits &limits, std::function<bool(SimulatedChoice &)> look)
    : rounds(rounds), shape(shape), inRounds(inRounds), prices(prices), most(most), limits(limits), look(std::move(look)) {
  readNetwork();
  findPlaces(problem);
}

void LocalMoves::readNetwork() {
  unrolled = search::unroll(rounds.network());
  withPrices = priced(unrolled.network, prices);
}

/// How parameters are stored, and the like, follows from the operators that have terms with it.
void LocalMoves::findPlaces(const Problem &problem) {
  const std::vector<int32_t> order = operatorsInRounds(problem, shape, inRounds);
  for (auto first = order.begin(); first != order.end(); ++first)
    places.emplace_back(first, first + std::min<ptrdiff_t>(operatorsAtPlace, order.end() - first));
  for (size_t op = 0; op < problem.operators.size(); ++op)
    if (inRounds[op].size() > 1)
      places.emplace_back(inRounds[op].begin(), inRounds[op].end());
  const std::set<int32_t> operators(order.begin(), order.end());
  std::vector<std::set<int32_t>> followers(unrolled.network.options.size());
  auto add = [&](const std::vector<int32_t> &together) {
    for (int32_t follower : together)
      if (!operators.contains(follower))
        for (int32_t variable : together)
          followers[variable].insert(follower);
  };
  for (const search::Table &table : unrolled.network.tables)
    add(table.scope);
  for (const search::SharedCost &shared : unrolled.network.shared) {
    std::vector<int32_t> together{shared.producer};
    std::ranges::transform(shared.readers, std::back_inserter(together), &search::SharedCost::Reader::variable);
    add(together);
  }
  for (std::set<int32_t> &place : places)
    for (int32_t variable : std::vector<int32_t>(place.begin(), place.end()))
      place.insert(followers[variable].begin(), followers[variable].end());
}

/// Priced exactly; what bytes cost decides which come first.
std::vector<SimulatedChoice> LocalMoves::cheaperAt(const std::set<int32_t> &place, const search::Choice &now, double us) {
  constexpr int mostTimes = 8;
  std::vector<SimulatedChoice> found;
  for (int i = 0; i < mostTimes; ++i) {
    found.clear();
    std::vector<search::RepeatedChoice> choices;
    work += static_cast<int64_t>(now.size());
    for (const search::NearAssignment &near : search::bestBeside(withPrices, now, place, mostListed, limits)) {
      search::Choice choice = now;
      for (auto [variable, option] : near.changes)
        choice[variable] = option;
      const double takes = search::costOf(unrolled.network, choice);
      if (near.changes.empty() || takes >= us * (1 - least))
        continue;
      found.push_back({search::rolled(shape, unrolled, choice), takes, 0});
      choices.push_back(found.back().choice);
      if (found.size() == mostLookedAt)
        break;
    }
    if (choices.empty() || !rounds.makeExact(choices))
      return found;
    readNetwork();
  }
  return {}; // prices are bounds still
}

void LocalMoves::descend(SimulatedChoice from, double usPerByte) {
  auto above = [&](const SimulatedChoice &choice) { return usPerByte * std::max(0.0, choice.arenaBytes - most); };
  const double steepest = 1e6 * from.us / most;
  search::Choice now = search::unrolledChoice(shape, inRounds, from.choice);
  for (size_t at = 0, idle = 0; work < mostWork; at = (at + 1) % places.size(), ++idle) {
    if (idle >= places.size()) {
      if (from.arenaBytes <= most || usPerByte > steepest)
        return;
      usPerByte *= 4;
      idle = 0;
    }
    const double us = from.us + above(from);
    for (SimulatedChoice &next : cheaperAt(places[at], now, us)) {
      if (!look(next))
        return;
      if (next.us + above(next) >= us * (1 - least))
        continue;
      from = std::move(next);
      now = search::unrolledChoice(shape, inRounds, from.choice);
      idle = 0;
      break;
    }
  }
}

} // namespace msc::passes
