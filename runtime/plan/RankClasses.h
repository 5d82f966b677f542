// Ranks that are alike: one of each class stands for all. What a rank holds depends on its coordinates along the axes
// that cut something; 16384 ranks of which only an axis of 4 cuts are 4 classes.
#pragma once

#include "runtime/plan/Sharding.h"

namespace msc {

/// The ranks of a plan, told apart by what shardings give them. The shardings may factorise the ranks differently.
class RankClasses {
public:
  explicit RankClasses(int64_t devices) : devices(devices) {}

  /// Tells apart ranks that hold different pieces.
  void addPieces(const Sharding &sharding);
  /// Tells apart ranks whose pieces may differ in size: those of dimensions that are cut unevenly.
  void addSizes(const Sharding &sharding, const std::vector<int64_t> &shape);

  /// The lowest rank of each class, ascending; all classes have equally many ranks. Work and size grow with the number
  /// of classes only.
  std::vector<int64_t> ranks() const;

private:
  /// The ranks with coordinate c along an axis: those with rank / inner % (outer / inner) = c.
  struct Axis {
    int64_t inner, outer;
  };
  void add(const Sharding &sharding, size_t dim);
  std::vector<int64_t> boundaries() const;

  int64_t devices;
  std::vector<Axis> axes;
};

} // namespace msc
