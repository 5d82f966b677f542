// What the way from a state to the goal takes at least.
#pragma once

#include "dialects/dist/reshard/Frame.h"

#include <initializer_list>

namespace msc::dist {

class Bound {
public:
  explicit Bound(const ReshardQuestion &question);

  /// Least microseconds from a state with these lists to the goal. No sequence of moves takes less.
  double of(Frame &frame, const State &state, const AxisLists &lists) const;

private:
  double reductionUs(const Frame &frame, AxisSet reduced, bool endsWhole) const;

  double bytes;  ///< of an element
  double share;  ///< elements of the tensor for each rank
  double places; ///< ranks that want each element in the end
  int64_t goalElements;
  /// The least of every term over some kinds and all levels.
  LinkCost allReduce, scatter, reduction, move;
};

} // namespace msc::dist
