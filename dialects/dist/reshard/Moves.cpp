#include "dialects/dist/reshard/Moves.h"

#include <algorithm>

namespace msc::dist {

Moves::Moves(Frame &frame, const ReshardQuestion &question, MoveSink &sink)
    : frame(frame), shape(question.shape), sink(sink) {
  for (size_t dim = 0; dim < shape.size(); ++dim)
    goalCuts |= static_cast<DimSet>(question.to.pieces(dim) > 1) << dim;
}

void Moves::from(const Here &here, bool slices) const {
  reduce(here);
  gather(here);
  allToAll(here);
  permute(here);
  if (slices)
    slice(here);
}

void Moves::towardsEnd(const Here &here) const {
  auto [open, kind] = reducible(here.state);
  if (open == 0)
    return exchange(here);
  if (frame.axisCount() > fewAxes)
    allReduce(here, open, kind);
}

static bool hasEqualAxes(const AxisList &a, const AxisList &b) {
  if (a.length != b.length)
    return false;
  for (size_t i = 0; i < a.length; ++i)
    if (a[i] != b[i])
      return false;
  return true;
}

/// Straight to the goal; a CollectivePermute where every rank wants what one other rank holds.
void Moves::exchange(const Here &here) const {
  if (!frame.goal() || frame.partialAxes(here.state) != frame.partialAxes(*frame.goal()) || frame.isGoal(here.state))
    return;
  const AxisLists &goal = frame.goalLists();
  if (frame.lackingAtLeast(here.lists, goal) == 0 && frame.lacking(here.lists, goal) == 0)
    return sink.offer(here, {.kind = MoveKind::Slice, .after = *frame.goal()});
  bool permutes = true;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    permutes &= here.lists[dim].pieces == goal[dim].pieces;
  if (AxisSet group = frame.movedAxes(here.lists)) {
    offerNamed(here); // first: of equal price it stays
    sink.offer(here, {.kind = permutes ? MoveKind::CollectivePermute : MoveKind::Exchange, .after = *frame.goal(), .group = group});
  }
}

/// The AllGather or the AlltoAll that leads straight to the goal, if there is one.
void Moves::offerNamed(const Here &here) const {
  const AxisLists &goal = frame.goalLists();
  auto startsWith = [](const AxisList &list, const AxisList &start) {
    if (list.length <= start.length)
      return false;
    for (size_t i = 0; i < start.length; ++i)
      if (list[i] != start[i])
        return false;
    return true;
  };
  Move move{.kind = MoveKind::AllGather, .after = *frame.goal()};
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (startsWith(here.lists[dim], goal[dim]) && move.dimension < 0)
      move.dimension = static_cast<int32_t>(dim);
    else if (startsWith(goal[dim], here.lists[dim]) && move.splitDimension < 0)
      move.splitDimension = static_cast<int32_t>(dim);
    else if (startsWith(here.lists[dim], goal[dim]) || startsWith(goal[dim], here.lists[dim]) || !hasEqualAxes(here.lists[dim], goal[dim]))
      return;
  if (move.dimension < 0)
    return;
  const AxisList &from = here.lists[move.dimension];
  const size_t kept = goal[move.dimension].length, run = from.length - kept;
  for (size_t i = kept; i < from.length; ++i)
    move.group |= AxisSet(1) << from[i];
  if (move.splitDimension >= 0) {
    move.kind = MoveKind::AlltoAll;
    const AxisList &to = goal[move.splitDimension];
    const size_t before = here.lists[move.splitDimension].length;
    if (to.length - before != run)
      return;
    for (size_t i = 0; i < run; ++i)
      if (to[before + i] != from[kept + i])
        return;
  }
  sink.offer(here, move);
}

void Moves::gather(const Here &here) const {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    Move move{.kind = MoveKind::AllGather, .after = here.state, .dimension = static_cast<int32_t>(dim)};
    for (size_t i = here.lists[dim].length; i-- > 0;) {
      size_t axis = here.lists[dim][i];
      move.after.place[axis] = repeats;
      move.group |= AxisSet(1) << axis;
      sink.offer(here, move);
    }
  }
}

