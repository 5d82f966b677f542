#include "passes/sharding/OutStrategy.h"

#include "passes/sharding/Problem.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace msc::passes {
namespace {

/// An axis of the result that is being made: its size and the dimension that it cuts, or -1.
struct Part {
  int64_t size = 1;
  int32_t dim = -1;
};

/// Cuts what the axis has left off by `size` pieces for a dimension; 0 if it has no common factor with them.
int64_t take(std::vector<Part> &parts, int64_t &left, int64_t wanted, int32_t dim) {
  int64_t taken = std::gcd(left, wanted);
  if (taken == 1)
    return 1;
  parts.push_back({taken, dim});
  left /= taken;
  return taken;
}

Sharding shardingOf(const std::vector<std::vector<Part>> &axes, size_t rank) {
  Sharding sharding;
  sharding.dims.resize(rank);
  for (const std::vector<Part> &parts : axes)
    for (const Part &part : parts) {
      if (part.dim >= 0)
        sharding.dims[part.dim].push_back(static_cast<int32_t>(sharding.axes.size()));
      sharding.axes.push_back(part.size);
    }
  return sharding.canonical();
}

/// Axes of `left` in its own order, some of them split.
std::optional<Sharding> byOwnAxes(const Sharding &left, const std::vector<int64_t> &pieces) {
  std::vector<int32_t> use(left.axes.size(), -1);
  std::vector<int64_t> open;
  for (size_t dim = 0; dim < pieces.size(); ++dim) {
    if (pieces[dim] % left.pieces(dim) != 0)
      return std::nullopt;
    open.push_back(pieces[dim] / left.pieces(dim));
    for (int32_t axis : left.dims[dim])
      use[axis] = static_cast<int32_t>(dim);
  }
  std::vector<std::vector<Part>> axes(left.axes.size());
  std::vector<int64_t> rest = left.axes;
  auto spend = [&](size_t axis) {
    for (size_t dim = 0; dim < open.size(); ++dim)
      open[dim] /= take(axes[axis], rest[axis], open[dim], static_cast<int32_t>(dim));
  };
  for (const PartialAxis &partial : left.partial)
    spend(partial.axis);
  for (size_t axis = 0; axis < left.axes.size(); ++axis) {
    bool isPartial = std::ranges::any_of(left.partial, [&](const PartialAxis &p) { return p.axis == static_cast<int32_t>(axis); });
    if (use[axis] < 0 && !isPartial)
      spend(axis);
    axes[axis].push_back({rest[axis], use[axis]});
  }
  if (std::ranges::any_of(open, [](int64_t count) { return count != 1; }))
    return std::nullopt;
  Sharding made = shardingOf(axes, pieces.size());
  // What was cut already stays the coarser cut of each dimension.
  for (size_t dim = 0; dim < pieces.size(); ++dim)
    if (made.pieces(dim) != pieces[dim])
      return std::nullopt;
  return made;
}

} // namespace

Sharding outSharding(const Sharding &left, const std::vector<int64_t> &pieces) {
  if (auto own = byOwnAxes(left, pieces))
    return *own;
  Sharding inOrder;
  int64_t repeats = left.devices();
  for (int64_t count : pieces) {
    inOrder.dims.push_back({static_cast<int32_t>(inOrder.axes.size())});
    inOrder.axes.push_back(count);
    repeats /= count;
  }
  inOrder.axes.push_back(repeats);
  return inOrder.canonical();
}

std::vector<Sharding> outOf(const ProblemOperator &op, const Pieces &pieces, int64_t devices) {
  if (op.wantedOut.empty() || op.wantedOut == outStrategy(op.facts.rule, pieces))
    return {};
  const Placement byRule = placementOf(op.facts, pieces, devices);
  std::vector<Sharding> out;
  for (size_t result = 0; result < op.wantedOut.size(); ++result)
    out.push_back(outSharding(byRule.partialResults[result], op.wantedOut[result]));
  return out;
}

} // namespace msc::passes
