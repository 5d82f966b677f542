// From one sharding to another: the steps that every rank takes. Plain C++, no MLIR.
#pragma once

#include "dialects/dist/Algebra.h"
#include "dialects/dist/MachineModel.h"

namespace msc::dist {

/// One step of a redistribution. Its source is the sharding before it (the `after` of the step in front).
struct ReshardStep {
  MoveKind kind = MoveKind::Slice;
  Sharding after;
  /// The group of a rank: the ranks that differ from it only on `groupAxes` of `groupMatrix`. Empty axes for a Slice.
  std::vector<int64_t> groupMatrix;
  std::vector<int32_t> groupAxes;
  /// The gathered dimension of AllGather, the scattered one of ReduceScatter, the concatenated one of AlltoAll; -1
  /// where it has no meaning or several dimensions take part.
  int64_t dimension = -1;
  /// The dimension that AlltoAll cuts, else -1.
  int64_t splitDimension = -1;
  /// AllReduce and ReduceScatter: how terms are brought together.
  ReduceKind reduce = ReduceKind::Sum;
  /// Elements that the busiest rank receives (for a Slice: keeps).
  int64_t receivedElements = 0;
};

/// Steps that bring a tensor of this shape from one sharding to the other; none if both place all elements alike. The
/// last step's `after` is `to`. Partial axes are completed first (one AllReduce per kind of reduction), then elements
/// move: by a local slice where that is enough, by slice and AllGather, by slice and one AlltoAll, by one
/// CollectivePermute, or by one direct exchange; a tensor is never replicated on the way. `to` is partial only where it
/// equals `from`.
std::vector<ReshardStep> planReshard(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                     size_t elementBytes, const MachineModel &machine);

/// Modelled time of the steps.
double reshardUs(const std::vector<ReshardStep> &steps, size_t elementBytes, const MachineModel &machine);

/// Sum over the steps that communicate of the elements that the busiest rank receives.
int64_t reshardElements(const std::vector<ReshardStep> &steps);

} // namespace msc::dist