/// A run of axes from the minor end of one dimension to the minor end of another.
void Moves::allToAll(const Here &here) const {
  for (size_t source = 0; source < shape.size(); ++source)
    for (size_t target = 0; target < shape.size(); ++target) {
      if (source == target || here.lists[source].length == 0 || !isFirstOfAlike(here, target))
        continue;
      const AxisList &list = here.lists[source];
      for (size_t length = 1; length <= list.length; ++length) {
        Move move{.kind = MoveKind::AlltoAll,
                  .after = here.state,
                  .dimension = static_cast<int32_t>(source),
                  .splitDimension = static_cast<int32_t>(target)};
        for (size_t i = 0; i < length; ++i) {
          size_t axis = list[list.length - length + i];
          move.after.place[axis] = placeIn(target, here.lists[target].length + i);
          move.group |= AxisSet(1) << axis;
        }
        sink.offer(here, move);
      }
    }
}

/// Every rank takes the whole shard of one other rank: each dimension stays cut into as many pieces.
void Moves::permute(const Here &here) const {
  if (frame.partialAxes(here.state) != 0)
    return;
  if (frame.axisCount() > fewAxes)
    return permuteTowardsGoal(here);
  State after = here.state;
  AxisSet all = (AxisSet(1) << frame.axisCount()) - 1;
  forEachAxis(all, [&](size_t axis) { after.place[axis] = repeats; });
  permuteAll(here, after, all, 0, 0, 1);
}

/// Cuts dimension `dim`, which has got axes of `product` pieces, and those behind it, by axes in `left`.
void Moves::permuteAll(const Here &here, const State &state, AxisSet left, size_t dim, size_t position,
                       int64_t product) const {
  if (dim == shape.size()) {
    if (state != here.state)
      sink.offer(here, {.kind = MoveKind::CollectivePermute,
                        .after = state,
                        .group = frame.movedAxes(here.lists, frame.listsOf(state))});
    return;
  }
  int64_t wanted = here.lists[dim].pieces;
  if (product == wanted)
    return permuteAll(here, state, left, dim + 1, 0, 1);
  forEachAxis(left, [&](size_t axis) {
    if (wanted % (product * frame.sizeOf(axis)) != 0 || !isFirstOfAlike(here.state, left, AxisSet(1) << axis))
      return;
    State after = state;
    after.place[axis] = placeIn(dim, position);
    permuteAll(here, after, left & ~(AxisSet(1) << axis), dim, position + 1, product * frame.sizeOf(axis));
  });
}

/// Axes of equal size change places so that one dimension is cut as the goal cuts its major part.
void Moves::permuteTowardsGoal(const Here &here) const {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    State after = here.state;
    const AxisList &goal = frame.goalLists()[dim];
    for (size_t i = 0; i < std::min(here.lists[dim].length, goal.length); ++i) {
      size_t wanted = goal[i], there = axisAt(after, placeIn(dim, i));
      if (there == wanted)
        continue;
      if (frame.sizeOf(there) != frame.sizeOf(wanted))
        break;
      std::swap(after.place[there], after.place[wanted]);
      sink.offer(here, {.kind = MoveKind::CollectivePermute,
                        .after = after,
                        .group = frame.movedAxes(here.lists, frame.listsOf(after))});
    }
  }
}

size_t Moves::axisAt(const State &state, uint8_t place) const {
  return static_cast<size_t>(std::find(state.place.begin(), state.place.end(), place) - state.place.begin());
}

/// Cuts by axes that repeat: costs little, and what moves, is reduced or gathered later is smaller.
void Moves::slice(const Here &here) const {
  if (frame.axisCount() <= fewAxes) {
    AxisSet free = 0;
    for (size_t axis = 0; axis < frame.axisCount(); ++axis)
      free |= static_cast<AxisSet>(here.state.place[axis] == repeats) << axis;
    return sliceAll(here, here.state, free, 0, 0, 0);
  }
  sliceTowardsGoal(here, 0, here.state);
  sliceToPiecesOfGoal(here);
}

