// GPUs for the ranks of this process.
#pragma once

#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/Operations.h"

#include <memory>

namespace msc::device::cuda {

/// Finds the GPUs that the driver shows. NoResource if there is none, or the driver is older than the headers of this build.
Result<std::unique_ptr<Backend>> createBackend(const Tables &tables, const CudaOptions &options);

/// A device on `gpu` for the calling thread. `connect` connects it with those of the other ranks, once it is the thread's; null:
/// collectives are of the host. `choices`: null: nothing is tuned; they are only read unless
/// the device `measures`.
using Connect = std::function<Result<std::unique_ptr<comm::StreamCommunicator>>(Shared &shared)>;
Result<std::unique_ptr<Device>> createDevice(std::shared_ptr<Gpu> gpu, const CudaOptions &options, const Connect &connect,
                                             std::shared_ptr<Choices> choices, bool measures);

} // namespace msc::device::cuda
