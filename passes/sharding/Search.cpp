#include "passes/sharding/Search.h"

#include "passes/sharding/search/Budget.h"

namespace msc::passes {

SearchResult resultOf(const Problem &problem, const StepModel &model, const search::Solution &found) {
  SearchResult result{.us = found.cost, .boundUs = found.bound, .isOptimal = found.optimal};
  for (size_t i = 0; i < problem.operators.size(); ++i)
    result.choices.push_back({model.options(i).pieces[found.choice[i]],
                              problem.operators[i].configured ? "user" : "searched"});
  result.bytes = search::amountOf({model.bytes(), 0}, found.choice);
  return result;
}

namespace {

/// What a solution says of rounds, in words of the problem.
SearchResult resultOf(const Problem &problem, const StepModel &model, const RoundsModel &rounds, const search::RepeatedSolution &found) {
  search::Solution first = found.summary;
  first.choice.resize(model.network().options.size());
  SearchResult result = resultOf(problem, model, first);
  for (size_t section = 0; section < found.choice.runs.size(); ++section) {
    const std::vector<search::Run> &runs = found.choice.runs[section];
    const std::vector<int32_t> &variables = rounds.variablesOf(section);
    for (const search::Run &run : runs)
      for (size_t i = 0; i < variables.size(); ++i)
        if (const std::vector<double> &bytes = rounds.bytes()[variables[i]]; !bytes.empty())
          result.bytes += static_cast<double>(run.rounds) * bytes[run.options[i]];
    for (int32_t variable : variables) // all rounds like the first one
      if (const std::vector<double> &bytes = model.bytes()[variable]; !bytes.empty())
        result.bytes -= bytes[found.summary.choice[variable]];
    if (runs.size() == 1)
      continue;
    const std::vector<int32_t> operators(variables.begin(), std::ranges::lower_bound(variables, static_cast<int32_t>(problem.operators.size())));
    RoundsTaken &taken = result.rounds.emplace_back(RoundsTaken{rounds.repeatOf(section), operators, {}});
    for (const search::Run &run : runs) {
      auto &[count, pieces] = taken.runs.emplace_back(RoundsTaken::Run{run.rounds, {}});
      for (size_t i = 0; i < operators.size(); ++i)
        pieces.push_back(model.options(operators[i]).pieces[run.options[i]]);
    }
  }
  return result;
}

// Prices are bounds at first: what is found is priced exactly, and found anew, until it does not change any more.

/// With what is found, so many that are nearly as good: solving takes longer than pricing them.
constexpr size_t pricedAtOnce = 64;

void priceNear(StepModel &model, const std::vector<search::Solution> &near, double us = search::infinity) {
  std::vector<search::Choice> choices;
  for (const search::Solution &solution : near)
    if (solution.cost < us)
      choices.push_back(solution.choice);
  model.makeExact(choices);
}

/// All rounds of a repeat alike.
search::Solution searchAlike(StepModel &model) {
  while (true) {
    std::vector<search::Solution> found = search::nearestAssignments(model.network(), pricedAtOnce);
    if (!model.makeExact(found.front().choice))
      return std::move(found.front());
    priceNear(model, found, search::costOf(model.network(), found.front().choice));
  }
}

/// Costs, and so many more for every byte.
void addPriced(search::CostNetwork &network, const std::vector<std::vector<double>> &bytes, double multiplier) {
  for (size_t variable = 0; variable < bytes.size(); ++variable)
    if (std::vector<double> amounts = bytes[variable]; !amounts.empty() && multiplier > 0) {
      for (double &amount : amounts)
        amount *= multiplier;
      network.tables.push_back({{static_cast<int32_t>(variable)}, std::move(amounts)});
    }
}

search::BudgetSolution searchAlikeWithin(StepModel &model, double bytes) {
  const search::Budget budget{model.bytes(), bytes};
  while (true) {
    search::BudgetSolution found = search::solveWithin(model.network(), budget);
    if (!model.makeExact(found.solution.choice))
      return found;
    search::CostNetwork priced = model.network();
    addPriced(priced, budget.amounts, found.multiplier);
    priceNear(model, search::nearestAssignments(priced, pricedAtOnce));
  }
}

/// Prices what is near the least, with the first and the last rounds apart.
void priceEnds(RoundsModel &rounds, double multiplier = 0) {
  while (true) {
    const search::RepeatedNetwork network = rounds.network(multiplier);
    const search::EndsApart apart(network);
    bool changes = false;
    for (const search::Solution &solution : search::nearestAssignments(apart.network(), pricedAtOnce))
      changes |= rounds.makeExact(apart.rolled(solution.choice));
    if (!changes)
      return;
  }
}

} // namespace

SearchResult searchOptimal(const Problem &problem, StepModel &model) {
  search::Solution alike = searchAlike(model);
  RoundsModel rounds(problem, model);
  if (!rounds.hasSections())
    return resultOf(problem, model, alike);
  while (true) {
    search::RepeatedSolution found = search::solveExactly(rounds.network());
    if (!rounds.makeExact(found.choice))
      return resultOf(problem, model, rounds, found);
    priceEnds(rounds);
  }
}

SearchResult searchWithin(const Problem &problem, StepModel &model, double bytes) {
  search::BudgetSolution alike = searchAlikeWithin(model, bytes);
  RoundsModel rounds(problem, model);
  if (!rounds.hasSections()) {
    SearchResult result = resultOf(problem, model, alike.solution);
    result.leastBytes = alike.least;
    return result;
  }
  const search::Budget budget{rounds.bytes(), bytes};
  while (true) {
    search::RepeatedBudgetSolution found = search::solveWithin(rounds.network(), budget);
    if (!rounds.makeExact(found.choice)) {
      SearchResult result = resultOf(problem, model, rounds, {found.choice, found.summary.solution});
      result.leastBytes = found.summary.least;
      return result;
    }
    priceEnds(rounds, found.summary.multiplier);
  }
}

} // namespace msc::passes
