#include "dialects/dist/reshard/Frame.h"

#include "runtime/plan/Refinement.h"

#include <numeric>

namespace msc::dist {

/// The first level whose units hold groups that lie in blocks of `block` ranks.
static size_t levelOfBlocks(const MachineModel &machine, int64_t block) {
  size_t level = 0;
  while (level + 1 < machine.levels.size() && machine.levels[level].ranks != 0 &&
         machine.levels[level].ranks % block != 0)
    ++level;
  return level;
}

/// Groups along axes of one size whose place is the same cost the same.
static std::pair<size_t, int64_t> placeInLevels(const MachineModel &machine, int64_t size, int64_t stride) {
  size_t level = levelOfBlocks(machine, size * stride);
  GroupShape group{.size = size, .block = size * stride};
  return {level, level == 0 ? size : group.membersInside(machine.levels[level - 1].ranks)};
}

static int64_t ranksOf(const std::vector<int64_t> &axes) {
  return std::accumulate(axes.begin(), axes.end(), int64_t(1), std::multiplies());
}

Frame::Frame(const MachineModel &machine, std::vector<int64_t> tensor, std::vector<int64_t> matrix, size_t index)
    : axes(std::move(matrix)), strides(axes.size()), levels(axes.size()), shape(std::move(tensor)),
      even(shape, ranksOf(axes)), index(index), lack(axes, shape) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0; stride *= axes[i]) {
    strides[i] = stride;
    levels[i] = placeInLevels(machine, axes[i], stride);
  }
  for (size_t level = 0; level + 1 < machine.levels.size(); ++level)
    units.emplace_back(axes, shape, machine.levels[level].ranks);
}

void Frame::setGoal(const State &goal) {
  to = goal;
  toLists = listsOf(goal);
  goalCuts = cutsOf(toLists);
}

void Frame::setGoal(const Sharding &elsewhere) {
  to.reset();
  goalBoxes.clear();
  for (int64_t rank = 0; rank < elsewhere.devices(); ++rank)
    goalBoxes.push_back(elsewhere.localBox(shape, rank));
}

std::optional<State> Frame::stateOf(const Sharding &sharding) const {
  if (commonRefinement({&sharding.axes, &axes}) != axes)
    return std::nullopt;
  Sharding refined = refine(sharding, axes);
  State state;
  state.frame = static_cast<uint8_t>(index);
  state.place.fill(repeats);
  for (size_t dim = 0; dim < refined.dims.size(); ++dim)
    for (size_t i = 0; i < refined.dims[dim].size(); ++i)
      state.place[refined.dims[dim][i]] = placeIn(dim, i);
  for (const PartialAxis &p : refined.partial)
    state.place[p.axis] = static_cast<uint8_t>(partialBase + static_cast<uint8_t>(p.kind));
  return state;
}

Sharding Frame::shardingOf(const State &state) const {
  Sharding sharding{.axes = axes, .dims = std::vector<std::vector<int32_t>>(shape.size())};
  AxisLists lists = listsOf(state);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    for (size_t i = 0; i < lists[dim].length; ++i)
      sharding.dims[dim].push_back(static_cast<int32_t>(lists[dim][i]));
  forEachAxis(partialAxes(state), [&](size_t axis) {
    sharding.partial.push_back({static_cast<int32_t>(axis), static_cast<ReduceKind>(state.place[axis] - partialBase)});
  });
  return sharding;
}

AxisLists Frame::listsOf(const State &state) const {
  AxisLists lists;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (uint8_t place = state.place[axis]; isCut(place))
      lists[place / 16].put(place % 16, axis, axes[axis]);
  return lists;
}

bool Frame::isWhole(const State &state) const {
  return std::none_of(state.place.begin(), state.place.begin() + static_cast<long>(axes.size()), isCut);
}

AxisSet Frame::partialAxes(const State &state) const {
  AxisSet set = 0;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (isPartial(state.place[axis]))
      set |= AxisSet(1) << axis;
  return set;
}

AxisSet Frame::reducedAxes(const State &state) const {
  AxisSet set = 0;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (isPartial(state.place[axis]) && (!to || state.place[axis] != to->place[axis]))
      set |= AxisSet(1) << axis;
  return set;
}

Frame::Cuts Frame::cutsOf(const AxisLists &lists) const {
  Cuts cuts;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t before = 1;
    for (size_t i = 0; i < lists[dim].length; before *= axes[lists[dim][i++]])
      cuts[lists[dim][i]] = {dim, before};
  }
  return cuts;
}

AxisSet Frame::movedAxes(const AxisLists &source, const Cuts &target) const {
  AxisSet set = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t before = 1;
    for (size_t i = 0; i < source[dim].length; before *= axes[source[dim][i++]]) {
      const Cut &cut = target[source[dim][i]];
      if (cut.dim != dim || cut.before != before)
        set |= AxisSet(1) << source[dim][i];
    }
  }
  return set;
}

bool Frame::isFineEnough(const AxisLists &source) const {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    AxisSet cutting = 0;
    for (const AxisList *list : {&source[dim], &toLists[dim]})
      for (size_t i = 0; i < list->length; ++i)
        cutting |= AxisSet(1) << (*list)[i];
    if (membersAlong(cutting) > shape[dim])
      return false;
  }
  return true;
}

GroupShape Frame::groupAlong(AxisSet axesOfGroup) const {
  if (axesOfGroup == 0)
    return {};
  auto outermost = static_cast<size_t>(std::countr_zero(axesOfGroup));
  GroupShape group{.size = membersAlong(axesOfGroup), .block = strides[outermost] * axes[outermost]};
  forEachAxis(axesOfGroup, [&](size_t axis) { group.add(axes[axis], strides[axis]); });
  return group;
}

int64_t Frame::hopsAlong(AxisSet set) const {
  int64_t hops = 0;
  forEachAxis(set, [&](size_t axis) { hops += axes[axis] - 1; });
  return hops;
}

int64_t Frame::membersAlong(AxisSet set) const {
  int64_t members = 1;
  forEachAxis(set, [&](size_t axis) { members *= axes[axis]; });
  return members;
}

bool Frame::areAlike(const State &state, size_t a, size_t b) const {
  return to && axes[a] == axes[b] && state.place[a] == state.place[b] && to->place[a] == to->place[b] &&
         levels[a] == levels[b];
}

int64_t Frame::lackingOfGoalAtLeast(const AxisLists &held) {
  if (to)
    return axes.size() <= fewAxes ? lacking(held, toLists) : lackingAtLeast(held, toLists);
  int64_t most = 0;
  for (size_t rank = 0; rank < goalBoxes.size(); ++rank) {
    int64_t wanted = 1, common = 1;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t piece = 0;
      for (size_t i = 0; i < held[dim].length; ++i) {
        size_t axis = held[dim][i];
        piece = piece * axes[axis] + static_cast<int64_t>(rank) / strides[axis] % axes[axis];
      }
      Range own = pieceOf(shape[dim], piece, held[dim].pieces), want = goalBoxes[rank][dim];
      wanted *= want.size();
      common *= std::max<int64_t>(0, std::min(own.end, want.end) - std::max(own.begin, want.begin));
    }
    most = std::max(most, wanted - common);
  }
  return most;
}

} // namespace msc::dist
