// Solving again and again under the prices of a network until all that is paid is exact, within so many operations for all of it.
#pragma once

#include "passes/sharding/LocalMoves.h"
#include "passes/sharding/search/Budget.h"

#include <algorithm>

namespace msc::passes {

/// Costs, and so many more for every amount.
RoundsModel::Amounts multiplied(RoundsModel::Amounts amounts, double multiplier);

class PricedSolver {
public:
  /// Holds references. `mostOperations`: of all solutions and prices together (search::SolveLimits::left).
  PricedSolver(StepModel &model, RoundsModel &rounds, int64_t mostOperations)
      : model(model), rounds(rounds), left(mostOperations), unpriced(model.operationsOfPricing()) {}

  /// What was priced until now was not out of it.
  void begin() { unpriced = model.operationsOfPricing(); }
  /// For the limits of whoever else solves out of the same.
  int64_t *operationsLeft() { return &left; }
  /// Then what is found is not improved any more, and prices in it may be bounds.
  bool isSpent();
  /// Half of them, until they are given back.
  int64_t setAside() {
    const int64_t half = std::max<int64_t>(0, left / 2);
    left -= half;
    return half;
  }
  void giveBack(int64_t operations) { left += operations; }

  /// The cheapest that takes no more than the budget: of a round, all alike where there are many.
  search::RepeatedBudgetSolution within(const search::Budget &budget, const search::BudgetLimits &limits);
  /// The same where the budget is of variables in rounds.
  search::RepeatedBudgetSolution withinInRounds(const search::Budget &budget, const search::BudgetLimits &limits);
  /// The cheapest where every amount costs so much more.
  SimulatedChoice at(const RoundsModel::Amounts &perRound, double usPerAmount, const search::SolveLimits &limits);

private:
  search::BudgetSolution alikeWithin(const search::Budget &budget, const search::BudgetLimits &limits);

  StepModel &model;
  RoundsModel &rounds;
  int64_t left;
  int64_t unpriced; ///< operations that pricing the rest takes
};

} // namespace msc::passes
