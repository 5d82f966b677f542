// The face of this backend: what a run asks of GPUs, and where GPUs come from.
#pragma once

#include "runtime/device/Device.h"

#include <memory>
#include <string>

namespace msc::device {

struct CudaOptions {
  std::string ptx;          ///< of the plan's kernels; empty: it has none
  bool tensorFloat = false; ///< products of f32 may round their operands to TF32
  bool graphs = true;       ///< steps run as one CUDA graph from the second on; else every operator is waited for
};

/// The GPUs of this process, by the plugin libmsc_device_cuda.so, which lies beside the program or in MSC_PLUGIN_PATH.
/// NoResource, with what is missing and how to repair it: the plugin, the driver, a GPU, or a library.
Result<std::shared_ptr<Backend>> loadCudaBackend(const CudaOptions &options);

} // namespace msc::device
