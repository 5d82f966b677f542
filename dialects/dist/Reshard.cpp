#include "dialects/dist/Reshard.h"

#include <algorithm>
#include <cassert>

namespace msc::dist {

namespace {

using Axes = std::vector<int32_t>;
using Shape = std::vector<int64_t>;
using Steps = std::vector<ReshardStep>;

size_t commonPrefix(const Axes &a, const Axes &b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

bool isPrefix(const Axes &prefix, const Axes &list) {
  return commonPrefix(prefix, list) == prefix.size();
}

/// Elements of the busiest rank, as far as a slice is concerned.
int64_t largestShard(const Sharding &sharding, const Shape &shape) {
  return elementCount(sharding.capacity(shape));
}

ReshardStep moveStep(MoveKind kind, const Sharding &before, const Sharding &after, const Shape &shape, Axes axes) {
  std::sort(axes.begin(), axes.end());
  ReshardStep step{.kind = kind, .after = after, .groupMatrix = before.axes, .groupAxes = std::move(axes)};
  step.receivedElements = kind == MoveKind::Slice ? largestShard(after, shape) : receivedElements(before, after, shape);
  return step;
}

/// One AllReduce per kind of reduction: the kinds do not commute.
Sharding complete(const Sharding &from, const Shape &shape, Steps &steps) {
  Sharding now = from;
  while (!now.partial.empty()) {
    ReduceKind kind = now.partial.back().kind;
    ReshardStep step{.kind = MoveKind::AllReduce, .groupMatrix = now.axes, .reduce = kind};
    std::erase_if(now.partial, [&](const PartialAxis &p) {
      if (p.kind == kind)
        step.groupAxes.push_back(p.axis);
      return p.kind == kind;
    });
    step.after = now;
    step.receivedElements =
        allReduceElements(largestShard(now, shape), groupShape(step.groupMatrix, step.groupAxes).size);
    steps.push_back(std::move(step));
  }
  return now;
}

/// A redistribution in the making, both sides over one device matrix.
struct Route {
  Sharding now;
  Sharding target;
  const Shape &shape;
  Steps steps;

  void move(MoveKind kind, const Sharding &after, Axes axes, int64_t dimension = -1, int64_t splitDimension = -1) {
    ReshardStep step = moveStep(kind, now, after, shape, std::move(axes));
    step.dimension = dimension;
    step.splitDimension = splitDimension;
    steps.push_back(std::move(step));
    now = after;
  }

  /// Cuts what the target cuts by axes that still repeat: costs nothing and shrinks what moves later.
  void slice() {
    std::vector<bool> used(now.axes.size(), false);
    for (const Axes &dim : now.dims)
      for (int32_t axis : dim)
        used[axis] = true;
    Sharding after = now;
    for (size_t dim = 0; dim < after.dims.size(); ++dim) {
      const Axes &wanted = target.dims[dim];
      Axes &have = after.dims[dim];
      if (isPrefix(have, wanted))
        while (have.size() < wanted.size() && !used[wanted[have.size()]])
          have.push_back(wanted[have.size()]);
    }
    if (after != now)
      move(MoveKind::Slice, after, {});
  }

  /// One run of axes that goes from the minor end of one dimension to the minor end of another.
  bool allToAll() {
    int64_t grows = -1, shrinks = -1;
    for (size_t dim = 0; dim < now.dims.size(); ++dim) {
      const Axes &have = now.dims[dim], &wanted = target.dims[dim];
      if (have == wanted)
        continue;
      int64_t &role = isPrefix(wanted, have) ? shrinks : grows;
      if (role >= 0 || !(isPrefix(wanted, have) || isPrefix(have, wanted)))
        return false;
      role = static_cast<int64_t>(dim);
    }
    if (grows < 0 || shrinks < 0)
      return false;
    Axes run(now.dims[shrinks].begin() + static_cast<long>(target.dims[shrinks].size()), now.dims[shrinks].end());
    if (!std::equal(run.begin(), run.end(), target.dims[grows].begin() + static_cast<long>(now.dims[grows].size()),
                    target.dims[grows].end()))
      return false;
    move(MoveKind::AlltoAll, target, run, shrinks, grows);
    return true;
  }

  /// Axes that only go away, one dimension after the other.
  bool allGather() {
    for (size_t dim = 0; dim < now.dims.size(); ++dim)
      if (!isPrefix(target.dims[dim], now.dims[dim]))
        return false;
    for (size_t dim = 0; dim < now.dims.size(); ++dim) {
      const Axes &wanted = target.dims[dim];
      if (wanted == now.dims[dim])
        continue;
      Axes gone(now.dims[dim].begin() + static_cast<long>(wanted.size()), now.dims[dim].end());
      Sharding after = now;
      after.dims[dim] = wanted;
      move(MoveKind::AllGather, after, gone, static_cast<int64_t>(dim));
    }
    return true;
  }
};

/// Slice and one kind of collective; nothing where the move is not of that form.
std::optional<Steps> namedRoute(const Sharding &from, const Sharding &to, const Shape &shape) {
  Route route{from, to, shape, {}};
  route.slice();
  if (route.allToAll() || route.allGather())
    return std::move(route.steps);
  return std::nullopt;
}

/// True if in every group the boxes of the target are the boxes of the source in another order.
bool permutes(const Sharding &from, const Sharding &to, const Shape &shape, const Matrix &matrix, const Axes &axes) {
  LocalBoxes source(from, shape), target(to, shape);
  auto order = [](const Box &a, const Box &b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](const Range &x, const Range &y) {
      return std::pair(x.begin, x.end) < std::pair(y.begin, y.end);
    });
  };
  for (int64_t rank = 0; rank < source.devices(); ++rank) {
    std::vector<int64_t> group = groupOf(matrix, axes, rank);
    if (group.front() != rank)
      continue;
    std::vector<Box> have, wanted;
    for (int64_t member : group) {
      have.push_back(source.box(member));
      wanted.push_back(target.box(member));
    }
    std::sort(have.begin(), have.end(), order);
    std::sort(wanted.begin(), wanted.end(), order);
    if (have != wanted)
      return false;
  }
  return true;
}

/// Every rank takes what it lacks from a member of its group. The group spans the axes of the source beyond what both
/// sides share in front: its members together hold the coarser piece that the rank's target lies in.
ReshardStep directStep(const Sharding &from, const Sharding &to, const Shape &shape) {
  Axes axes;
  for (size_t dim = 0; dim < from.dims.size(); ++dim)
    axes.insert(axes.end(), from.dims[dim].begin() + static_cast<long>(commonPrefix(from.dims[dim], to.dims[dim])),
                from.dims[dim].end());
  std::sort(axes.begin(), axes.end());
  MoveKind kind = permutes(from, to, shape, from.axes, axes) ? MoveKind::CollectivePermute : MoveKind::Exchange;
  return moveStep(kind, from, to, shape, axes);
}

/// Without a common refinement: one group of all ranks.
ReshardStep worldStep(const Sharding &from, const Sharding &to, const Shape &shape) {
  Matrix all{from.devices()};
  MoveKind kind = permutes(from, to, shape, all, {0}) ? MoveKind::CollectivePermute : MoveKind::Exchange;
  ReshardStep step = moveStep(kind, from, to, shape, {0});
  step.groupMatrix = all;
  return step;
}

double communicationUs(const Steps &steps, size_t elementBytes, const MachineModel &machine) {
  Steps moves;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(moves),
               [](const ReshardStep &step) { return step.kind != MoveKind::Slice; });
  return reshardUs(moves, elementBytes, machine);
}

