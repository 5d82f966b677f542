// The device matrix over which states are searched, and what is asked, written over it.
#pragma once

#include "dialects/dist/Lacking.h"
#include "dialects/dist/Reshard.h"
#include "dialects/dist/reshard/Evenness.h"
#include "dialects/dist/reshard/State.h"
#include "dialects/dist/reshard/Units.h"

#include <optional>

namespace msc::dist {

/// Up to this many axes every slice, every permutation and every order of reduced axes is tried.
inline constexpr size_t fewAxes = 4;

/// What is asked. Holds references: to be used while the arguments of planReshard live.
struct ReshardQuestion {
  const Sharding &from, &to;
  const std::vector<int64_t> &shape;
  size_t elementBytes;
  const MachineModel &machine;
  const ReshardOptions &options;
};

/// One device matrix of the search. States of several frames are compared where the factorisation of the ranks matters:
/// the 6 ranks of three nodes of 2 are (2, 3) and (3, 2), and only the axis of 2 of the second one stays within nodes.
class Frame {
public:
  /// `index` is the number that states carry.
  Frame(const MachineModel &machine, std::vector<int64_t> shape, std::vector<int64_t> matrix, size_t index);

  /// The sharding over this matrix, if its axes are products of neighbouring ones of it.
  std::optional<State> stateOf(const Sharding &sharding) const;
  /// What is asked from now on. A goal that lies over another matrix is given by its boxes.
  void setGoal(const State &goal);
  void setGoal(const Sharding &elsewhere);

  /// The target, if it lies over this matrix.
  const std::optional<State> &goal() const { return to; }
  bool isGoal(const State &state) const { return to && state == *to; }
  /// Only where there is a goal.
  const AxisLists &goalLists() const { return toLists; }

  size_t axisCount() const { return axes.size(); }
  size_t dimCount() const { return shape.size(); }
  int64_t sizeOf(size_t axis) const { return axes[axis]; }
  const std::vector<int64_t> &matrix() const { return axes; }
  const std::vector<int64_t> &tensor() const { return shape; }

  Sharding shardingOf(const State &state) const;
  AxisLists listsOf(const State &state) const;
  /// Elements of the largest shard.
  int64_t localElements(const AxisLists &lists) { return lack.capacity(lists); }
  /// Is no dimension cut?
  bool isWhole(const State &state) const;
  AxisSet partialAxes(const State &state) const;
  /// Partial axes that the goal completes.
  AxisSet reducedAxes(const State &state) const;
  /// Axes that cut a dimension where the target does not cut it by the same axis behind as many pieces.
  AxisSet movedAxes(const AxisLists &source, const AxisLists &target) const {
    return movedAxes(source, cutsOf(target));
  }
  /// The same for the goal.
  AxisSet movedAxes(const AxisLists &source) const { return movedAxes(source, goalCuts); }

  /// Would every dimension have an element in each piece if all axes cut it that cut it here or in the goal?
  bool isFineEnough(const AxisLists &source) const;

  GroupShape groupAlong(AxisSet axesOfGroup) const;
  /// Members of groups along the axes, less one for each axis.
  int64_t hopsAlong(AxisSet set) const;
  /// Product of the sizes.
  int64_t membersAlong(AxisSet set) const;
  /// The level of the topology that groups along the axis use.
  size_t levelOf(size_t axis) const { return levels[axis].first; }
  /// Members of these groups in a unit of the level below.
  int64_t membersInside(size_t axis) const { return levels[axis].second; }

  /// Two axes that are alike here: both repeat, or both are partial of one kind, and the goal has them alike. Renaming
  /// one into the other leaves all costs and the goal as they are.
  bool areAlike(const State &state, size_t a, size_t b) const;

  /// Elements that the busiest rank lacks of `wanted`, and a lower bound of them that is found faster.
  int64_t lacking(const AxisLists &held, const AxisLists &wanted) { return lack.most(held, wanted); }
  int64_t lackingAtLeast(const AxisLists &held, const AxisLists &wanted) { return lack.atLeast(held, wanted); }
  /// Elements that the busiest rank lacks of the goal, which may lie over another matrix: exact with few axes, where it
  /// is found fast and nothing else ends the search. Partial axes are not looked at.
  int64_t lackingOfGoalAtLeast(const AxisLists &held);
  /// Elements of the goal that some unit of this level lacks, or less; 0 where the goal lies over another matrix.
  int64_t lackingOfUnitsAtLeast(size_t level, const AxisLists &held) {
    return to && units[level].areKnown() ? units[level].lackingAtLeast(held, toLists) : 0;
  }
  /// The same as a share of the tensor, as if dimensions could be cut anywhere.
  double shareLackingOfUnitsAtLeast(size_t level, const AxisLists &held) const {
    return to && units[level].areKnown() ? units[level].shareLackingAtLeast(held, toLists) : 0;
  }
  /// Is a dimension cut into more pieces than it has elements?
  bool hasEmptyPieces(const AxisLists &lists) const {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (lists[dim].pieces > shape[dim])
        return true;
    return false;
  }
  const Evenness &evenness() const { return even; }
  /// Units of this level that want each element if ranks along the axes in `apart` want different ones, or fewer.
  int64_t unitsThatWant(size_t level, AxisSet apart) const {
    int64_t all = strides[0] * axes[0] / units[level].ranks();
    return units[level].areKnown() ? std::max<int64_t>(1, all / units[level].along(apart)) : 1;
  }
  /// Units of this level along the axes, or fewer.
  int64_t unitsAlong(size_t level, AxisSet set) const { return units[level].areKnown() ? units[level].along(set) : 1; }

private:
  /// Where an axis cuts: its dimension, and the number of pieces before it.
  struct Cut {
    size_t dim = mostDims;
    int64_t before = 0;
  };
  using Cuts = std::array<Cut, mostAxes>; ///< by axis

  Cuts cutsOf(const AxisLists &lists) const;
  AxisSet movedAxes(const AxisLists &source, const Cuts &target) const;

  std::vector<int64_t> axes, strides;
  /// By axis: the first level of the topology that holds the groups along it, and their members in a unit of the one below.
  std::vector<std::pair<size_t, int64_t>> levels;
  std::vector<int64_t> shape;
  Evenness even;
  size_t index;
  std::optional<State> to;
  AxisLists toLists;
  Cuts goalCuts;
  std::vector<Box> goalBoxes; ///< of all ranks, where there is no goal over this matrix
  Lacking lack;
  std::vector<Units> units; ///< of all levels but the outermost
};

} // namespace msc::dist
