// Arrays as NumPy prints them.
#pragma once

#include "runtime/plan/PlanIndex.h"

#include <cstddef>
#include <string>
#include <vector>

namespace msc {

/// What print() of NumPy shows: "[[0.]\n [1.]]". Up to eight digits behind the dot, exponents where numbers are far apart, rows
/// broken at 75 columns, only the edges of more than 1000 elements. `data` is dense and row-major.
std::string numpyText(const std::vector<int64_t> &shape, plan::DataType type, const std::byte *data);

} // namespace msc
