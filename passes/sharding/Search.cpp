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

// Prices are bounds at first: what is found is priced exactly, and found anew, until it does not change any more.

/// With what is found, so many that are nearly as good: solving takes longer than pricing them.
static constexpr size_t pricedAtOnce = 64;

SearchResult searchOptimal(const Problem &problem, StepModel &model) {
  while (true) {
    std::vector<search::Solution> found = search::nearestAssignments(model.network(), pricedAtOnce);
    if (!model.makeExact(found.front().choice))
      return resultOf(problem, model, found.front());
    const double us = search::costOf(model.network(), found.front().choice);
    std::vector<search::Choice> near;
    for (search::Solution &solution : found)
      if (solution.cost < us)
        near.push_back(std::move(solution.choice));
    model.makeExact(near);
  }
}

SearchResult searchWithin(const Problem &problem, StepModel &model, double bytes) {
  search::BudgetSolution found;
  do
    found = search::solveWithin(model.network(), {model.bytes(), bytes});
  while (model.makeExact(found.solution.choice));
  SearchResult result = resultOf(problem, model, found.solution);
  result.leastBytes = found.least;
  return result;
}

} // namespace msc::passes
