// Numbers as elements of tensors.
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace msc::device {

/// `value` as one element of `type`, in the low bytes.
uint64_t elementBits(plan::DataType type, double value);

} // namespace msc::device
