#include "passes/sharding/cost/ValueMoves.h"

#include "passes/sharding/cost/MovePrices.h"

#include <algorithm>
#include <utility>

namespace msc::passes {

std::vector<PlannedMove> plannedMoves(ValueMoves value, dist::ReshardPlanner &planner) {
  std::vector<PlannedMove> moves;
  if (value.demands.empty())
    return moves;
  std::ranges::stable_sort(value.demands, {}, &ValueMoves::Demand::when);
  const Sharding left = value.demands.front().from;
  std::vector<Sharding> wanted;
  for (const ValueMoves::Demand &demand : value.demands)
    if (demand.wanted != left && std::ranges::find(wanted, demand.wanted) == wanted.end()) {
      wanted.push_back(demand.wanted);
      moves.push_back({{}, demand.isBackward});
    }
  std::vector<std::vector<dist::ReshardStep>> route = planRoute(left, wanted, value.shape, value.bytes, planner);
  for (size_t i = 0; i < moves.size(); ++i)
    moves[i].steps = std::move(route[i]);
  return moves;
}

} // namespace msc::passes
