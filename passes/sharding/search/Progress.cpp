#include "passes/sharding/search/Progress.h"

#include "passes/sharding/search/Descent.h"

#include <algorithm>

namespace msc::search {

void Progress::offer(Choice choice, bool isExact) {
  if (!isExact)
    choice = descended(network, std::move(choice));
  const double cost = costOf(network, choice);
  if (cost < solution.cost || solution.choice.empty()) {
    solution.cost = cost;
    solution.choice = std::move(choice);
  }
}

Elimination Progress::eliminated(const Lowered &part, EliminationLimits most, std::function<bool(double)> givesUp) {
  workspace.forgetReductions(limits.allEntries / 2);
  most.operations = std::min(most.operations, operationsLeft());
  Elimination elimination(workspace, part, most, {}, std::move(givesUp));
  solution.operations += workOf(elimination, part);
  solution.eliminations += elimination.eliminations;
  solution.repeated += elimination.repeated;
  solution.largestTable = std::max(solution.largestTable, elimination.largestTable);
  if (crowded.empty())
    crowded = elimination.crowdedFirst();
  Choice choice(network.options.size());
  if (elimination.isFinished()) {
    elimination.decode(choice);
    part.toOrigin(choice);
    offer(std::move(choice), elimination.isExact());
  } else if (solution.choice.empty()) {
    offer(std::move(choice), false);
  }
  return elimination;
}

} // namespace msc::search
