#include "passes/sharding/Search.h"

namespace msc::passes {

SearchResult searchOptimal(const Problem &problem, const StepModel &model) {
  search::Solution found = search::solveExactly(model.network());
  SearchResult result{.us = found.cost, .boundUs = found.bound, .isOptimal = found.optimal};
  for (size_t i = 0; i < problem.operators.size(); ++i)
    result.choices.push_back({model.options(i).pieces[found.choice[i]],
                              problem.operators[i].configured ? "user" : "searched"});
  return result;
}

} // namespace msc::passes
