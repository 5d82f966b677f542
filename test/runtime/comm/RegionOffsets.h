// Where the elements of a region lie, counted one by one: what copies are compared with.
#pragma once

#include "runtime/comm/Communicator.h"

#include <utility>
#include <vector>

namespace msc::test {

/// Offsets of all elements in row-major order.
inline std::vector<int64_t> offsetsOf(const comm::Region &region) {
  std::vector<int64_t> offsets{region.offset};
  for (size_t d = 0; d < region.sizes.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < region.sizes[d]; ++i)
        next.push_back(offset + i * region.strides[d]);
    offsets = std::move(next);
  }
  return offsets;
}

} // namespace msc::test
