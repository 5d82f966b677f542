#include "runtime/plan/CopyRegion.h"

#include <algorithm>
#include <numeric>

namespace msc {
namespace {

/// Numbers of one range in a flat list.
constexpr size_t numbersPerRange = 5;

/// Do first + i * stride, 0 <= i < count, lie in [0, size)? Without overflow whatever the numbers are.
bool liesWithin(int64_t first, int64_t stride, int64_t count, int64_t size) {
  __int128 last = static_cast<__int128>(first) + static_cast<__int128>(stride) * (count - 1);
  return first >= 0 && first < size && last >= 0 && last < size;
}

/// Can the two lists of target indices share one?
bool mayMeet(const CopyRange &a, const CopyRange &b) {
  int64_t lastA = a.target + (a.size - 1) * a.targetStride, lastB = b.target + (b.size - 1) * b.targetStride;
  if (lastA < b.target || lastB < a.target)
    return false;
  return (a.target - b.target) % std::gcd(a.targetStride, b.targetStride) == 0;
}

bool mayMeet(const CopyRegion &a, const CopyRegion &b) {
  for (size_t dim = 0; dim < a.ranges.size(); ++dim)
    if (!mayMeet(a.ranges[dim], b.ranges[dim]))
      return false;
  return true;
}

std::string checkRegion(const CopyRegion &region, const std::vector<std::vector<int64_t>> &sources,
                        const std::vector<int64_t> &target) {
  if (region.operand >= sources.size())
    return "a region reads operand " + std::to_string(region.operand) + " of " + std::to_string(sources.size());
  const std::vector<int64_t> &source = sources[region.operand];
  if (source.size() != target.size() || region.ranges.size() != target.size())
    return "a region of " + std::to_string(region.ranges.size()) + " dimensions copies from " +
           std::to_string(source.size()) + " to " + std::to_string(target.size());
  for (size_t dim = 0; dim < target.size(); ++dim) {
    const CopyRange &range = region.ranges[dim];
    if (range.size < 1 || range.sourceStride == 0 || range.targetStride < 1)
      return "a region has size " + std::to_string(range.size) + " and strides " + std::to_string(range.sourceStride) +
             " and " + std::to_string(range.targetStride) + " in dimension " + std::to_string(dim);
    if (!liesWithin(range.source, range.sourceStride, range.size, source[dim]) ||
        !liesWithin(range.target, range.targetStride, range.size, target[dim]))
      return "a region does not lie within dimension " + std::to_string(dim);
  }
  return "";
}

/// The i in [0, count) with begin <= first + i * stride < end.
Range indicesIn(int64_t first, int64_t stride, int64_t count, const Range &range) {
  auto ceilDivide = [](int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }; // b > 0
  int64_t low = range.begin - first, high = range.end - first; // low <= i * stride < high
  if (stride < 0) {
    stride = -stride;
    std::swap(low, high);
    low = 1 - low, high = 1 - high; // -(high - 1) <= i * |stride| < -(low - 1), swapped above
  }
  Range indices{std::clamp<int64_t>(ceilDivide(low, stride), 0, count),
                std::clamp<int64_t>(ceilDivide(high, stride), 0, count)};
  indices.end = std::max(indices.begin, indices.end);
  return indices;
}

} // namespace

int64_t elementCount(const CopyRegion &region) {
  int64_t count = 1;
  for (const CopyRange &range : region.ranges)
    count *= range.size;
  return count;
}

std::string checkRegions(const CopyRegions &regions, const std::vector<std::vector<int64_t>> &sources,
                         const std::vector<int64_t> &target) {
  for (const CopyRegion &region : regions)
    if (std::string wrong = checkRegion(region, sources, target); !wrong.empty())
      return wrong;
  for (size_t i = 0; i < regions.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (mayMeet(regions[i], regions[k]))
        return "regions " + std::to_string(k) + " and " + std::to_string(i) + " write the same elements";
  return "";
}

bool coverTarget(const CopyRegions &regions, const std::vector<int64_t> &target) {
  int64_t written = 0;
  for (const CopyRegion &region : regions)
    written += elementCount(region);
  return written == elementCount(target);
}

std::vector<bool> movedDimensions(const CopyRegions &regions, const std::vector<std::vector<int64_t>> &sources,
                                  const std::vector<int64_t> &target) {
  std::vector<bool> moved(target.size(), false);
  for (const CopyRegion &region : regions)
    for (size_t dim = 0; dim < target.size(); ++dim)
      if (int64_t size = target[dim]; region.ranges[dim] != CopyRange{0, 0, size} || sources[region.operand][dim] != size)
        moved[dim] = true;
  return moved;
}

Box indicesInSource(const CopyRegion &region, const Box &source) {
  Box box;
  for (size_t dim = 0; dim < source.size(); ++dim) {
    const CopyRange &range = region.ranges[dim];
    box.push_back(indicesIn(range.source, range.sourceStride, range.size, source[dim]));
  }
  return box;
}

Box indicesInTarget(const CopyRegion &region, const Box &target) {
  Box box;
  for (size_t dim = 0; dim < target.size(); ++dim) {
    const CopyRange &range = region.ranges[dim];
    box.push_back(indicesIn(range.target, range.targetStride, range.size, target[dim]));
  }
  return box;
}

CopyRegion transposed(const CopyRegion &region) {
  CopyRegion result;
  for (const CopyRange &range : region.ranges) {
    CopyRange back{range.target, range.source, range.size, range.targetStride, range.sourceStride};
    if (back.targetStride < 0) { // from the other end
      back.source += (back.size - 1) * back.sourceStride;
      back.target += (back.size - 1) * back.targetStride;
      back.sourceStride = -back.sourceStride;
      back.targetStride = -back.targetStride;
    }
    result.ranges.push_back(back);
  }
  return result;
}

std::vector<CopyRegions> withoutOverlap(const CopyRegions &regions) {
  std::vector<CopyRegions> lists;
  for (const CopyRegion &region : regions) {
    auto isFree = [&](const CopyRegions &list) {
      return std::none_of(list.begin(), list.end(), [&](const CopyRegion &other) { return mayMeet(region, other); });
    };
    auto list = std::find_if(lists.begin(), lists.end(), isFree);
    (list == lists.end() ? lists.emplace_back() : *list).push_back(region);
  }
  return lists;
}

static int64_t receivedOn(const CopyEnds &ends, int64_t rank) {
  Box held = ends.source.localBox(ends.sourceShape, rank), wanted = ends.target.localBox(ends.targetShape, rank);
  int64_t received = 0;
  for (const CopyRegion &region : ends.regions) {
    Box needed = indicesInTarget(region, wanted);
    received += elementCount(needed) - elementCount(intersect(needed, indicesInSource(region, held)));
  }
  return received;
}

std::vector<int64_t> receivedElements(std::span<const CopyEnds> tensors) {
  std::vector<int64_t> most(tensors.size(), 0), received(tensors.size());
  int64_t mostInAll = 0;
  for (int64_t rank = 0; !tensors.empty() && rank < tensors.front().target.devices(); ++rank) {
    for (size_t i = 0; i < tensors.size(); ++i)
      received[i] = receivedOn(tensors[i], rank);
    if (int64_t total = std::accumulate(received.begin(), received.end(), int64_t{0}); total > mostInAll) {
      mostInAll = total;
      most = received;
    }
  }
  return most;
}

std::vector<int64_t> flattened(const CopyRegions &regions) {
  std::vector<int64_t> numbers;
  for (const CopyRegion &region : regions) {
    numbers.push_back(region.operand);
    for (const CopyRange &range : region.ranges)
      numbers.insert(numbers.end(), {range.source, range.target, range.size, range.sourceStride, range.targetStride});
  }
  return numbers;
}

CopyRegions regionsFrom(std::span<const int64_t> numbers, size_t dimensions) {
  CopyRegions regions;
  size_t length = 1 + numbersPerRange * dimensions;
  if (numbers.size() % length != 0)
    return regions;
  for (size_t at = 0; at < numbers.size(); at += length) {
    CopyRegion &region = regions.emplace_back();
    region.operand = static_cast<uint32_t>(std::clamp<int64_t>(numbers[at], 0, UINT32_MAX));
    for (size_t i = at + 1; i < at + length; i += numbersPerRange)
      region.ranges.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3], numbers[i + 4]});
  }
  return regions;
}

} // namespace msc
