// Attributes of pooling as windows.
#pragma once

#include "runtime/plan/calls/Call.h"
#include "runtime/plan/calls/Window.h"

namespace msc {

/// The windows of a pooling kernel over an image of `rows` x `columns`: attributes kernel_size, strides, pad_mode, pad.
std::optional<std::array<Window, 2>> poolingWindows(const CallAttributes &attributes, int64_t rows, int64_t columns,
                                                    std::string &why);

} // namespace msc
