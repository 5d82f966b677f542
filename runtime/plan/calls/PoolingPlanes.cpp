// The parts of images that a rank has in memory, and the windows of a pooling kernel over them.
#include "runtime/plan/calls/PoolingPlanes.h"

#include <algorithm>

namespace msc {
namespace {

/// One direction: the windows of which `small` is in memory, over the elements of the large side that are.
std::vector<PoolingCover> coversOf(const PoolingSide &side, const Range &windows, const Range &small, const Range &large) {
  std::vector<PoolingCover> covers;
  for (int64_t i = windows.begin; i < windows.end; ++i) {
    Range cover = side.cover(i);
    int64_t begin = std::max(cover.begin, large.begin), end = std::max(begin, std::min(cover.end, large.end));
    covers.push_back({i - small.begin, begin - large.begin, end - large.begin, side.counted(i)});
  }
  return covers;
}

/// The part of both sides that a rank has in memory, and windows between them.
struct Parts {
  std::array<Range, 2> windows, small, large;
};

PoolingPlanes planesOf(const std::array<PoolingSide, 2> &sides, const Parts &parts) {
  auto covers = [&](size_t d) { return coversOf(sides[d], parts.windows[d], parts.small[d], parts.large[d]); };
  return {covers(0), covers(1), parts.large[0].size(), parts.large[1].size(), parts.small[0].size(), parts.small[1].size()};
}

/// The checker has accepted the sizes.
std::array<PoolingSide, 2> sidesOf(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  std::string why;
  return *poolingSides(spec, large.size(2), large.size(3), small.size(2), small.size(3), why);
}

} // namespace

PoolingPlanes planesOfPool(const CallSpec &spec) {
  const CallTensor &large = spec.operands[0], &small = spec.results[0];
  auto sides = sidesOf(spec, large, small);
  Parts parts;
  for (size_t d : {0, 1}) {
    parts.windows[d] = parts.small[d] = small.box[d + 2];
    parts.large[d] = large.held(d + 2, sides[d].under(small.box[d + 2]));
  }
  return planesOf(sides, parts);
}

PoolingPlanes planesOfGradient(const CallSpec &spec, const CallTensor &images, PoolingInset &inset) {
  const CallTensor &dx = spec.results[0], &small = spec.operands.back();
  auto sides = sidesOf(spec, dx, small);
  Parts parts;
  for (size_t d : {0, 1}) {
    const Range &own = dx.box[d + 2];
    parts.windows[d] = sides[d].over(own);
    parts.small[d] = small.held(d + 2, parts.windows[d]);
    parts.large[d] = images.held(d + 2, sides[d].under(parts.windows[d]));
    (d == 0 ? inset.rows : inset.columns) = own.size();
    (d == 0 ? inset.firstRow : inset.firstColumn) = own.begin - parts.large[d].begin;
  }
  return planesOf(sides, parts);
}

} // namespace msc
