// Steps that move data on one rank, and regions, on one rank or within a group.
#include "runtime/plan/LocalRegions.h"
#include "runtime/plan/PlanChecks.h"

#include <algorithm>
#include <map>

namespace msc::check {
namespace {

/// A failed or unfinished proof as an error.
Status proven(Proof proof, const std::string &statement) {
  if (proof == Proof::Yes)
    return {};
  if (proof == Proof::Unknown)
    return bad("{}: this cannot be proven within bounded work", statement);
  return bad("{}, which does not hold on every rank", statement);
}

/// Both ends hold the same term of a sum on every rank.
bool partialAlike(const Sharding &from, const Sharding &to) {
  if (!from.isPartial() && !to.isPartial())
    return true;
  auto refined = commonRefinement({&from.axes, &to.axes});
  return refined && refine(from, *refined).partial == refine(to, *refined).partial;
}

std::string pair(const PlanIndex &index, uint32_t a, uint32_t b) {
  return fmt::format("{} and {}", index.bufferTitle(a), index.bufferTitle(b));
}

/// All regions that write one buffer; operand i is `sources[i]`.
struct Target {
  uint32_t buffer = 0;
  std::vector<uint32_t> sources;
  CopyRegions regions;
};

std::vector<Target> byTarget(const std::vector<MovedTensor> &tensors) {
  std::vector<Target> targets;
  for (const MovedTensor &tensor : tensors) {
    auto at = std::find_if(targets.begin(), targets.end(), [&](const Target &t) { return t.buffer == tensor.target; });
    if (at == targets.end())
      at = targets.insert(at, {tensor.target, {}, {}});
    CopyRegions more = toRegions(*tensor.regions, static_cast<uint32_t>(at->sources.size()));
    at->regions.insert(at->regions.end(), more.begin(), more.end());
    at->sources.push_back(tensor.source);
  }
  return targets;
}

/// The sharding of what is left when the moved dimensions are whole.
Sharding withoutMoved(Sharding sharding, const std::vector<bool> &moved) {
  for (size_t dim = 0; dim < moved.size(); ++dim)
    if (moved[dim])
      sharding.dims[dim].clear();
  return sharding;
}

/// True if every axis that cuts a moved dimension of the source belongs to the group.
bool groupHoldsMoved(const Sharding &from, const std::vector<bool> &moved, const std::vector<int64_t> &matrix,
                     const std::vector<int32_t> &axes) {
  auto refined = commonRefinement({&from.axes, &matrix});
  if (!refined)
    return false;
  std::vector<int32_t> group = refineAxes(matrix, axes, *refined);
  for (size_t dim = 0; dim < moved.size(); ++dim)
    for (int32_t axis : moved[dim] ? refineAxes(from.axes, from.dims[dim], *refined) : std::vector<int32_t>())
      if (std::find(group.begin(), group.end(), axis) == group.end())
        return false;
  return true;
}

/// What one source gives to the target.
CopyEnds endsOf(const PlanIndex &index, const Target &target, uint32_t source) {
  CopyEnds ends{index.sharding(source), index.shape(source), index.sharding(target.buffer), index.shape(target.buffer), {}};
  for (const CopyRegion &region : target.regions)
    if (target.sources[region.operand] == source)
      ends.regions.push_back({0, region.ranges});
  return ends;
}

/// Does every rank find what it needs of one source, itself or, if there is one, in its group?
Status checkSource(const PlanIndex &index, const plan::Step &step, const Target &target, uint32_t source,
                   const std::vector<bool> &moved, const plan::Group *group) {
  const Sharding &from = index.sharding(source), &to = index.sharding(target.buffer);
  std::string what = fmt::format("{} copies regions of {} to {}", at(index, step), index.bufferTitle(source),
                                 index.bufferTitle(target.buffer));
  if (index.buffer(source).dtype() != index.buffer(target.buffer).dtype())
    return bad("{}, which differ in type", what);
  if (overlaps(index, source, target.buffer))
    return bad("{} within the same memory", what);
  if (!partialAlike(from, to))
    return bad("{}, which are partial in different ways", what);
  std::vector<int64_t> matrix(from.axes);
  std::vector<int32_t> axes;
  if (group) {
    matrix.assign(group->matrix().begin(), group->matrix().end());
    axes.assign(group->axes().begin(), group->axes().end());
  }
  if (!group && !groupHoldsMoved(from, moved, matrix, axes) && staysOnRanks(endsOf(index, target, source)))
    return {};
  if (!groupHoldsMoved(from, moved, matrix, axes))
    return bad("{}, but a dimension along which they move is cut{}", what, group ? " beyond the group" : "");
  return proven(coveredByGroup(withoutMoved(to, moved), withoutMoved(from, moved), index.shape(target.buffer), matrix, axes),
                what + " that " + (group ? "its group" : "the rank") + " holds");
}

} // namespace

bool overlaps(const PlanIndex &index, uint32_t a, uint32_t b) {
  const plan::Buffer &x = index.buffer(a), &y = index.buffer(b);
  return index.root(a) == index.root(b) ||
         (x.offset() < y.offset() + y.bytes() && y.offset() < x.offset() + x.bytes());
}

Status checkRegionTensors(const PlanIndex &index, const plan::Step &step, const std::vector<MovedTensor> &tensors,
                          bool fills, const plan::Group *group) {
  for (const MovedTensor &tensor : tensors)
    if (!tensor.regions)
      return bad("{} has regions for some of its tensors only", at(index, step));
  for (const Target &target : byTarget(tensors)) {
    const std::vector<int64_t> &shape = index.shape(target.buffer);
    std::vector<std::vector<int64_t>> sources;
    for (uint32_t source : target.sources)
      sources.push_back(index.shape(source));
    if (std::string wrong = checkRegions(target.regions, sources, shape); !wrong.empty())
      return bad("{} into {}: {}", at(index, step), index.bufferTitle(target.buffer), wrong);
    if (!fills && !coverTarget(target.regions, shape))
      return bad("{} leaves elements of {} without a value", at(index, step), index.bufferTitle(target.buffer));
    std::vector<bool> moved = movedDimensions(target.regions, sources, shape);
    for (uint32_t source : target.sources)
      if (Status status = checkSource(index, step, target, source, moved, group); !status)
        return status;
  }
  return {};
}

Status checkCopy(const PlanIndex &index, const plan::Step &step) {
  const plan::Copy &copy = step.copy();
  if (copy.has_regions() || copy.also_size() != 0)
    return checkRegionTensors(index, step, tensorsOf(copy), copy.has_fill(), nullptr);
  uint32_t source = copy.source(), target = copy.target();
  if (index.shape(source) != index.shape(target) || index.buffer(source).dtype() != index.buffer(target).dtype())
    return bad("{} copies between different tensors {}", at(index, step), pair(index, source, target));
  if (overlaps(index, source, target))
    return bad("{} copies within the same memory: {}", at(index, step), pair(index, source, target));
  const Sharding &from = index.sharding(source), &to = index.sharding(target);
  if (!partialAlike(from, to))
    return bad("{} copies between values that are partial in different ways: {}", at(index, step),
               pair(index, source, target));
  return proven(boxWithin(to, from, index.shape(source)),
                fmt::format("{} copies what {} holds from {} on the same rank", at(index, step),
                            index.bufferTitle(target), index.bufferTitle(source)));
}

} // namespace msc::check
