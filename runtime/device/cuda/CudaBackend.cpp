#include "runtime/device/cuda/CudaBackend.h"

#include <mutex>
#include <vector>

namespace msc::device::cuda {
namespace {

class CudaBackend final : public Backend {
public:
  CudaBackend(const Tables &tables, const CudaOptions &options, int count)
      : tables(tables), options(options), gpus(static_cast<size_t>(count)) {}

  const char *name() const override { return "cuda"; }

  Result<std::unique_ptr<Device>> create(const DeviceRequest &request) override {
    int ordinal = static_cast<int>(request.localRank % static_cast<int64_t>(gpus.size()));
    Result<std::shared_ptr<Gpu>> gpu = gpuOf(ordinal);
    if (!gpu)
      return gpu.error();
    return createDevice(*gpu, options);
  }

  std::string note(int64_t localSize) const override {
    auto count = static_cast<int64_t>(gpus.size());
    if (localSize > count)
      return fmt::format("{} logical ranks on {} GPU{}; collectives go through the memory of the host", localSize, count,
                         count == 1 ? "" : "s");
    return localSize == 1 ? "" : "collectives go through the memory of the host";
  }

private:
  Result<std::shared_ptr<Gpu>> gpuOf(int ordinal) {
    std::lock_guard lock(mutex);
    std::shared_ptr<Gpu> &gpu = gpus[static_cast<size_t>(ordinal)];
    if (gpu)
      return gpu;
    Result<std::shared_ptr<Gpu>> opened = Gpu::open(tables, ordinal);
    if (opened)
      gpu = *opened;
    return opened;
  }

  Tables tables;
  CudaOptions options;
  std::mutex mutex;
  std::vector<std::shared_ptr<Gpu>> gpus; ///< null: not opened
};

constexpr const char *showOne = "CUDA_VISIBLE_DEVICES says which GPUs a process sees; run on CPUs with --device cpu";

} // namespace

Result<std::unique_ptr<Backend>> createBackend(const Tables &tables, const CudaOptions &options) {
  const DriverTable &driver = tables.driver;
  if (CUresult result = driver.cuInit(0); result != CUDA_SUCCESS)
    return Error{ExitCode::NoResource, "no GPU: " + failed(driver, "cuInit", result).message, showOne};
  int version = 0, count = 0;
  MSC_CUDA(cuDriverGetVersion, &version);
  if (version / 1000 < CUDA_VERSION / 1000)
    return Error{ExitCode::NoResource,
                 fmt::format("the driver is of CUDA {}.{}, this build needs CUDA {}", version / 1000, version % 1000 / 10,
                             CUDA_VERSION / 1000),
                 "install a newer driver, or run on CPUs with --device cpu"};
  MSC_CUDA(cuDeviceGetCount, &count);
  if (count < 1)
    return Error{ExitCode::NoResource, "no GPU: the driver shows none", showOne};
  return std::unique_ptr<Backend>(new CudaBackend(tables, options, count));
}

} // namespace msc::device::cuda
