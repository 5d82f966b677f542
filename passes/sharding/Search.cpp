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

SearchResult searchOptimal(const Problem &problem, StepModel &model) {
  search::Solution found;
  do
    found = search::solveExactly(model.network());
  while (model.makeExact(found.choice));
  return resultOf(problem, model, found);
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
