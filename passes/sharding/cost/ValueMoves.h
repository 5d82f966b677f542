// All moves of one value, as `msc-plan-moves` plans them.
#pragma once

#include "dialects/dist/Reshard.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace msc::passes {

struct ValueMoves {
  /// When somebody reads the value: in the backward pass; the line of the operator, which runs backwards there; before, with or behind what the
  /// operator itself computes; operand.
  using When = std::tuple<bool, int64_t, int32_t, int32_t>;
  static When forward(int64_t line) { return {false, line, 0, 0}; }
  static When backward(int64_t line) { return {true, -line, 0, 0}; }
  /// A gradient that goes on to an operand.
  static When handedOn(int64_t line, int32_t operand) { return {true, -line, 1, operand}; }
  /// A term of the gradient of what the operator made.
  static When added(int64_t line) { return {true, -line, -1, 0}; }

  struct Demand {
    When when;
    Sharding from; ///< how it is there, for all that this reader knows
    Sharding wanted;
    bool isBackward = false;
  };

  std::vector<int64_t> shape;
  size_t bytes = 4; ///< of an element
  int64_t times = 1; ///< in a step
  std::vector<Demand> demands;

  /// Somebody reads it elsewhere than where it is.
  bool moves() const {
    return std::ranges::any_of(demands, [](const Demand &demand) { return demand.wanted != demand.from; });
  }
};

struct PlannedMove {
  std::vector<dist::ReshardStep> steps;
  bool isBackward = false; ///< it runs in the backward pass
};

/// What it takes to meet all demands, the first of which knows how the value was left.
std::vector<PlannedMove> plannedMoves(ValueMoves value, dist::ReshardPlanner &planner);

} // namespace msc::passes
