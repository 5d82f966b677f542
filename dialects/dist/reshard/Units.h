// A device matrix seen from one level of the topology: all ranks of a unit are one. What a unit lacks has to cross its border,
// in collectives of a level further out.
#pragma once

#include "dialects/dist/Lacking.h"
#include "dialects/dist/reshard/State.h"

namespace msc::dist {

class Units {
public:
  /// Units of `ranks` neighbouring ranks.
  Units(const std::vector<int64_t> &axes, const std::vector<int64_t> &shape, int64_t ranks);

  /// Are units whole blocks of neighbouring ranks along inner axes, of which a part may belong to each unit? If not, nothing is known.
  bool areKnown() const { return known; }
  int64_t ranks() const { return size; }
  /// Units along the axes: 1 where they lie within a unit.
  int64_t along(AxisSet set) const;
  /// Elements that some unit wants and none of its ranks holds, or less.
  int64_t lackingAtLeast(const AxisLists &held, const AxisLists &wanted);
  /// The same as a share of the tensor, as if dimensions could be cut anywhere.
  double shareLackingAtLeast(const AxisLists &held, const AxisLists &wanted) const;

private:
  /// An axis lies within units, across them, or is the product of two that do.
  struct Parts {
    int64_t outer = 1, inner = 1;
    size_t outerAxis = 0, innerAxis = 0; ///< of the finer matrix, where they are not 1
  };

  Units(std::vector<Parts> parts, std::vector<int64_t> finer, const std::vector<int64_t> &shape, int64_t ranks, bool known);
  static Units of(const std::vector<int64_t> &axes, const std::vector<int64_t> &shape, int64_t ranks);
  AxisList held(const AxisList &list) const;
  AxisList wanted(const AxisList &list) const;

  std::vector<Parts> parts;
  Lacking lack;
  size_t dims;
  int64_t size;
  bool known;
};

} // namespace msc::dist
