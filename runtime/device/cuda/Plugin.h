// The one function that the CUDA plugin exports.
#pragma once

#include "runtime/device/cuda/Cuda.h"

/// Grows with every change of Device.h, Cuda.h, StreamCommunicator.h or Status.h: a plugin of another build is refused.
#define MSC_DEVICE_PLUGIN_VERSION 6

/// What the entry point fills in: a backend, or the reason why there is none.
struct MscDeviceBackend {
  msc::device::Backend *backend = nullptr;
  msc::Error error;
};

/// Opens the GPUs of this process. `version` is the caller's MSC_DEVICE_PLUGIN_VERSION; another one leaves `result` alone and
/// returns the plugin's own.
extern "C" __attribute__((visibility("default"))) int mscDeviceCudaBackend(int version, const msc::device::CudaOptions *options,
                                                                           MscDeviceBackend *result);
