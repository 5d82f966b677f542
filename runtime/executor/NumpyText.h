// Arrays as NumPy prints them.
#pragma once

#include "runtime/plan/PlanIndex.h"

#include <cstddef>
#include <string>
#include <vector>

namespace msc {

/// "[[0.]\n [1.]]": floats with a dot, in the fewest digits that read back as the same number, aligned at it. Rows are not
/// broken and long arrays not shortened. `data` is dense and row-major.
std::string numpyText(const std::vector<int64_t> &shape, plan::DataType type, const std::byte *data);

} // namespace msc
