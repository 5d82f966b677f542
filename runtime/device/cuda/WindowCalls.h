// Calls that slide windows over images: convolutions and pooling, with their gradients.
#pragma once

#include "runtime/device/cuda/Operations.h"

#include <map>
#include <string>

namespace msc::device::cuda {

/// What a call becomes; it has passed checkCall.
using PrepareCall = Prepared (*)(Shared &shared, const CallSpec &spec);

/// There is no kernel for the type of the call.
Error lacks(const CallSpec &spec);

/// "msc_name_f32": the kernel of this name for a type of numbers.
std::string numberEntry(const char *name, plan::DataType type);

void addWindowCalls(std::map<std::string, PrepareCall> &table);

} // namespace msc::device::cuda
