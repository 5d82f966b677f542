// Options that no cheap assignment has: reduced-cost fixing, which makes networks small whose tables are too large.
#pragma once

#include "passes/sharding/search/Elimination.h"

namespace msc::search {

/// Whether the network of such bounds, see Fixing, is solved within `most` operations; what that takes is added to `operations`.
/// `workspace`: of the network.
bool hasEasyBounds(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations);

/// The variable that is in most factors: with one of its options at a time bounds may be easy where they are not with all together. Nothing:
/// none is in many.
std::optional<int32_t> hubOf(const Lowered &network);
/// The same with one option of the hub; tables are as large with another one.
bool hasEasyBoundsTied(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations);
/// One or the other.
bool hasEasyBoundsSomehow(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations);
/// So many operations are few for a bound, of which there are many, where the exact solution takes so many.
int64_t littleBeside(double exactly);
/// What each reader of a value pays of what it asks for, where nothing connects readers: of each value with several, in the order of the
/// factors, [reader][item]. What is good for a network is so for others that differ in the options of few variables. Empty: not known.
using Shares = std::vector<std::vector<std::vector<double>>>;
/// Nothing costs less. Nothing: that is not easy to say, or takes more than `most` operations.
std::optional<double> easyBound(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations, const Shares &known = {});
/// The same of each option of some variables.
std::optional<std::vector<std::vector<double>>> easyBounds(Workspace &workspace, const Lowered &network, const std::vector<int32_t> &variables,
                                                           int64_t most, int64_t &operations, const Shares &known);
/// The same, with shares that are improved as long as the bound is below `enough` and may come there. Minus infinity: nothing is known.
double improvedBound(Workspace &workspace, const Lowered &network, double enough, int64_t most, int64_t &operations, Shares &shares);

/// For some variables of a network, bounds on all assignments with each of their options. In them readers of a value pay a share of what
/// they ask for, so that nothing connects them, and tables are small. Keeps the network, a reference to the workspace, and a good
/// assignment.
class Fixing {
public:
  /// Some of the assignments: variables have fewer options.
  struct Part {
    Lowered network;
    std::vector<std::vector<double>> bounds; ///< [variable][option]: nothing with it costs less; minus infinity: not known
    double bound() const;
  };

  /// `known`: some assignment; it and `choice` are in numbers of `network`, of which `lowered` was made. `operations`: what was spent of
  /// the limits so far; what is spent here and elsewhere is added to it. `margin`: nothing is asked about what costs more than a good
  /// assignment by more than this part of it; bounds then are those of what is left.
  Fixing(Workspace &workspace, const CostNetwork &network, Lowered lowered, std::vector<int32_t> variables, Choice known,
         const SolveLimits &limits, int64_t &operations, double margin = infinity, Shares sharesKnown = {});

  /// Nothing costs less; with a margin, nothing of what it left.
  double bound() const { return whole.bound(); }
  /// Of each option of the variable at a position.
  const std::vector<double> &boundsOf(size_t position) const { return whole.bounds[position]; }
  /// The best assignment that was seen, and its cost.
  const Choice &choice() const { return best; }
  double cost() const { return bestCost; }

  /// What is left of a part, or of the network: every assignment that costs at most `most`, and some of the others. Nothing: there is none.
  std::optional<Part> within(Part part, double most);
  std::optional<Part> within(double most) { return within(whole, most); }

  /// Two halves of the options of the variable that has most, the cheaper ones first. Nothing: no variable has two.
  std::vector<Part> halves(const Part &part);

  /// Whether more may be asked.
  bool hasOperations() const { return operations < mostOperations; }

private:
  std::vector<std::vector<double>> allBounds(const Lowered &of, bool offers);
  std::vector<std::vector<double>> priced(const Lowered &easy, bool offers);
  std::vector<double> pricedAlone(const Lowered &easy, int32_t variable, bool offers);
  bool restrict(Part &part, double most) const;
  void offer(Choice choice);

  Workspace &workspace;
  const CostNetwork &network;
  Part whole;
  std::vector<int32_t> variables;
  EliminationLimits limits; ///< of each bound
  int64_t &operations;
  int64_t mostOperations;   ///< in all; behind them nothing more is known
  Shares shares;            ///< as they were improved last
  Choice best;
  double bestCost = infinity;
  static constexpr int mostInVain = 8;
  int inVain = 0; ///< assignments that were looked at since the best one
};

} // namespace msc::search
