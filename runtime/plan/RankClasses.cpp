#include "runtime/plan/RankClasses.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace msc {

void RankClasses::add(const Sharding &sharding, size_t dim) {
  for (int32_t axis : sharding.dims[dim]) {
    int64_t inner = 1;
    for (size_t i = static_cast<size_t>(axis) + 1; i < sharding.axes.size(); ++i)
      inner *= sharding.axes[i];
    axes.push_back({inner, inner * sharding.axes[axis]});
  }
}

void RankClasses::addPieces(const Sharding &sharding) {
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
    add(sharding, dim);
}

void RankClasses::addSizes(const Sharding &sharding, const std::vector<int64_t> &shape) {
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
    if (shape[dim] % sharding.pieces(dim) != 0)
      add(sharding, dim);
}

/// Ascending block sizes, from 1 to all ranks, each a multiple of the one before, that every block size of an axis
/// divides or is a multiple of: between two of them a rank has one digit, on which some axes depend and others do not.
std::vector<int64_t> RankClasses::boundaries() const {
  std::set<int64_t> blocks{1, devices}, candidates;
  for (const Axis &axis : axes)
    blocks.insert({axis.inner, axis.outer});
  // Where two factorisations do not refine each other, what is common to all smaller or all larger blocks.
  int64_t below = 1, above = devices;
  for (auto block = blocks.begin(); block != blocks.end(); ++block) {
    below = std::lcm(below, *block);
    candidates.insert(below);
    if (devices % below != 0)
      break;
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    candidates.insert(above = std::gcd(above, *block));
  std::vector<int64_t> result{1};
  for (int64_t candidate : candidates) {
    bool fits = candidate > result.back() && candidate % result.back() == 0 && devices % candidate == 0;
    if (fits && std::all_of(blocks.begin(), blocks.end(),
                            [&](int64_t block) { return block % candidate == 0 || candidate % block == 0; }))
      result.push_back(candidate);
  }
  return result;
}

std::vector<int64_t> RankClasses::ranks() const {
  std::vector<int64_t> result{0}, blocks = boundaries();
  for (size_t digit = blocks.size() - 1; digit-- > 0;) {
    int64_t inner = blocks[digit], outer = blocks[digit + 1];
    bool counts = std::any_of(axes.begin(), axes.end(),
                              [&](const Axis &axis) { return axis.inner < outer && axis.outer > inner; });
    if (!counts)
      continue;
    std::vector<int64_t> longer;
    longer.reserve(result.size() * static_cast<size_t>(outer / inner));
    for (int64_t rank : result)
      for (int64_t at = 0; at < outer / inner; ++at)
        longer.push_back(rank + at * inner);
    result = std::move(longer);
  }
  return result;
}

} // namespace msc
