// Windows that slide over the rows and columns of an image: the arithmetic that convolutions and pooling share, in the
// compiler and in the runtime.
#pragma once

#include "runtime/plan/Sharding.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace msc {

/// Attributes as users write them: one number for both directions, or (rows, columns). MindSpore's tuples of four, with
/// 1 for batch and channels, are read too.
struct WindowAttributes {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> dilation = {1};
  const char *strideName = "stride"; ///< as the operator calls it
  std::string padMode = "valid"; ///< valid, same, pad
  std::vector<int64_t> pad = {0}; ///< with mode pad: all four sides, or (top, bottom, left, right)
};

/// One direction: output i covers the inputs i * stride - before + t * dilation for t in [0, kernel).
struct Window {
  int64_t input = 0, output = 0;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0; ///< padding

  /// Positions t of the kernel for which output i covers an input: [first, last).
  int64_t first(int64_t i) const;
  int64_t last(int64_t i) const;
  /// The input under position t.
  int64_t under(int64_t i, int64_t t) const { return i * stride - before + t * dilation; }
  /// From the first input that any of the outputs reaches to the last one, padding left out.
  Range under(const Range &outputs) const;
  /// The outputs whose windows reach over any of the inputs, holes of a dilated kernel not minded.
  Range over(const Range &inputs) const;
};

/// (rows, columns) of an attribute; none unless it has one, two, or four numbers that begin with 1, 1.
std::optional<std::array<int64_t, 2>> bothDirections(const std::vector<int64_t> &attribute);

/// The windows over an image of `rows` x `columns`. On failure empty, and `why` says what is wrong with which attribute,
/// e.g. "'stride' has 3 numbers". Every number is checked: nothing overflows later.
std::optional<std::array<Window, 2>> windowsOver(const WindowAttributes &attributes, int64_t rows, int64_t columns,
                                                 std::string &why);

} // namespace msc
