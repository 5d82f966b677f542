// Calls that go along one dimension: running sums, the largest elements, look-ups element by element.
#pragma once

#include "runtime/device/cuda/WindowCalls.h"

namespace msc::device::cuda {

void addLineCalls(std::map<std::string, PrepareCall> &table);

} // namespace msc::device::cuda
