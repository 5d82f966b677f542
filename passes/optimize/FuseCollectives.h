// Which collectives of gradients, and norms of the update, run together: MindSpore's `comm_fusion` as plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace msc::passes {

/// How the collectives of one kind are put into buckets, in the order in which they become ready.
struct FusionRule {
  enum class Mode {
    Auto,  ///< up to `megabytes`, where the machine model says that it is faster
    Size,  ///< up to `megabytes`
    Index, ///< cut in front of the collectives with these numbers, counted from 0
    Off,   ///< each on its own
  };
  Mode mode = Mode::Auto;
  int64_t megabytes = 64; ///< MiB of tensors on one rank
  std::vector<int64_t> indices;
};

struct CommFusion {
  FusionRule allReduce, allGather, reduceScatter;
};

} // namespace msc::passes
