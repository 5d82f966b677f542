// The cheapest assignment that fits into a budget: memory.
#pragma once

#include "passes/sharding/search/Repeat.h"

namespace msc::search {

/// What every option takes of the budget.
struct Budget {
  std::vector<std::vector<double>> amounts; ///< [variable][option], >= 0; an empty list: nothing
  double limit = 0;
};

struct BudgetLimits {
  SolveLimits solve;
  int steps = 60;    ///< multipliers tried
  size_t best = 200; ///< assignments looked at around the last multiplier, to close the gap
  double gap = 1e-3; ///< relative; a smaller one ends the search
  int64_t branchOperations = int64_t(1) << 28; ///< spent on closing it by branching, in all
  int64_t unrolled = 5000; ///< variables of all rounds up to which single rounds may save

  /// What multipliers find: fast, and the gap is as large as it is.
  static BudgetLimits multipliersAlone() { return {.best = 0, .branchOperations = 0, .unrolled = 0}; }
};

struct BudgetSolution {
  bool fits = false;     ///< else `solution` is the one that takes least, whatever it costs
  Solution solution;     ///< its bound: nothing that fits costs less
  double amount = 0;     ///< what it takes
  double least = 0;      ///< what an allowed assignment takes at least; more than the limit: nothing fits
  double multiplier = 0; ///< cost that one more unit of budget saves, about

  /// How much the optimum may be cheaper, relative to the cost.
  double gap() const { return solution.cost > solution.bound ? (solution.cost - solution.bound) / solution.cost : 0; }
};

double amountOf(const Budget &budget, const Choice &choice);
/// In all rounds.
double amountOf(const Budget &budget, const RepeatedNetwork &network, const RepeatedChoice &choice);

/// Lagrange multipliers: cost + multiplier * amount is minimised exactly; its value gives the bound, assignments on the
/// way that fit give the answer, exchanges of single options and the k best around the last multiplier improve it; what gap
/// is left is closed by branching over what variables may take.
BudgetSolution solveWithin(const CostNetwork &network, const Budget &budget, const BudgetLimits &limits = {});

struct RepeatedBudgetSolution {
  BudgetSolution summary; ///< its choice is that of RepeatedChoice
  RepeatedChoice choice;
};

/// The same for sections; what their options take counts in every round. Networks that are not too long are unrolled,
/// so that single rounds may save; in longer ones only whole assignments of RepeatedNetwork's exact solution are taken.
RepeatedBudgetSolution solveWithin(const RepeatedNetwork &network, const Budget &budget,
                                   const BudgetLimits &limits = {});

} // namespace msc::search
