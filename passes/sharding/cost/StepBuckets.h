// Collectives of gradients that run together, in the events of a step: as `msc-fuse-collectives` puts them into buckets.
#pragma once

#include "passes/sharding/cost/StepEvents.h"

#include <map>
#include <tuple>

namespace msc::passes {

class StepBuckets {
public:
  static bool runsIn(MoveKind kind) { return kind == MoveKind::AllReduce || kind == MoveKind::ReduceScatter || kind == MoveKind::AllGather; }

  /// That move reads a buffer of the line and makes another one; it waits for others of its group. `elementBytes`: as it moves.
  void add(const dist::ReshardStep &step, size_t elementBytes, int32_t from, int32_t made, const StepEvents &line);
  /// Puts those that are full, and what is left, in front of the events at which the last of their gradients was there.
  void place(StepEvents &line);

private:
  struct Bucket {
    size_t last = 0; ///< in front of this event
    int64_t bytes = 0;
    StepEvent event;
  };
  std::map<std::tuple<MoveKind, std::vector<int64_t>, std::vector<int32_t>, size_t>, Bucket> open;
  std::vector<Bucket> closed;
};

} // namespace msc::passes
