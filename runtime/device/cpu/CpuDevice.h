// The CPU backend: one arena, generated kernels, oneDNN, a pool of pinned threads.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cpu/KernelLibrary.h"

#include <memory>

namespace msc::device {

struct CpuOptions {
  int threads = 1;               ///< of this rank
  std::vector<int> processors;   ///< thread i runs on processors[i]; empty: wherever the kernel puts it
  /// Operations that need no more bytes work in memory that all share, which stays in the caches from one to the next.
  size_t sharedWorkspace = size_t{2} << 20;
};

/// The threads and processors of one rank: `threadsPerRank` (0: max(1, processors / ranks on this host)), pinned if the
/// ranks of this host take all its processors.
CpuOptions shareOfHost(int threadsPerRank, int64_t localRank, int64_t localSize);

/// A device for the calling thread, which becomes its worker 0.
std::unique_ptr<Device> createCpuDevice(std::shared_ptr<KernelLibrary> kernels, const CpuOptions &options);

/// Memory that this host has, or may use; 0: unknown.
uint64_t hostMemoryBytes();

/// NoResource if `ranks` arenas of `bytes` do not fit into the memory that this host has free.
Status checkHostMemory(uint64_t bytes, int64_t ranks);

} // namespace msc::device
