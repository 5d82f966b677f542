// Collectives of ranks that share a GPU.
#pragma once

#include "runtime/device/cuda/Operations.h"

namespace msc::device::cuda {

/// Connects all ranks of `world`, which are on the GPU of `shared`, as threads or as processes of one host. Every rank computes its piece of a result out
/// of the memory of all members, in the order of their ranks, with the bits of CPUs; the hosts meet before and behind each collective, so that no graph
/// can hold one.
Result<std::unique_ptr<comm::StreamCommunicator>> connectLocally(Shared &shared, comm::World &world, bool isOneProcess);

} // namespace msc::device::cuda
