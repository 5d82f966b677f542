#include "passes/sharding/Search.h"

#include "passes/sharding/search/Budget.h"

namespace msc::passes {

static SearchResult resultOf(const Problem &problem, const StepModel &model, const search::Solution &found) {
  SearchResult result{.us = found.cost, .boundUs = found.bound, .isOptimal = found.optimal};
  for (size_t i = 0; i < problem.operators.size(); ++i)
    result.choices.push_back({model.options(i).pieces[found.choice[i]],
                              problem.operators[i].configured ? "user" : "searched"});
  return result;
}

SearchResult searchOptimal(const Problem &problem, const StepModel &model) {
  search::Solution found = search::solveExactly(model.network());
  SearchResult result = resultOf(problem, model, found);
  result.bytes = search::amountOf({model.bytes(), 0}, found.choice);
  return result;
}

SearchResult searchWithin(const Problem &problem, const StepModel &model, double bytes) {
  search::BudgetSolution found = search::solveWithin(model.network(), {model.bytes(), bytes});
  SearchResult result = resultOf(problem, model, found.solution);
  result.bytes = found.amount;
  result.leastBytes = found.least;
  return result;
}

} // namespace msc::passes
