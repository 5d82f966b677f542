#include "dialects/dist/reshard/Bound.h"

#include <algorithm>

namespace msc::dist {

Bound::Least::Least(const MachineModel &machine, std::initializer_list<MoveKind> kinds) {
  at.fill({1e300, 1e300, 1e300});
  auto lower = [](LinkCost &least, const LinkCost &cost) {
    least.alphaUs = std::min(least.alphaUs, cost.alphaUs);
    least.hopUs = std::min(least.hopUs, cost.hopUs);
    least.betaUsPerByte = std::min(least.betaUsPerByte, cost.betaUsPerByte);
  };
  for (size_t level = 0; level < machine.levels.size(); ++level)
    for (MoveKind kind : kinds)
      lower(at[std::min(level, mostLevels - 1)], machine.levels[level].costs[static_cast<size_t>(kind)]);
  from = at;
  for (size_t level = mostLevels - 1; level-- > 0;)
    lower(from[level], from[level + 1]);
}

Bound::Bound(const ReshardQuestion &question)
    : bytes(static_cast<double>(question.elementBytes)), share(1 / static_cast<double>(question.to.devices())),
      levels(std::min(question.machine.levels.size(), mostLevels)), goalElements(elementCount(question.to.capacity(question.shape))),
      allReduce(question.machine, {MoveKind::AllReduce}), scatter(question.machine, {MoveKind::ReduceScatter}),
      reduction(question.machine, {MoveKind::AllReduce, MoveKind::ReduceScatter}),
      move(question.machine,
           {MoveKind::AllGather, MoveKind::AlltoAll, MoveKind::CollectivePermute, MoveKind::Exchange}),
      any(question.machine, {MoveKind::AllReduce, MoveKind::ReduceScatter, MoveKind::AllGather, MoveKind::AlltoAll,
                             MoveKind::CollectivePermute, MoveKind::Exchange}) {
  const Sharding &to = question.to;
  AxisSet apart = 0; // axes along which ranks want different elements
  for (const std::vector<int32_t> &list : to.dims)
    for (int32_t axis : list)
      apart |= AxisSet(1) << axis;
  for (const PartialAxis &partial : to.partial)
    apart |= AxisSet(1) << partial.axis;
  for (int64_t size : question.shape)
    share *= static_cast<double>(size);
  for (size_t level = 0; level < levels; ++level) {
    ranks[level] = level == 0 ? 1 : question.machine.levels[level - 1].ranks;
    Units units(to.axes, question.shape, ranks[level]);
    places[level] = units.areKnown() ? static_cast<double>(to.devices() / ranks[level] / units.along(apart)) : 1;
  }
}

/// The outermost level that groups along one of the axes use.
int64_t Bound::outermostOf(const Frame &frame, AxisSet set) const {
  int64_t level = -1;
  forEachAxis(set, [&](size_t axis) { level = std::max(level, static_cast<int64_t>(std::min(frame.levelOf(axis), levels - 1))); });
  return level;
}

/// What a unit lacks is received in collectives that reach beyond it, by its busiest rank at least its share.
Bound::Needs Bound::needsOfMoves(Frame &frame, const AxisLists &lists, AxisSet moved, int64_t lacks) const {
  Needs needs;
  if (lacks == 0)
    return needs;
  needs.level = std::max<int64_t>(0, outermostOf(frame, moved));
  needs.elements[0] = static_cast<double>(lacks);
  for (size_t level = 1; level < levels; ++level)
    needs.elements[level] = static_cast<double>(frame.lackingOfUnitsAtLeast(level - 1, lists)) / static_cast<double>(ranks[level]);
  return needs;
}

/// A reduction brings no rank an element outside of its shard. A shard is cut by the n / m ranks that hold the same term at
/// most, and a ReduceScatter among k of the m receives 1 - 1 / k of it and leaves 1 / k: all of them together receive
/// tensor (m - 1) / n at least. The same holds for units instead of ranks.
Bound::Needs Bound::needsOfReductions(const Frame &frame, AxisSet reduced) const {
  Needs needs{.level = outermostOf(frame, reduced)};
  needs.elements[0] = share * static_cast<double>(frame.membersAlong(reduced) - 1);
  for (size_t level = 1; level < levels; ++level)
    needs.elements[level] = share * static_cast<double>(frame.unitsAlong(level - 1, reduced) - 1);
  return needs;
}

/// Somebody has an element after m - 1 receipts, everyone else who wants it after one more. A unit that holds all terms need not
/// receive it.
Bound::Needs Bound::receipts(const Frame &frame, AxisSet reduced) const {
  Needs needs = needsOfReductions(frame, reduced);
  for (size_t level = 0; level < levels; ++level)
    if (needs.elements[level] > 0)
      needs.elements[level] += share * (places[level] - 1);
  return needs;
}

/// Least time of collectives that together receive what is needed, those of a level no more than what need not come from further out.
double Bound::collectivesUs(const Least &least, const Needs &needs, Terms terms) const {
  if (needs.level < 0)
    return 0;
  double ofStarts = terms != Terms::Bytes, ofBytes = terms == Terms::Starts ? 0 : bytes;
  PerLevel<double> elements{}, best{}; // over this level and those further out
  for (size_t level = levels; level-- > 0;) {
    elements[level] = std::max(needs.elements[level], elements[level + 1]);
    if (static_cast<int64_t>(level) > needs.level && elements[level] == 0)
      continue;
    best[level] = 1e300;
    for (size_t over = level; over < levels; ++over)
      best[level] = std::min(best[level], ofStarts * least.at[over].alphaUs + best[over + 1] +
                                              ofBytes * least.at[over].betaUsPerByte * (elements[level] - elements[over + 1]));
  }
  return best[0];
}

/// Each axis takes part in some group: a group over several axes has at least as many members as groups over each have together.
double Bound::hopsUs(const Least &least, const Frame &frame, AxisSet set) {
  double us = 0;
  forEachAxis(set, [&](size_t axis) {
    us += least.from[std::min(frame.levelOf(axis), mostLevels - 1)].hopUs * static_cast<double>(frame.sizeOf(axis) - 1);
  });
  return us;
}

/// `gathered`: those of the axes that repeat in the end if nothing else is to be moved: what a ReduceScatter along one of them
/// scatters has to be moved again.
double Bound::reductionUs(const Frame &frame, AxisSet reduced, AxisSet gathered, Terms terms) const {
  Needs needs = needsOfReductions(frame, reduced);
  double least = collectivesUs(reduction, needs, terms) + hopsUs(reduction, frame, reduced);
  if (gathered == 0)
    return least;
  double whole = collectivesUs(allReduce, needs, terms) + hopsUs(allReduce, frame, reduced);
  double scattered = collectivesUs(scatter, needs, terms) + hopsUs(scatter, frame, reduced) +
                     collectivesUs(move, {.level = outermostOf(frame, gathered)}, Terms::Starts) + hopsUs(move, frame, gathered);
  return std::min({whole, scattered, least + std::max(allReduce.from[0].alphaUs, scatter.from[0].alphaUs)});
}

double Bound::of(Frame &frame, const State &state, const AxisLists &lists) const {
  if (frame.isGoal(state) || goalElements == 0)
    return 0;
  AxisSet reduced = frame.reducedAxes(state);
  AxisSet moved = frame.goal() ? frame.movedAxes(lists) : 0;
  int64_t lacks = moved != 0 || !frame.goal() ? frame.lackingOfGoalAtLeast(lists) : 0;
  Needs moves = needsOfMoves(frame, lists, moved, lacks);
  double hops = lacks > 0 ? hopsUs(move, frame, moved) : 0;
  double moving = collectivesUs(move, moves, Terms::All);
  if (reduced == 0)
    return hops + moving;
  AxisSet gathered = 0;
  if (frame.goal() && lacks == 0 && moved == 0)
    forEachAxis(reduced, [&](size_t axis) { gathered |= AxisSet(frame.goal()->place[axis] == repeats) << axis; });
  // Moves and reductions have bytes of their own; or all receipts are counted, whatever brings them.
  double apart = moving + reductionUs(frame, reduced, gathered, Terms::All);
  double together = collectivesUs(move, moves, Terms::Starts) + reductionUs(frame, reduced, gathered, Terms::Starts) +
                    collectivesUs(any, receipts(frame, reduced), Terms::Bytes);
  return hops + std::max(apart, together);
}

} // namespace msc::dist
