// Calls of attention and its gradient.
#pragma once

#include "runtime/device/cuda/WindowCalls.h"

namespace msc::device::cuda {

void addAttentionCalls(std::map<std::string, PrepareCall> &table);

} // namespace msc::device::cuda
