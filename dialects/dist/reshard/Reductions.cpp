// Moves that bring partial terms together: AllReduce and ReduceScatter.
#include "dialects/dist/reshard/Moves.h"

#include <algorithm>

namespace msc::dist {

/// Partial axes of the kind that is brought together last: AllReduce leaves them repeating, ReduceScatter puts them
/// at the minor ends of dimensions.
void Moves::reduce(const Here &here) const {
  auto [open, kind] = reducible(here.state);
  bool all = static_cast<size_t>(std::popcount(open)) <= fewAxes;
  for (AxisSet set = open; set != 0; set = (set - 1) & open) {
    if (!isFirstOfAlike(here.state, open, set))
      continue;
    if (!all && set != open && std::popcount(set) != 1)
      continue;
    allReduce(here, set, kind);
    scatter(here, set, kind);
  }
}

/// The partial axes that can be reduced next, if the goal completes any, and how.
std::pair<AxisSet, ReduceKind> Moves::reducible(const State &state) const {
  AxisSet open = 0, reduced = frame.reducedAxes(state);
  uint8_t last = partialBase;
  forEachAxis(frame.partialAxes(state), [&](size_t axis) {
    if (state.place[axis] != last)
      open = 0; // kinds do not commute: the most minor one goes first
    last = state.place[axis];
    open |= reduced & AxisSet(1) << axis;
  });
  return {open, static_cast<ReduceKind>(last - partialBase)};
}

void Moves::allReduce(const Here &here, AxisSet set, ReduceKind kind) const {
  Move move{.kind = MoveKind::AllReduce, .after = here.state, .group = set, .reduce = kind};
  forEachAxis(set, [&](size_t axis) { move.after.place[axis] = repeats; });
  sink.offer(here, move);
}

void Moves::scatter(const Here &here, AxisSet set, ReduceKind kind) const {
  Move move{.kind = MoveKind::ReduceScatter, .after = here.state, .group = set, .reduce = kind};
  if (frame.axisCount() <= fewAxes)
    return scatterAll(here, move, set, 0, 0, 0);
  scatterTowardsGoal(here, move);
  std::vector<size_t> run;
  forEachAxis(set, [&](size_t axis) { run.push_back(axis); });
  bool all = run.size() <= fewAxes;
  do {
    if (!isFirstOfAlike(here.state, run))
      continue;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (!isFirstOfAlike(here, dim) || (!all && !continuesGoal(here.lists, dim, run)))
        continue;
      move.dimension = static_cast<int32_t>(dim);
      for (size_t i = 0; i < run.size(); ++i)
        move.after.place[run[i]] = placeIn(dim, here.lists[dim].length + i);
      sink.offer(here, move);
    }
  } while (all && std::next_permutation(run.begin(), run.end()));
}

/// Puts the axes in `left` at the minor ends of dimension `dim`, which has got `added` of them, and those behind it;
/// `cut`: dimensions that have got some.
void Moves::scatterAll(const Here &here, const Move &move, AxisSet left, size_t dim, size_t added, DimSet cut) const {
  if (left == 0)
    return sink.offer(here, move);
  if (dim == shape.size())
    return;
  scatterAll(here, move, left, dim + 1, 0, cut);
  if (added == 0 && !isFirstOfAlike(here, dim, cut))
    return;
  forEachAxis(left, [&](size_t axis) {
    if (!isFirstOfAlike(here.state, left, AxisSet(1) << axis))
      return;
    Move next = move;
    next.after.place[axis] = placeIn(dim, here.lists[dim].length + added);
    bool only = left == move.group || move.dimension == static_cast<int32_t>(dim);
    next.dimension = only ? static_cast<int32_t>(dim) : -1;
    scatterAll(here, next, left & ~(AxisSet(1) << axis), dim, added + 1, cut | DimSet(1) << dim);
  });
}

/// Onto several dimensions, each axis where the goal has it.
void Moves::scatterTowardsGoal(const Here &here, Move move) const {
  AxisSet left = move.group;
  size_t dims = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const AxisList &goal = frame.goalLists()[dim];
    size_t length = here.lists[dim].length, i = length;
    if (commonPrefix(here.lists[dim], goal) < length)
      continue;
    for (; i < goal.length && (left >> goal[i] & 1); ++i) {
      move.after.place[goal[i]] = placeIn(dim, i);
      left &= ~(AxisSet(1) << goal[i]);
    }
    dims += i > length;
  }
  if (left == 0 && dims > 1)
    sink.offer(here, move);
}

/// Would the run, put at the end of a dimension, be what the goal has there?
bool Moves::continuesGoal(const AxisLists &lists, size_t dim, const std::vector<size_t> &run) const {
  const AxisList &goal = frame.goalLists()[dim];
  size_t length = lists[dim].length;
  if (commonPrefix(lists[dim], goal) < length || goal.length < length + run.size())
    return false;
  for (size_t i = 0; i < run.size(); ++i)
    if (goal[length + i] != run[i])
      return false;
  return true;
}

} // namespace msc::dist
