// How a kernel iterates over what it reads and writes, in plain data: what passes/codegen/Cluster.h asks of operators that are to run as one.
#pragma once

#include "passes/sharding/cost/PlaceStep.h"

#include <algorithm>

namespace msc::passes {

/// Of one operator on the largest shards.
struct KernelLoops {
  struct Loop {
    int64_t size = 1;
    bool isReduced = false; ///< nothing that is written has it
  };
  static constexpr int32_t none = -1; ///< of a dimension of size 1 that is broadcast

  std::vector<Loop> loops;                         ///< outermost first, as those of the tensor that has most
  std::vector<std::vector<int32_t>> reads, writes; ///< [tensor][dimension]: loop
};

inline bool reduces(const KernelLoops &kernel) {
  return std::ranges::any_of(kernel.loops, [](const KernelLoops::Loop &loop) { return loop.isReduced && loop.size != 1; });
}

/// Of an operator that runs as a kernel; `values`: those of its step.
KernelLoops loopsOf(const TracedOperator &traced, const std::vector<StepValue> &values);

/// Of one that makes each element of `shape`, which is local, of the same one of `count` tensors.
KernelLoops elementwiseLoops(const Shape &shape, size_t count);

} // namespace msc::passes
