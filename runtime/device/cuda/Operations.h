// What a step of a plan becomes on a GPU: calls that put work on a stream.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Gpu.h"

#include <map>
#include <memory>
#include <vector>

namespace msc::device::cuda {

/// A stream, and the memory that libraries may use there while they compute.
struct Stream {
  CUstream handle = nullptr;
  CUdeviceptr workspace = 0;
};
constexpr size_t workspaceBytes = 32 << 20; // what cuBLAS recommends for Hopper

/// Puts work on a stream. Every address is final, so that a CUDA graph can hold it.
class StreamOperation : public Operation {
public:
  explicit StreamOperation(Stream &first) : first(first) {}
  virtual Status enqueue(const Stream &stream) = 0;
  /// On the first stream of the device; does not wait.
  Status run() final { return enqueue(first); }

private:
  Stream &first;
};

/// What the operations of one rank share.
class Shared {
public:
  Shared(std::shared_ptr<Gpu> gpu, const std::string &ptx, bool tensorFloat)
      : gpu(std::move(gpu)), driver(this->gpu->tables.driver), blas(this->gpu->tables.blas), ptx(ptx),
        tensorFloat(tensorFloat) {}

  std::shared_ptr<Gpu> gpu;
  const DriverTable &driver;
  const BlasTable &blas;
  const std::string ptx; ///< of the plan
  const bool tensorFloat;
  cublasLtHandle_t handle = nullptr;
  std::map<uint32_t, Stream> streams; ///< by number in the plan; 0 always exists
};

using Prepared = Result<std::unique_ptr<Operation>>;

Prepared prepareLaunch(Shared &shared, const LaunchSpec &spec);
Prepared prepareMatMul(Shared &shared, const MatMulSpec &spec);
Prepared prepareFill(Shared &shared, const FillSpec &spec);
/// `descriptor` is device memory with the regions, null where both are contiguous.
Prepared prepareCopy(Shared &shared, const CopySpec &spec, CUdeviceptr descriptor);

inline CUdeviceptr addressOf(const std::byte *data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

} // namespace msc::device::cuda
