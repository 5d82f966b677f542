// What the way from a state to the goal takes at least.
#pragma once

#include "dialects/dist/reshard/Frame.h"

#include <array>

namespace msc::dist {

/// What collectives of a machine cost at least: the least of every term over some kinds, of each level.
struct LeastPrices {
  /// Levels further out than these count as the last one.
  static constexpr size_t mostLevels = 8;
  template <typename T> using PerLevel = std::array<T, mostLevels + 1>;

  struct Cost {
    double alphaUs = 1e300, ringHopUs = 1e300, treeHopUs = 1e300, betaUsPerByte = 1e300;
    bool hasSwitch = false;
    void lower(const Cost &other);
    /// Of the steps of a group.
    double hopsUs(int64_t members) const;
  };
  struct Least {
    PerLevel<Cost> at;   ///< a level
    PerLevel<Cost> from; ///< a level and those further out
  };

  /// `startShare`: of the terms that do not depend on bytes, what counts.
  explicit LeastPrices(const MachineModel &machine, double startShare = 1);

  size_t levels;
  PerLevel<int64_t> ranks{}; ///< in a unit of the level before; 1 for the first
  PerLevel<bool> staged{};
  Least allReduce, scatter, reduction, move, any;
};

class Bound {
public:
  /// Of ways to the goal of the frame. Holds references to both until the next call of `ask`.
  void ask(const LeastPrices &prices, const Frame &withGoal, size_t elementBytes);

  /// Least microseconds from a state with these lists to the goal. No sequence of moves takes less. The goal of `frame` is the one that
  /// is asked, perhaps over another matrix.
  double of(Frame &frame, const State &state, const AxisLists &lists) const;

private:
  template <typename T> using PerLevel = LeastPrices::PerLevel<T>;
  using Least = LeastPrices::Least;

  /// Elements that have to be received over each level and those further out, and the outermost level that has to be used; none: -1.
  struct Needs {
    PerLevel<double> elements{};
    int64_t level = -1;
  };
  /// What of a collective's time counts.
  enum class Terms { Starts = 1, Bytes = 2, All = 3 };

  int64_t outermostOf(const Frame &frame, AxisSet set) const;
  Needs needsOfMoves(Frame &frame, const AxisLists &lists, AxisSet moved, int64_t lacks) const;
  Needs needsOfReductions(const Frame &frame, AxisSet reduced) const;
  Needs receipts(const Frame &frame, const AxisLists &lists, AxisSet reduced) const;
  double collectivesUs(const Least &least, const Needs &needs, Terms terms) const;
  double reductionUs(const Frame &frame, AxisSet reduced, AxisSet gathered, Terms terms) const;
  double hopsUs(const Least &least, const Frame &frame, AxisSet set) const;

  const LeastPrices *prices = nullptr;
  double bytes = 4;           ///< of an element
  double tensor = 0;          ///< its elements
  double share = 0;           ///< these for each rank
  PerLevel<double> places{}; ///< units of the level before (ranks for the first) that want each element in the end
  bool goalIsEmpty = false;
};

} // namespace msc::dist
