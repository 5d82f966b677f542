#include "passes/sharding/PricedSolver.h"

#include "passes/sharding/SearchParts.h"

#include <utility>

namespace msc::passes {

RoundsModel::Amounts multiplied(RoundsModel::Amounts amounts, double multiplier) {
  for (std::vector<double> &list : amounts)
    for (double &amount : list)
      amount *= multiplier;
  return amounts;
}

bool PricedSolver::isSpent() {
  const int64_t now = model.operationsOfPricing();
  left -= std::exchange(unpriced, now) - now;
  return left <= 0;
}

search::BudgetSolution PricedSolver::alikeWithin(const search::Budget &budget, const search::BudgetLimits &limits) {
  for (PricedAtOnce many;;) {
    search::BudgetSolution found = search::solveWithin(model.network(), budget, limits);
    if (!model.makeExact(found.solution.choice))
      return found;
    if (isSpent()) {
      found.solution.cost = search::costOf(model.network(), found.solution.choice);
      return found;
    }
    std::vector<search::Choice> choices;
    const search::CostNetwork near = priced(model.network(), multiplied(budget.amounts, found.multiplier));
    for (search::Solution &solution : search::nearestAssignments(near, many.next(), limits.solve))
      choices.push_back(std::move(solution.choice));
    model.makeExact(choices);
  }
}

search::RepeatedBudgetSolution PricedSolver::within(const search::Budget &budget, const search::BudgetLimits &limits) {
  const search::BudgetSolution alike = alikeWithin(budget, limits);
  if (!rounds.hasSections())
    return {alike, {alike.solution.choice, {}}};
  const search::Budget perRound{rounds.perRound(budget.amounts), budget.limit};
  for (PricedAtOnce many;;) {
    search::RepeatedBudgetSolution found = search::solveWithin(rounds.network(), perRound, limits);
    if (!rounds.makeExact(found.choice))
      return found;
    if (isSpent()) {
      found.summary.solution.cost = search::costOf(rounds.network(), found.choice);
      return found;
    }
    priceEnds(rounds, found.choice, many.next(), multiplied(perRound.amounts, found.summary.multiplier), limits.solve);
  }
}

search::RepeatedBudgetSolution PricedSolver::withinInRounds(const search::Budget &budget, const search::BudgetLimits &limits) {
  for (PricedAtOnce many;;) {
    const search::RepeatedNetwork network = rounds.network();
    const search::Unrolled unrolled = search::unroll(network);
    search::BudgetSolution found = search::solveWithin(unrolled.network, budget, limits);
    search::RepeatedChoice choice = search::rolled(network, unrolled, found.solution.choice);
    if (!rounds.makeExact(choice))
      return {std::move(found), std::move(choice)};
    if (isSpent()) {
      found.solution.cost = search::costOf(rounds.network(), choice);
      return {std::move(found), std::move(choice)};
    }
    const search::CostNetwork near = priced(unrolled.network, multiplied(budget.amounts, found.multiplier));
    std::vector<search::RepeatedChoice> choices;
    for (const search::Solution &solution : search::nearestAssignments(near, many.next(), limits.solve))
      choices.push_back(search::rolled(network, unrolled, solution.choice));
    rounds.makeExact(choices);
  }
}

SimulatedChoice PricedSolver::at(const RoundsModel::Amounts &perRound, double usPerAmount, const search::SolveLimits &limits) {
  const RoundsModel::Amounts added = multiplied(perRound, usPerAmount);
  for (PricedAtOnce many;;) {
    search::RepeatedSolution found = search::solveExactly(rounds.network(added), limits);
    if (!rounds.makeExact(found.choice) || isSpent()) {
      const double us = search::costOf(rounds.network(), found.choice);
      return {std::move(found.choice), us, 0};
    }
    priceEnds(rounds, found.choice, many.next(), added, limits);
  }
}

} // namespace msc::passes
