// Names and arguments of the kernels in Kernels.cu. All arguments have 64 bits; the last one is what a thread counts up to.
#pragma once

#include <cstdint>

namespace msc::device::cuda {

/// Threads of a block of every kernel here.
constexpr uint32_t kernelBlock = 256;

/// The regions of a copy, as the kernel reads them in device memory.
struct CopyDescriptor {
  static constexpr int64_t mostDims = 8;
  int64_t dims = 0;
  int64_t sizes[mostDims] = {}, from[mostDims] = {}, to[mostDims] = {}; ///< strides in elements
};

/// Their PTX text, for sm_80 and later.
extern const char *const kernelsPtx;

} // namespace msc::device::cuda
