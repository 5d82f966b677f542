#include "passes/plan/MemoryPacking.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace msc::passes {
namespace {

int64_t alignTo(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

/// Offsets that are taken. Neighbours are one run.
class Runs {
public:
  void add(int64_t from, int64_t to) {
    auto next = runs.upper_bound(from);
    if (next != runs.begin())
      if (auto before = std::prev(next); before->second >= from) {
        from = before->first;
        to = std::max(to, before->second);
        runs.erase(before);
      }
    while (next != runs.end() && next->first <= to) {
      to = std::max(to, next->second);
      next = runs.erase(next);
    }
    runs.emplace(from, to);
  }

  /// The first offset from there on behind which so much is free.
  int64_t firstFree(int64_t offset, int64_t size) const {
    auto next = runs.upper_bound(offset);
    if (next != runs.begin())
      offset = std::max(offset, std::prev(next)->second);
    for (; next != runs.end() && next->first < offset + size; ++next)
      offset = next->second;
    return offset;
  }

private:
  std::map<int64_t, int64_t> runs; ///< from, to
};

/// What is taken during which steps: a segment tree over the steps. Blocks that are live in many of the same steps lie beside each
/// other as a rule, so that all of them are a few runs.
class Occupied {
public:
  explicit Occupied(size_t steps) : leaves(std::bit_ceil(std::max<size_t>(steps, 1))), all(2 * leaves), touched(2 * leaves) {}

  void add(size_t first, size_t last, int64_t from, int64_t to) {
    visit(1, 0, leaves, first, last, [&](size_t node, bool isInside) {
      touched[node].add(from, to);
      if (isInside)
        all[node].add(from, to);
    });
  }

  /// The first offset at which so much is free in all of these steps.
  int64_t firstFree(size_t first, size_t last, int64_t size) const {
    std::vector<const Runs *> taken;
    visit(1, 0, leaves, first, last, [&](size_t node, bool isInside) { taken.push_back(&(isInside ? touched : all)[node]); });
    int64_t offset = 0;
    for (size_t sinceMoved = 0, i = 0; sinceMoved < taken.size(); i = (i + 1) % taken.size(), ++sinceMoved)
      if (const int64_t free = taken[i]->firstFree(offset, size); free != offset) {
        offset = free;
        sinceMoved = 0;
      }
    return offset;
  }

private:
  size_t leaves;
  std::vector<Runs> all, touched; ///< of each node: in all of its steps at once, and in any

  /// Nodes of which some steps are in [first, last]; where all are, nothing beneath.
  template <typename Visit> static void visit(size_t node, size_t from, size_t to, size_t first, size_t last, Visit of) {
    if (last < from || to <= first)
      return;
    const bool isInside = first <= from && to <= last + 1;
    of(node, isInside);
    if (isInside)
      return;
    const size_t middle = from + (to - from) / 2;
    visit(2 * node, from, middle, first, last, of);
    visit(2 * node + 1, middle, to, first, last, of);
  }
};

} // namespace

Packing packMemory(const std::vector<MemoryBlock> &blocks, int64_t alignment) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<int64_t> steps; // in which a life begins: two lives overlap where one begins in the other
  for (const MemoryBlock &block : blocks)
    steps.push_back(block.first);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  auto placeOf = [&](int64_t step) { return static_cast<size_t>(std::upper_bound(steps.begin(), steps.end(), step) - steps.begin() - 1); };

  Packing packing;
  packing.offsets.assign(blocks.size(), 0);
  Occupied occupied(steps.size());
  for (size_t index : order) {
    const MemoryBlock &block = blocks[index];
    const int64_t size = alignTo(block.bytes, alignment);
    if (size == 0)
      continue;
    const size_t first = placeOf(block.first), last = placeOf(block.last);
    const int64_t offset = occupied.firstFree(first, last, size);
    occupied.add(first, last, offset, offset + size);
    packing.offsets[index] = offset;
    packing.bytes = std::max(packing.bytes, offset + size);
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
