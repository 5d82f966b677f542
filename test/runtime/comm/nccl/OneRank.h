// What one process with one GPU can show of NCCL: that our use of it starts, splits, registers memory, is captured, and aborts. Runs of one rank take no
// NCCL, so that nothing else of ours shows it there.
#pragma once

#include "runtime/Status.h"
#include "runtime/comm/nccl/Nccl.h"
#include "runtime/device/cuda/Tables.h"

namespace msc::comm::nccl::test {

/// With a communicator of one rank on the calling thread's GPU, and one that is split off it: an AllReduce, an AllGather and, as a group, a ReduceScatter in a CUDA
/// graph that is launched twice, on memory of ncclMemAlloc; then the second ends, and the first is aborted. Failed, with what went wrong where.
Status probeOneRank(const Table &nccl, const device::cuda::DriverTable &driver);

} // namespace msc::comm::nccl::test
