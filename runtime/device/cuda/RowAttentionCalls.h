// Calls of attention that Attention.cu has no kernels for, and the gradient of its mask.
#pragma once

#include "runtime/device/cuda/WindowCalls.h"

namespace msc::device::cuda {

void addRowAttentionCalls(std::map<std::string, PrepareCall> &table);

/// In f64, or with heads of more than 256 elements.
bool attendsByRows(const CallSpec &spec);
Prepared attendByRows(Shared &shared, const CallSpec &spec);
Prepared attendBackByRows(Shared &shared, const CallSpec &spec);

} // namespace msc::device::cuda
