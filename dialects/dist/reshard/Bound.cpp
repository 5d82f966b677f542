#include "dialects/dist/reshard/Bound.h"

#include <algorithm>

namespace msc::dist {

/// What holds however the ranks of a group go about it: only rings take a step per member wherever they are, and a switch spares an
/// AllReduce up to half of its bytes.
static LinkCost cheapestOf(const MachineModel &machine, std::initializer_list<MoveKind> kinds) {
  LinkCost least{1e300, 1e300, 1e300};
  for (const LinkLevel &level : machine.levels)
    for (MoveKind kind : kinds) {
      const LinkCost &cost = level.costs[static_cast<size_t>(kind)];
      bool isRing = cost.algorithm == CollectiveAlgorithm::Ring, isSwitch = cost.algorithm == CollectiveAlgorithm::Switch;
      least.alphaUs = std::min(least.alphaUs, cost.alphaUs);
      least.hopUs = std::min(least.hopUs, isRing && !level.isStaged ? cost.hopUs : 0);
      least.betaUsPerByte = std::min(least.betaUsPerByte, cost.betaUsPerByte * (isSwitch ? 0.5 : 1));
    }
  return least;
}

/// Least time of starting steps whose groups have these hops in all: a group over several axes has at least as many
/// members as groups over each have together.
static double startUs(const LinkCost &least, int64_t hops) {
  return least.alphaUs + least.hopUs * static_cast<double>(hops);
}

Bound::Bound(const ReshardQuestion &question)
    : bytes(static_cast<double>(question.elementBytes)), share(1 / static_cast<double>(question.to.devices())),
      places(static_cast<double>(question.to.devices())),
      goalElements(elementCount(question.to.capacity(question.shape))),
      allReduce(cheapestOf(question.machine, {MoveKind::AllReduce})),
      scatter(cheapestOf(question.machine, {MoveKind::ReduceScatter})),
      reduction(cheapestOf(question.machine, {MoveKind::AllReduce, MoveKind::ReduceScatter})),
      move(cheapestOf(question.machine,
                      {MoveKind::AllGather, MoveKind::AlltoAll, MoveKind::CollectivePermute, MoveKind::Exchange})) {
  for (size_t dim = 0; dim < question.shape.size(); ++dim) {
    share *= static_cast<double>(question.shape[dim]);
    places /= static_cast<double>(question.to.pieces(dim));
  }
  for (const PartialAxis &partial : question.to.partial)
    places /= static_cast<double>(question.to.axes[partial.axis]);
}

/// What the collectives that reduce have to be started for. `endsWhole`: no other collective follows for sure, but one
/// of the axes repeats in the end, so what a ReduceScatter along it scatters has to be moved again.
double Bound::reductionUs(const Frame &frame, AxisSet reduced, bool endsWhole) const {
  int64_t hops = frame.hopsAlong(reduced);
  if (!endsWhole)
    return startUs(reduction, hops);
  double whole = startUs(allReduce, hops), scattered = startUs(scatter, hops) + move.alphaUs;
  double both = startUs(reduction, hops) + std::max(allReduce.alphaUs, scatter.alphaUs);
  return std::min({whole, scattered, both});
}

/// Bytes, where m terms are brought together, are counted in two ways.
/// - A reduction brings no rank an element outside of its shard, and no other move reduces: each has its own bytes. A
/// shard is
///   cut by the n / m ranks that hold the same term at most, and a ReduceScatter among k of the m receives 1 - 1 / k of
///   it and leaves 1 / k: all of them together receive tensor (m - 1) / n at least.
/// - A rank has an element after m - 1 receipts somewhere, every further one that wants it after one more.
double Bound::of(Frame &frame, const State &state, const AxisLists &lists) const {
  if (frame.isGoal(state) || goalElements == 0)
    return 0;
  AxisSet reduced = frame.reducedAxes(state);
  AxisSet moved = frame.goal() ? frame.movedAxes(lists) : 0;
  int64_t lacks = moved != 0 || !frame.goal() ? frame.lackingOfGoalAtLeast(lists) : 0;
  double starts = lacks > 0 ? startUs(move, frame.hopsAlong(moved)) : 0;
  double moves = move.betaUsPerByte * bytes * static_cast<double>(lacks);
  if (reduced == 0)
    return starts + moves;
  bool endsWhole = false;
  if (frame.goal() && lacks == 0 && moved == 0)
    forEachAxis(reduced, [&](size_t axis) { endsWhole |= frame.goal()->place[axis] == repeats; });
  starts += reductionUs(frame, reduced, endsWhole);
  double others = static_cast<double>(frame.membersAlong(reduced) - 1);
  double apart = moves + reduction.betaUsPerByte * bytes * share * others;
  double receipts = std::min(reduction.betaUsPerByte, move.betaUsPerByte) * bytes * share * (others + places - 1);
  return starts + std::max(apart, receipts);
}

} // namespace msc::dist
