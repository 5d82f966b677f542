// The largest elements of neighbouring windows, sixteen at a time, compiled once for each instruction set. Plain pointers only: nothing
// of the standard library may come out of a file that is compiled for a newer processor.
#pragma once

#include <cstdint>

namespace msc::device::calls {

/// Windows that are searched at once.
constexpr int64_t kMaxWindows = 16;

/// Windows of `rows` x `columns` elements in rows that are `rowLength` apart; the next one begins `step` elements behind.
struct MaxWindows {
  const float *x = nullptr; ///< the first element of the first window
  int64_t rowLength = 0, rows = 0, columns = 0;
};

/// Writes the largest element of each of `kMaxWindows` windows, and how far it lies behind the first one of its window: the first of
/// equal ones, row by row; NaN counts as largest. Reads up to one element behind each row of the last window. `places` may be null.
using LargestOfWindows = void (*)(const MaxWindows &windows, float *most, int32_t *places);

/// For windows that begin `step` elements apart; null where there is no kernel.
namespace v3 { LargestOfWindows largestOfWindows(int64_t step); }
namespace v4 { LargestOfWindows largestOfWindows(int64_t step); }

} // namespace msc::device::calls
