#include "passes/plan/MemoryPacking.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace msc::passes {

static int64_t alignTo(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

Packing packMemory(const std::vector<MemoryBlock> &blocks, int64_t alignment) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  Packing packing;
  packing.offsets.assign(blocks.size(), 0);
  std::vector<size_t> placed; // ascending by offset
  for (size_t index : order) {
    const MemoryBlock &block = blocks[index];
    int64_t size = alignTo(block.bytes, alignment), offset = 0;
    for (size_t other : placed) {
      const MemoryBlock &neighbour = blocks[other];
      if (neighbour.last < block.first || block.last < neighbour.first)
        continue;
      if (packing.offsets[other] >= offset + size)
        break; // fits into the gap before this neighbour
      offset = std::max(offset, packing.offsets[other] + alignTo(neighbour.bytes, alignment));
    }
    packing.offsets[index] = offset;
    packing.bytes = std::max(packing.bytes, offset + size);
    auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                               [&](int64_t value, size_t other) { return value < packing.offsets[other]; });
    placed.insert(at, index);
  }
  return packing;
}

int64_t memoryLowerBound(const std::vector<MemoryBlock> &blocks, int64_t alignment) {
  std::map<int64_t, int64_t> change;
  for (const MemoryBlock &block : blocks) {
    change[block.first] += alignTo(block.bytes, alignment);
    change[block.last + 1] -= alignTo(block.bytes, alignment);
  }
  int64_t live = 0, most = 0;
  for (auto [step, bytes] : change)
    most = std::max(most, live += bytes);
  return most;
}

} // namespace msc::passes
