// Which axes of a device matrix cut each dimension of a tensor, packed into words: cheap to copy and to compare.
#pragma once

#include "runtime/plan/Sharding.h"

#include <algorithm>
#include <array>
#include <bit>

namespace msc::dist {

/// What the packed forms hold.
inline constexpr size_t mostAxes = 15, mostDims = 12;

/// The axes that cut one dimension, most major first: number i in bits 4 i to 4 i + 3.
struct AxisList {
  uint64_t packed = 0;
  int64_t pieces = 1; ///< product of their sizes
  uint32_t length = 0;

  size_t operator[](size_t i) const { return packed >> (4 * i) & 15; }
  void put(size_t i, size_t axis, int64_t size) {
    packed |= static_cast<uint64_t>(axis) << (4 * i);
    pieces *= size;
    length = std::max(length, static_cast<uint32_t>(i + 1));
  }
  bool operator==(const AxisList &other) const { return packed == other.packed && length == other.length; }
};

/// One list per dimension of the tensor; those behind its rank are empty.
using AxisLists = std::array<AxisList, mostDims>;

/// Number of axes that both have in front.
inline size_t commonPrefix(const AxisList &a, const AxisList &b) {
  auto equal = static_cast<uint32_t>(std::countr_zero(a.packed ^ b.packed)) / 4;
  return std::min({equal, a.length, b.length});
}

/// The lists of a sharding of at most mostAxes axes and mostDims dimensions.
inline AxisLists listsOf(const Sharding &sharding) {
  AxisLists lists;
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
    for (size_t i = 0; i < sharding.dims[dim].size(); ++i) {
      auto axis = static_cast<size_t>(sharding.dims[dim][i]);
      lists[dim].put(i, axis, sharding.axes[axis]);
    }
  return lists;
}

} // namespace msc::dist
