#include "dialects/dist/Reshard.h"

#include "dialects/dist/reshard/Search.h"
#include "runtime/plan/RankClasses.h"

#include <algorithm>
#include <cassert>

namespace msc::dist {

namespace {

using Shape = std::vector<int64_t>;
using Steps = std::vector<ReshardStep>;

/// True if the boxes of the target are the boxes of the source in another order: they are where all dimensions have the same pieces, and
/// are not where one that has an element for each piece has others. Else they are compared; all classes of ranks are of one size.
bool permutes(const Sharding &from, const Sharding &to, const Shape &shape) {
  bool isAlike = true;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t before = from.pieces(dim), after = to.pieces(dim);
    if (before != after && std::max(before, after) <= shape[dim])
      return false;
    isAlike &= before == after;
  }
  if (isAlike)
    return true;
  RankClasses classes(from.devices());
  classes.addPieces(from);
  classes.addPieces(to);
  auto sorted = [&](const Sharding &sharding) {
    std::vector<std::vector<int64_t>> list;
    for (int64_t rank : classes.ranks()) {
      auto &bounds = list.emplace_back();
      for (const Range &range : sharding.localBox(shape, rank))
        bounds.insert(bounds.end(), {range.begin, range.end});
    }
    std::sort(list.begin(), list.end());
    return list;
  };
  return sorted(from) == sorted(to);
}

Steps withoutCommonMatrix(const Sharding &from, const Sharding &to, const Shape &shape, const ReshardOptions &options) {
  if (!options.exchange)
    return gatherAndSlice(from, to, shape);
  Steps steps = planCompletion(from.canonical(), shape);
  const Sharding now = steps.empty() ? from : steps.back().after;
  if (samePlacement(now, to))
    return steps;
  if (slicesLocally(now, to, shape))
    steps.push_back({.after = to, .receivedElements = elementCount(to.capacity(shape))});
  else
    steps.push_back(exchangeAmongAll(now, to, shape));
  return steps;
}

/// Canonical shardings; in groups, neighbouring axes that are both in or both out are merged, so that equal groups are
/// written alike.
void simplify(Steps &steps) {
  for (ReshardStep &step : steps) {
    step.after = step.after.canonical();
    Sharding group{.axes = step.groupMatrix, .dims = {step.groupAxes}};
    group = group.canonical();
    step.groupMatrix = group.axes;
    step.groupAxes = group.dims[0];
  }
}

} // namespace

std::vector<ReshardStep> planReshard(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                                     size_t elementBytes, const MachineModel &machine, const ReshardOptions &options) {
  assert(from.devices() == to.devices() && from.dims.size() == shape.size() && to.dims.size() == shape.size());
  if (samePlacement(from, to))
    return {};
  if (!from.isPartial() && slicesLocally(from, to, shape))
    return {{.after = to, .receivedElements = elementCount(to.capacity(shape))}};
  std::optional<Steps> searched = searchReshard(from, to, shape, elementBytes, machine, options);
  Steps steps = searched ? std::move(*searched) : withoutCommonMatrix(from, to, shape, options);
  simplify(steps);
  steps.back().after = to;
  return steps;
}

std::vector<ReshardStep> planCompletion(const Sharding &from, const std::vector<int64_t> &shape) {
  Steps steps;
  Sharding now = from;
  while (!now.partial.empty()) {
    ReduceKind kind = now.partial.back().kind;
    ReshardStep step{.kind = MoveKind::AllReduce, .groupMatrix = now.axes, .reduce = kind};
    // Axes of the same kind in front of another kind wait for it.
    for (; !now.partial.empty() && now.partial.back().kind == kind; now.partial.pop_back())
      step.groupAxes.insert(step.groupAxes.begin(), now.partial.back().axis);
    step.after = now;
    step.receivedElements = allReduceElements(elementCount(now.capacity(shape)),
                                              groupShape(step.groupMatrix, step.groupAxes).size);
    steps.push_back(std::move(step));
  }
  simplify(steps);
  return steps;
}

ReshardStep exchangeAmongAll(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  return {.kind = permutes(from, to, shape) ? MoveKind::CollectivePermute : MoveKind::Exchange,
          .after = to,
          .groupMatrix = {from.devices()},
          .groupAxes = {0},
          .receivedElements = receivedElements(from, to, shape)};
}

std::vector<ReshardStep> gatherAndSlice(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  Steps steps = planCompletion(from.canonical(), shape);
  Sharding now = steps.empty() ? from.canonical() : steps.back().after;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (now.dims[dim].empty())
      continue;
    Sharding after = now;
    after.dims[dim].clear();
    ReshardStep step{.kind = MoveKind::AllGather,
                     .after = after,
                     .groupMatrix = now.axes,
                     .groupAxes = now.dims[dim],
                     .dimension = static_cast<int64_t>(dim),
                     .receivedElements = receivedElements(now, after, shape)};
    std::sort(step.groupAxes.begin(), step.groupAxes.end());
    steps.push_back(std::move(step));
    now = after;
  }
  if (!samePlacement(now, to))
    steps.push_back({.after = to, .groupMatrix = to.axes, .receivedElements = elementCount(to.capacity(shape))});
  return steps;
}

/// Numbers as they lie in memory: a search asks millions of times.
static std::string keyOf(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape, size_t elementBytes) {
  std::string key;
  auto add = [&](auto value) {
    const auto number = static_cast<int64_t>(value);
    key.append(reinterpret_cast<const char *>(&number), sizeof number);
  };
  auto addAll = [&](const auto &list) {
    add(list.size());
    for (auto value : list)
      add(value);
  };
  for (const Sharding *sharding : {&from, &to}) {
    addAll(sharding->axes);
    add(sharding->dims.size());
    for (const auto &dim : sharding->dims)
      addAll(dim);
    add(sharding->partial.size());
    for (const PartialAxis &partial : sharding->partial) {
      add(partial.kind);
      add(partial.axis);
    }
  }
  addAll(shape);
  add(elementBytes);
  return key;
}

const std::vector<ReshardStep> &ReshardPlanner::plan(const Sharding &from, const Sharding &to,
                                                     const std::vector<int64_t> &shape, size_t elementBytes) {
  auto [at, isNew] = plans.try_emplace(keyOf(from, to, shape, elementBytes));
  if (isNew)
    at->second = planReshard(from, to, shape, elementBytes, model, options);
  return at->second;
}

double ReshardPlanner::us(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape,
                          size_t elementBytes) {
  auto [at, isNew] = times.try_emplace(keyOf(from, to, shape, elementBytes));
  if (isNew) {
    const auto planned = plans.find(at->first);
    at->second = reshardUs(planned == plans.end() ? planReshard(from, to, shape, elementBytes, model, options) : planned->second, elementBytes, model);
  }
  return at->second;
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
