// Calls of kernels by name.
#pragma once

#include "runtime/device/cuda/Operations.h"

namespace msc::device::cuda {

/// `spec` has passed checkCall. NoResource if there is no kernel for it.
Prepared prepareCall(Shared &shared, const CallSpec &spec);

} // namespace msc::device::cuda
