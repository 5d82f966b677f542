// What pooling is on one rank: which elements of the images each element of the result stands for.
#pragma once

#include "runtime/plan/calls/Call.h"
#include "runtime/plan/calls/PoolingSide.h"

namespace msc {

/// Rows and columns of a pooling kernel over images of `rows` x `columns`: attributes kernel_size, strides, pad_mode, pad,
/// count_include_pad; of an adaptive one with a result of `smallRows` x `smallColumns`. On failure empty, and `why` says what
/// does not fit.
std::optional<std::array<PoolingSide, 2>> poolingSides(const CallSpec &spec, int64_t rows, int64_t columns, int64_t smallRows,
                                                       int64_t smallColumns, std::string &why);

} // namespace msc
