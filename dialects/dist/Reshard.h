// From one sharding to another: the steps that every rank takes. Plain C++, no MLIR.
#pragma once

#include "dialects/dist/Algebra.h"
#include "runtime/machine/MachineModel.h"

#include <string>
#include <unordered_map>

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

/// What a planner may use.
struct ReshardOptions {
  /// One direct exchange (Exchange, CollectivePermute to the target), which always receives the least. Without it a
  /// tensor goes by slices, AllGather, AlltoAll, CollectivePermute, ReduceScatter and AllReduce.
  bool exchange = true;
};

/// Steps of least modelled time that bring a tensor of this shape from one sharding to the other; none if both place all
/// elements alike. The last step's `after` is `to`, whose partial axes are partial in `from` in the same way.
///
/// Source, intermediate and target shards together never take more memory than source, target and the larger of the two;
/// a tensor is replicated on the way only where source or target is. Where the two sides have no common refinement
/// ((2, 3) and (3, 2)), partial axes are completed first and the rest is one exchange among all ranks.
std::vector<ReshardStep> planReshard(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                     size_t elementBytes, const MachineModel &machine,
                                     const ReshardOptions &options = {});

/// Steps that complete a partial value where it lies: one AllReduce per run of axes of one kind, the most
/// minor first, for kinds do not commute.
std::vector<ReshardStep> planCompletion(const Sharding &from, const std::vector<int64_t> &shape);

/// Other ways, to compare with: every rank takes what it lacks in one exchange among all ranks; everything is gathered,
/// dimension by dimension, and cut anew. Partial axes are completed first.
ReshardStep exchangeAmongAll(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape);
std::vector<ReshardStep> gatherAndSlice(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape);

/// planReshard for one machine, each question answered once.
class ReshardPlanner {
public:
  explicit ReshardPlanner(MachineModel machine, ReshardOptions options = {})
      : model(std::move(machine)), options(options) {}

  const std::vector<ReshardStep> &plan(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                       size_t elementBytes);
  /// Modelled time of plan(), without keeping the steps: of those for which a search asks, few are taken.
  double us(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, size_t elementBytes);
  const MachineModel &machine() const { return model; }

private:
  MachineModel model;
  ReshardOptions options;
  std::unordered_map<std::string, std::vector<ReshardStep>> plans;
  std::unordered_map<std::string, double> times;
};

/// Modelled time of the steps.
double reshardUs(const std::vector<ReshardStep> &steps, size_t elementBytes, const MachineModel &machine);

/// Sum over the steps that communicate of the elements that the busiest rank receives.
int64_t reshardElements(const std::vector<ReshardStep> &steps);

} // namespace msc::dist