/// Cuts dimension `dim`, which has got `added` axes, and those behind it, by axes in `left`; `cut`: dimensions cut by
/// now.
void Moves::sliceAll(const Here &here, const State &state, AxisSet left, size_t dim, size_t added, DimSet cut) const {
  if (dim == shape.size() || left == 0) {
    if (state != here.state)
      sink.offer(here, {.kind = MoveKind::Slice, .after = state});
    return;
  }
  sliceAll(here, state, left, dim + 1, 0, cut);
  if (added == 0 && !isFirstOfAlike(here, dim, cut))
    return;
  forEachAxis(left, [&](size_t axis) {
    if (!isFirstOfAlike(here.state, left, AxisSet(1) << axis))
      return;
    State after = state;
    after.place[axis] = placeIn(dim, here.lists[dim].length + added);
    sliceAll(here, after, left & ~(AxisSet(1) << axis), dim, added + 1, cut | DimSet(1) << dim);
  });
}

/// By the axes that the goal has there, for dimension `dim` and those behind it.
void Moves::sliceTowardsGoal(const Here &here, size_t dim, const State &state) const {
  if (dim == shape.size()) {
    if (state != here.state)
      sink.offer(here, {.kind = MoveKind::Slice, .after = state});
    return;
  }
  sliceTowardsGoal(here, dim + 1, state);
  State after = state;
  const AxisList &goal = frame.goalLists()[dim];
  size_t length = here.lists[dim].length;
  if (commonPrefix(here.lists[dim], goal) < length)
    return;
  for (size_t i = length; i < goal.length && after.place[goal[i]] == repeats; ++i) {
    after.place[goal[i]] = placeIn(dim, i);
    sliceTowardsGoal(here, dim + 1, after);
  }
}

/// Into as many pieces as the goal has, by whichever axes repeat: a permutation may do the rest.
void Moves::sliceToPiecesOfGoal(const Here &here) const {
  State after = here.state;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t have = here.lists[dim].pieces, wanted = frame.goalLists()[dim].pieces;
    if (wanted % have != 0)
      return;
    size_t length = here.lists[dim].length;
    for (size_t axis = 0; axis < frame.axisCount() && have != wanted; ++axis)
      if (after.place[axis] == repeats && wanted % (have * frame.sizeOf(axis)) == 0) {
        after.place[axis] = placeIn(dim, length++);
        have *= frame.sizeOf(axis);
      }
    if (have != wanted)
      return;
  }
  if (after != here.state)
    sink.offer(here, {.kind = MoveKind::Slice, .after = after});
}

//===-- what is alike ------------------------------------------------------===//

/// Has a set of axes that are alike the first ones only?
bool Moves::isFirstOfAlike(const State &state, AxisSet among, AxisSet set) const {
  for (AxisSet left = set; left != 0; left &= left - 1)
    for (AxisSet skipped = among & ~set & ((left & -left) - 1); skipped != 0; skipped &= skipped - 1)
      if (frame.areAlike(state, static_cast<size_t>(std::countr_zero(skipped)),
                         static_cast<size_t>(std::countr_zero(left))))
        return false;
  return true;
}

/// Do axes that are alike stand in ascending order?
bool Moves::isFirstOfAlike(const State &state, const std::vector<size_t> &run) const {
  for (size_t i = 0; i < run.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (run[j] > run[i] && frame.areAlike(state, run[j], run[i]))
        return false;
  return true;
}

/// Is no dimension before this one alike: neither is cut, here or in the goal? Dimensions in `cut` are cut by the move.
bool Moves::isFirstOfAlike(const Here &here, size_t dim, DimSet cut) const {
  auto isFree = [&](size_t other) { return here.lists[other].length == 0 && !((goalCuts | cut) >> other & 1); };
  if (!isFree(dim))
    return true;
  for (size_t other = 0; other < dim; ++other)
    if (shape[other] == shape[dim] && isFree(other))
      return false;
  return true;
}

} // namespace msc::dist
