#include "runtime/Plugin.h"
#include "runtime/device/cuda/Plugin.h"

namespace msc::device {

static Error missing(const std::string &why) {
  return {ExitCode::NoResource, "no CUDA backend: " + why,
          "build everything where the CUDA toolkit 13 is installed (cmake --build --preset dev), or run on CPUs with --device cpu"};
}

Result<std::shared_ptr<Backend>> loadCudaBackend(const CudaOptions &options) {
  OpenPlugin plugin = openPlugin("libmsc_device_cuda.so", "mscDeviceCudaBackend", "device");
  if (!plugin.entry)
    return missing(plugin.problem);
  MscDeviceBackend result;
  auto *entry = reinterpret_cast<decltype(&mscDeviceCudaBackend)>(plugin.entry);
  if (int version = entry(MSC_DEVICE_PLUGIN_VERSION, &options, &result); version != MSC_DEVICE_PLUGIN_VERSION)
    return missing("'" + plugin.path + "' has interface version " + std::to_string(version) + ", this program " +
                   std::to_string(MSC_DEVICE_PLUGIN_VERSION));
  if (!result.backend)
    return result.error;
  return std::shared_ptr<Backend>(result.backend);
}

} // namespace msc::device
