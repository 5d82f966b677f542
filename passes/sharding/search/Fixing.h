// Options that no cheap assignment has: reduced-cost fixing, which makes networks small whose tables are too large.
#pragma once

#include "passes/sharding/search/Elimination.h"

namespace msc::search {

/// Whether the network of such bounds, see Fixing, is solved in little time.
bool hasEasyBounds(const Lowered &network);

/// For some variables of a network, bounds on all assignments with each of their options. In them readers of a value pay a share of what
/// they ask for, so that nothing connects them, and tables are small. Keeps the network, a reference to the workspace, and a good
/// assignment.
class Fixing {
public:
  /// `known`: some assignment; it and `choice` are in numbers of `network`, of which `lowered` was made.
  Fixing(Workspace &workspace, const CostNetwork &network, Lowered lowered, std::vector<int32_t> variables, Choice known,
         const SolveLimits &limits);

  /// Nothing costs less.
  double bound() const { return least; }
  /// Of each option of the variable at a position; minus infinity: not known.
  const std::vector<double> &boundsOf(size_t position) const { return bounds[position]; }
  /// The best assignment that was seen, and its cost.
  const Choice &choice() const { return best; }
  double cost() const { return bestCost; }

  /// What is left of the network: every assignment that costs at most `most`, and some of the others. Nothing: there is none.
  std::optional<Lowered> within(double most);

  int64_t operations = 0;

private:
  std::vector<std::vector<double>> allBounds(const Lowered &of, bool offers);
  std::vector<double> priced(const Lowered &easy, int32_t variable, bool offers);
  bool restrict(Lowered &of, const std::vector<std::vector<double>> &ofOptions, double most) const;
  void offer(Choice choice);

  static constexpr int64_t mostOperations = int64_t(1) << 32; ///< in all; behind them nothing more is known

  Workspace &workspace;
  const CostNetwork &network;
  Lowered whole;
  std::vector<int32_t> variables;
  EliminationLimits limits; ///< of each bound
  std::vector<std::vector<double>> bounds; ///< [variable][option of the whole network]
  double least = -infinity;
  Choice best;
  double bestCost = infinity;
};

} // namespace msc::search
