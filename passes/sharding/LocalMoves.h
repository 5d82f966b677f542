// Assignments under a limit on memory, changed in one place after the other.
#pragma once

#include "passes/sharding/cost/RoundsModel.h"

#include <functional>
#include <set>

namespace msc::passes {

/// An assignment, and what a rank needs by its simulation.
struct SimulatedChoice {
  search::RepeatedChoice choice;
  double us = 0, arenaBytes = 0;
};

/// What options of variables cost more.
search::CostNetwork priced(search::CostNetwork network, RoundsModel::Amounts added);

/// Variables of operators in the unrolled network, in the order in which they happen. `inRounds`: variablesInRounds(shape).
std::vector<int32_t> operatorsInRounds(const Problem &problem, const search::RepeatedNetwork &shape,
                                       const std::vector<std::vector<int32_t>> &inRounds);

/// Local search by simulated steps. A place is some operators that happen one after the other, or one operator in all of its rounds; what
/// is cheapest there beside all others is listed where bytes cost what they do in `prices`, and simulated. Bytes above the limit cost, too, and
/// more and more until everything fits: so ways lead over what does not fit. Holds references.
class LocalMoves {
public:
  /// `prices`: of variables in rounds. `limits`: of what is solved at a place. `look` simulates; false: enough was simulated.
  LocalMoves(const Problem &problem, RoundsModel &rounds, const search::RepeatedNetwork &shape, const std::vector<std::vector<int32_t>> &inRounds,
             const RoundsModel::Amounts &prices, double most, const search::SolveLimits &limits, std::function<bool(SimulatedChoice &)> look);

  /// To where no place can be changed to something better that fits. `usPerByte`: of those above the limit, at first.
  void descend(SimulatedChoice from, double usPerByte);

private:
  void readNetwork();
  void findPlaces(const Problem &problem);
  std::vector<SimulatedChoice> cheaperAt(const std::set<int32_t> &place, const search::Choice &now, double us);

  RoundsModel &rounds;
  const search::RepeatedNetwork &shape;
  const std::vector<std::vector<int32_t>> &inRounds;
  const RoundsModel::Amounts &prices;
  double most;
  search::SolveLimits limits;
  std::function<bool(SimulatedChoice &)> look;
  search::Unrolled unrolled;
  search::CostNetwork withPrices; ///< of bytes
  std::vector<std::set<int32_t>> places;
  int64_t work = 0; ///< variables of all networks that were looked at
};

} // namespace msc::passes
