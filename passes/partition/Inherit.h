// The axis assignment of an operator that has no strategy of its own: backward and update operators inherit it from the
// shardings in which their operands are at hand. Plain data, no IR.
#pragma once

#include "passes/sharding/Strategy.h"

namespace msc::passes {

/// How one operand (or result) of an operator is at hand (or wanted).
struct ShardingHint {
  bool isResult = false;
  size_t position = 0;
  Sharding sharding; ///< not partial
};

/// Gives each factor of an operator the axes that hints carry on it, earlier hints first. A hint whose factorisation has no common
/// refinement with those before it, or whose axes are taken, is dropped: that operand has to be redistributed. Factors
/// that cannot be cut, and cuts whose boundaries do not pass the operator, get no axes.
class Inheritance {
public:
  /// Holds a reference.
  Inheritance(const OperatorFacts &facts, int64_t devices);
  /// A hint; `sharding` is not partial.
  void take(bool isResult, size_t position, const Sharding &sharding);
  net::Assignment finish() &&;

private:
  const OperatorFacts &facts;
  net::Assignment assignment;
  bool mayBeEmpty = false; ///< a value already comes in more pieces than it has elements

  void refineTo(const std::vector<int64_t> &matrix);
  bool isFree(int32_t axis) const;
  void takeDimension(const net::DimFactors &factors, const std::vector<int32_t> &axes);
};

/// The same of a list.
net::Assignment inheritAssignment(const OperatorFacts &facts, const std::vector<ShardingHint> &hints, int64_t devices);

/// Pieces of every factor under an assignment.
Pieces piecesOf(const net::Assignment &assignment);

} // namespace msc::passes