Steps redistribute(const Sharding &from, const Sharding &to, const Shape &shape, size_t elementBytes,
                   const MachineModel &machine) {
  if (samePlacement(from, to))
    return {};
  if (slicesLocally(from, to, shape))
    return {moveStep(MoveKind::Slice, from, to, shape, {})};
  auto common = overCommonMatrix(from, to);
  if (!common)
    return {worldStep(from, to, shape)};
  Steps direct{directStep(common->first, common->second, shape)};
  std::optional<Steps> named = namedRoute(common->first, common->second, shape);
  bool takesNamed =
      named && communicationUs(*named, elementBytes, machine) <= communicationUs(direct, elementBytes, machine);
  return takesNamed ? *named : direct;
}

/// Merges neighbouring axes that are both in or both out of the group, so that equal groups are written alike.
void simplifyGroup(ReshardStep &step) {
  Sharding as{.axes = step.groupMatrix, .dims = {step.groupAxes}};
  as = as.canonical();
  step.groupMatrix = as.axes;
  step.groupAxes = as.dims[0];
}

} // namespace

std::vector<ReshardStep> planReshard(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                     size_t elementBytes, const MachineModel &machine) {
  assert(from.devices() == to.devices() && from.dims.size() == shape.size() && to.dims.size() == shape.size());
  if (samePlacement(from, to))
    return {};
  assert(!to.isPartial() && "a partial value is only made by an operator");
  Steps steps;
  Sharding whole = complete(from.canonical(), shape, steps);
  Steps moves = redistribute(whole, to, shape, elementBytes, machine);
  steps.insert(steps.end(), moves.begin(), moves.end());
  for (ReshardStep &step : steps) {
    step.after = step.after.canonical();
    simplifyGroup(step);
  }
  steps.back().after = to;
  return steps;
}

double reshardUs(const std::vector<ReshardStep> &steps, size_t elementBytes, const MachineModel &machine) {
  double total = 0;
  for (const ReshardStep &step : steps)
    total += machine.moveUs(step.kind, groupShape(step.groupMatrix, step.groupAxes),
                            static_cast<double>(step.receivedElements) * static_cast<double>(elementBytes));
  return total;
}

int64_t reshardElements(const std::vector<ReshardStep> &steps) {
  int64_t total = 0;
  for (const ReshardStep &step : steps)
    if (step.kind != MoveKind::Slice)
      total += step.receivedElements;
  return total;
}

} // namespace msc::dist
