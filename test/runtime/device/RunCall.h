// Runs one kernel that plans call by name.
#pragma once

#include "runtime/device/cpu/CpuDevice.h"

namespace msc::device {

/// Prepares the kernel on a device of its own and runs it twice: it has to overwrite its results, not to add to them.
inline Status runCall(const CallSpec &spec, int threads = 2) {
  std::unique_ptr<Device> device = createCpuDevice(*KernelLibrary::load(plan::Plan()), {threads, {}});
  auto operation = device->prepareCall(spec);
  if (!operation)
    return operation.error();
  if (Status status = device->finishPreparation(); !status)
    return status;
  if (Status status = (*operation)->run(); !status)
    return status;
  return (*operation)->run();
}

} // namespace msc::device
