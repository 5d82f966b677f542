#include "passes/plan/MemoryPacking.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <random>

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

/// Of one size the first to come is first, or the last to go: on their own blocks of one size need no more than are live at once then.
enum class OfOneSize { FirstToCome, LastToGo };

std::vector<size_t> bySize(const std::vector<MemoryBlock> &blocks, OfOneSize first = OfOneSize::LastToGo) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (blocks[a].bytes != blocks[b].bytes)
      return blocks[a].bytes > blocks[b].bytes;
    return first == OfOneSize::LastToGo ? blocks[a].last > blocks[b].last : blocks[a].first < blocks[b].first;
  });
  return order;
}

/// Few blocks in many orders, each block at the lowest offset that is free. Keeps a reference.
class Orders {
public:
  Orders(const std::vector<MemoryBlock> &blocks, int64_t alignment) : blocks(blocks), near(blocks.size()) {
    for (const MemoryBlock &block : blocks)
      sizes.push_back(alignTo(block.bytes, alignment));
    for (size_t a = 0; a < blocks.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        if (sizes[a] > 0 && sizes[b] > 0 && blocks[a].first <= blocks[b].last && blocks[b].first <= blocks[a].last) {
          near[a].push_back(b);
          near[b].push_back(a);
          pairs += 2;
        }
  }

  /// From either order by size, half as often each.
  Packing find(int64_t enough) {
    constexpr int64_t mostOrders = 2000, mostPairs = int64_t(1) << 22;
    const int64_t count = std::min(mostOrders, mostPairs / std::max<int64_t>(pairs, 1)) / 2;
    Packing least;
    for (OfOneSize first : {OfOneSize::LastToGo, OfOneSize::FirstToCome}) {
      order = bySize(blocks, first);
      best = place(order, std::numeric_limits<int64_t>::max());
      improve(enough, count);
      if (least.offsets.empty() || best.bytes < least.bytes)
        least = std::move(best);
      if (least.bytes <= enough)
        break;
    }
    return least;
  }

private:
  const std::vector<MemoryBlock> &blocks;
  std::vector<size_t> order;
  std::vector<std::vector<size_t>> near; ///< of each block: those that are live in a step in which it is
  std::vector<int64_t> sizes;
  int64_t pairs = 0;
  Packing best;
  std::vector<std::pair<int64_t, int64_t>> taken;
  std::mt19937 random; // the same everywhere

  void improve(int64_t enough, int64_t count) {
    for (int64_t i = 0; i < count && best.bytes > enough; ++i) {
      std::vector<size_t> next = order;
      for (uint32_t moves = 1 + random() % 3; moves > 0; --moves)
        if (moves == 1 && random() % 2 == 0) {
          const size_t from = onTop(next);
          move(next, from, random() % (from + 1));
        } else {
          move(next, random() % next.size(), random() % next.size());
        }
      if (Packing found = place(next, best.bytes); found.bytes <= best.bytes) {
        order = std::move(next);
        best = std::move(found);
      }
    }
  }

  /// Given up where it needs more than `most`.
  Packing place(const std::vector<size_t> &order, int64_t most) {
    Packing packing;
    packing.offsets.assign(blocks.size(), -1);
    for (size_t index : order) {
      taken.clear();
      for (size_t other : near[index])
        if (packing.offsets[other] >= 0)
          taken.emplace_back(packing.offsets[other], packing.offsets[other] + sizes[other]);
      std::sort(taken.begin(), taken.end());
      int64_t offset = 0;
      for (auto [from, to] : taken) {
        if (from >= offset + sizes[index])
          break;
        offset = std::max(offset, to);
      }
      packing.offsets[index] = offset;
      packing.bytes = std::max(packing.bytes, offset + sizes[index]);
      if (packing.bytes > most)
        break;
    }
    return packing;
  }

  /// Where in the order one of the blocks stands that end where the best packing ends.
  size_t onTop(const std::vector<size_t> &order) {
    std::vector<size_t> found;
    for (size_t i = 0; i < order.size(); ++i)
      if (best.offsets[order[i]] + sizes[order[i]] == best.bytes)
        found.push_back(i);
    return found[random() % found.size()];
  }

  static void move(std::vector<size_t> &order, size_t from, size_t to) {
    if (from < to)
      std::rotate(order.begin() + from, order.begin() + from + 1, order.begin() + to + 1);
    else
      std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
  }
};

} // namespace

Packing packTightly(const std::vector<MemoryBlock> &blocks, int64_t enough, int64_t alignment) {
  constexpr size_t mostBlocks = 2000;
  Packing first = packMemory(blocks, alignment);
  const int64_t least = std::max(enough, memoryLowerBound(blocks, alignment));
  if (first.bytes <= least || blocks.size() > mostBlocks)
    return first;
  return Orders(blocks, alignment).find(least);
}

Packing packMemory(const std::vector<MemoryBlock> &blocks, int64_t alignment) {
  const std::vector<size_t> order = bySize(blocks);
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
