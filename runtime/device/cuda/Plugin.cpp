#include "runtime/device/cuda/Plugin.h"

#include "runtime/device/cuda/CudaBackend.h"

int mscDeviceCudaBackend(int version, const msc::device::CudaOptions *options, MscDeviceBackend *result) {
  using namespace msc::device;
  if (version != MSC_DEVICE_PLUGIN_VERSION)
    return MSC_DEVICE_PLUGIN_VERSION;
  msc::Result<cuda::Tables> tables = cuda::loadTables();
  if (!tables) {
    result->error = tables.error();
    return version;
  }
  auto backend = cuda::createBackend(*tables, *options);
  if (backend)
    result->backend = backend->release();
  else
    result->error = backend.error();
  return version;
}
