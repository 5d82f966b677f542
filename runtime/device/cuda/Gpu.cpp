#include "runtime/device/cuda/Gpu.h"

#include <array>
#include <cstdint>

namespace msc::device::cuda {

constexpr int oldestMajor = 8; // sm_80, as the PTX says

Result<std::shared_ptr<Gpu>> Gpu::open(const Tables &tables, int ordinal) {
  const DriverTable &driver = tables.driver;
  CUdevice device = 0;
  MSC_CUDA(cuDeviceGet, &device, ordinal);
  std::array<char, 256> name{};
  MSC_CUDA(cuDeviceGetName, name.data(), static_cast<int>(name.size() - 1), device);
  int major = 0, minor = 0;
  MSC_CUDA(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  MSC_CUDA(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (major < oldestMajor)
    return Error{
        ExitCode::NoResource,
        fmt::format("GPU {} ({}) is an sm_{}{}, the plan's kernels need sm_80 or later", ordinal, name.data(), major, minor),
        "choose another GPU with CUDA_VISIBLE_DEVICES, or run on CPUs with --device cpu"};
  int sharedBytes = 0;
  MSC_CUDA(cuDeviceGetAttribute, &sharedBytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  CUcontext context = nullptr;
  MSC_CUDA(cuDevicePrimaryCtxRetain, &context, device);
  return std::shared_ptr<Gpu>(new Gpu(tables, ordinal, name.data(), static_cast<uint32_t>(sharedBytes), device, context));
}

Gpu::~Gpu() {
  if (makeCurrent())
    for (auto &[text, module] : modules)
      tables.driver.cuModuleUnload(module);
  tables.driver.cuDevicePrimaryCtxRelease(device);
}

Status Gpu::makeCurrent() const {
  return check(tables.driver, "cuCtxSetCurrent", tables.driver.cuCtxSetCurrent(context));
}

Result<CUmodule> Gpu::load(const std::string &ptx) {
  std::array<char, 4096> log{};
  std::array options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void *, 2> values{log.data(), reinterpret_cast<void *>(static_cast<uintptr_t>(log.size() - 1))};
  CUmodule module = nullptr;
  CUresult result = tables.driver.cuModuleLoadDataEx(&module, ptx.c_str(), options.size(), options.data(), values.data());
  if (result == CUDA_SUCCESS)
    return module;
  std::string text = log.data();
  std::string firstLine = text.substr(0, text.find('\n'));
  Error error = failed(tables.driver, "cuModuleLoadDataEx", result);
  if (!firstLine.empty())
    error.message += ": " + firstLine;
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_INVALID_PTX)
    error.help = "install a newer driver, or run on CPUs with --device cpu";
  return error;
}

Result<CUfunction> Gpu::function(const std::string &ptx, const std::string &entry) {
  std::lock_guard lock(mutex);
  const DriverTable &driver = tables.driver;
  auto known = modules.find(ptx);
  if (known == modules.end()) {
    Result<CUmodule> loaded = load(ptx);
    if (!loaded)
      return loaded.error();
    known = modules.emplace(ptx, *loaded).first;
  }
  CUfunction function = nullptr;
  MSC_CUDA(cuModuleGetFunction, &function, known->second, entry.c_str());
  return function;
}

} // namespace msc::device::cuda
