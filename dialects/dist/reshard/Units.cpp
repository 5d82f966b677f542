#include "dialects/dist/reshard/Units.h"

namespace msc::dist {

Units::Units(const std::vector<int64_t> &axes, const std::vector<int64_t> &shape, int64_t ranks)
    : Units(of(axes, shape, ranks)) {}

Units::Units(std::vector<Parts> parts, std::vector<int64_t> finer, const std::vector<int64_t> &shape, int64_t ranks, bool known)
    : parts(std::move(parts)), lack(std::move(finer), shape), dims(shape.size()), size(ranks), known(known) {}

Units Units::of(const std::vector<int64_t> &axes, const std::vector<int64_t> &shape, int64_t ranks) {
  std::vector<Parts> parts(axes.size());
  bool known = true;
  int64_t stride = 1;
  for (size_t axis = axes.size(); axis-- > 0; stride *= axes[axis]) {
    Parts &part = parts[axis];
    if (stride >= ranks) {
      known &= stride % ranks == 0;
      part.outer = axes[axis];
    } else {
      int64_t room = ranks / stride;
      known &= ranks % stride == 0 && (axes[axis] <= room ? room % axes[axis] == 0 : axes[axis] % room == 0);
      part.inner = std::min(axes[axis], room);
      part.outer = axes[axis] / part.inner;
    }
  }
  std::vector<int64_t> finer;
  for (Parts &part : parts) {
    part.outerAxis = finer.size();
    if (part.outer > 1)
      finer.push_back(part.outer);
    part.innerAxis = finer.size();
    if (part.inner > 1)
      finer.push_back(part.inner);
  }
  known &= finer.size() <= mostAxes;
  return {std::move(parts), std::move(finer), shape, ranks, known};
}

int64_t Units::along(AxisSet set) const {
  int64_t units = 1;
  forEachAxis(set, [&](size_t axis) { units *= parts[axis].outer; });
  return units;
}

/// What all ranks of a unit hold together, or more: axes within units go, and with them all behind the first one.
AxisList Units::held(const AxisList &list) const {
  AxisList together;
  for (size_t i = 0; i < list.length; ++i) {
    const Parts &part = parts[list[i]];
    if (part.outer > 1)
      together.put(together.length, part.outerAxis, part.outer);
    if (part.inner > 1)
      break;
  }
  return together;
}

/// What all ranks of a unit want together, or less: axes within units go unless others follow.
AxisList Units::wanted(const AxisList &list) const {
  AxisList all, together;
  for (size_t i = 0; i < list.length; ++i) {
    const Parts &part = parts[list[i]];
    if (part.outer > 1) {
      all.put(all.length, part.outerAxis, part.outer);
      together = all;
    }
    if (part.inner > 1)
      all.put(all.length, part.innerAxis, part.inner);
  }
  return together;
}

int64_t Units::lackingAtLeast(const AxisLists &heldByRanks, const AxisLists &wantedByRanks) {
  AxisLists have, want;
  for (size_t dim = 0; dim < dims; ++dim) {
    have[dim] = held(heldByRanks[dim]);
    want[dim] = wanted(wantedByRanks[dim]);
  }
  return lack.atLeast(have, want);
}

/// A unit that holds a piece behind one axis and wants one behind another may lack all that it wants.
double Units::shareLackingAtLeast(const AxisLists &heldByRanks, const AxisLists &wantedByRanks) const {
  double all = 1, common = 1;
  for (size_t dim = 0; dim < dims; ++dim) {
    AxisList have = held(heldByRanks[dim]), want = wanted(wantedByRanks[dim]);
    size_t prefix = commonPrefix(have, want);
    all /= static_cast<double>(want.pieces);
    common *= prefix == have.length ? 1 / static_cast<double>(want.pieces) : prefix == want.length ? 1 / static_cast<double>(have.pieces) : 0;
  }
  return all - common;
}

} // namespace msc::dist
