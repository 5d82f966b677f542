#include "runtime/machine/MachineModel.h"

#include <algorithm>
#include <bit>

namespace msc {

const char *moveKindName(MoveKind kind) {
  static constexpr std::array<const char *, moveKinds> names = {
      "StridedSlice", "AllReduce", "ReduceScatter", "AllGather", "AlltoAll", "CollectivePermute", "Exchange"};
  return names[static_cast<size_t>(kind)];
}

const char *collectiveAlgorithmName(CollectiveAlgorithm algorithm) {
  static constexpr std::array<const char *, collectiveAlgorithms> names = {"ring", "tree", "switch"};
  return names[static_cast<size_t>(algorithm)];
}

const char *arithmeticName(Arithmetic arithmetic) {
  static constexpr std::array<const char *, arithmetics> names = {"f32", "f64", "tf32", "bf16", "f16"};
  return names[static_cast<size_t>(arithmetic)];
}

void GroupShape::add(int64_t members, int64_t stride) {
  if (members == 1)
    return;
  Part added{static_cast<int32_t>(members), static_cast<int32_t>(stride)};
  Part *last = partCount > 0 ? &parts[partCount - 1] : nullptr;
  if (last && last->stride == members * stride)
    *last = {last->size * added.size, added.stride};
  else if (last && stride == int64_t{last->size} * last->stride)
    last->size *= added.size;
  else if (partCount < mostParts)
    parts[partCount++] = added;
}

int64_t GroupShape::membersInside(int64_t unit) const {
  // Only where units and axes are aligned: all ranks have as many neighbours then.
  auto inside = [unit](int64_t members, int64_t stride) -> int64_t {
    if (unit % (members * stride) == 0)
      return members;
    return unit % stride == 0 && members % (unit / stride) == 0 ? unit / stride : 1;
  };
  if (partCount == 0)
    return inside(size, block / size);
  int64_t members = 1;
  for (size_t i = 0; i < partCount; ++i)
    members *= inside(parts[i].size, parts[i].stride);
  return members;
}

GroupShape groupShape(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axes) {
  GroupShape shape;
  if (axes.empty())
    return shape;
  int32_t outermost = *std::min_element(axes.begin(), axes.end());
  int64_t stride = 1;
  for (size_t axis = matrix.size(); axis-- > 0; stride *= matrix[axis]) {
    if (static_cast<int32_t>(axis) >= outermost)
      shape.block *= matrix[axis];
    if (std::find(axes.begin(), axes.end(), static_cast<int32_t>(axis)) == axes.end())
      continue;
    shape.size *= matrix[axis];
    shape.add(matrix[axis], stride);
  }
  return shape;
}

static int64_t stepsOf(CollectiveAlgorithm algorithm, int64_t members) {
  switch (algorithm) {
  case CollectiveAlgorithm::Ring: return members - 1;
  case CollectiveAlgorithm::Tree: return std::bit_width(static_cast<uint64_t>(members - 1)); // log2, rounded up
  case CollectiveAlgorithm::Switch: return 1;
  }
  return 0;
}

double LinkCost::us(int64_t members, double receivedBytes) const {
  double handled = receivedBytes * (1 + ownShare / static_cast<double>(members - 1));
  return alphaUs + hopUs * static_cast<double>(stepsOf(algorithm, members)) + betaUsPerByte * handled +
         beyondCacheUsPerByte * std::max(0.0, handled - cacheBytes);
}

double MachineModel::moveUs(MoveKind kind, const GroupShape &group, double bytes) const {
  if (kind == MoveKind::Slice)
    return launchUs + 2 * bytes / memoryBytesPerUs;
  if (group.size <= 1)
    return 0;
  // Blocks are aligned at their own size, so a block lies inside one unit exactly if it divides the unit.
  size_t level = 0;
  while (level + 1 < levels.size() && levels[level].ranks != 0 && levels[level].ranks % group.block != 0)
    ++level;
  return groupUs(level, kind, group, group.size, bytes);
}

/// Bytes that go over a level's own links where groups have `inside` of their `members` in each unit below.
static double shareOutside(MoveKind kind, int64_t members, int64_t inside) {
  auto n = static_cast<double>(members), g = static_cast<double>(inside);
  switch (kind) {
  case MoveKind::AllReduce:
  case MoveKind::ReduceScatter:
  case MoveKind::AllGather: return (n - g) / (g * (n - 1)); // one of g parts of the tensor, among n / g
  case MoveKind::AlltoAll: return (n - g) / (n - 1);        // what is for members outside
  default: return 1;
  }
}

/// `members` of the group, all inside one unit of the level.
double MachineModel::groupUs(size_t level, MoveKind kind, const GroupShape &group, int64_t members, double bytes) const {
  const LinkCost &cost = levels[level].costs[static_cast<size_t>(kind)];
  // An AllReduce by a ring receives 2 (n - 1) / n of its tensor, a switch sends it once.
  auto alone = [&](int64_t among, double received) {
    bool isOnce = kind == MoveKind::AllReduce && cost.algorithm == CollectiveAlgorithm::Switch;
    auto n = static_cast<double>(among);
    return cost.us(among, isOnce ? received * n / (2 * (n - 1)) : received);
  };
  double flat = alone(members, bytes);
  int64_t inside = levels[level].isStaged && level > 0 ? group.membersInside(levels[level - 1].ranks) : 1;
  if (inside <= 1 || inside >= members || members % inside != 0)
    return flat;
  double share = shareOutside(kind, members, inside), outside = share * bytes;
  if (share >= 1)
    return flat;
  int64_t across = kind == MoveKind::AlltoAll ? members - inside + 1 : members / inside;
  return std::min(flat, groupUs(level - 1, kind, group, inside, bytes - outside) + alone(across, outside));
}

MachineModel MachineModel::amongFirst(int64_t ranks) const {
  MachineModel part = *this;
  const auto holds = std::ranges::find_if(part.levels, [&](const LinkLevel &level) { return level.ranks == 0 || level.ranks >= ranks; });
  if (holds != part.levels.end()) {
    part.levels.erase(holds + 1, part.levels.end());
    part.levels.back().ranks = 0;
  }
  return part;
}

double MachineModel::operatorUs(double flops, double bytesRead, double bytesWritten, Arithmetic arithmetic) const {
  double peak = flopsPerUs[static_cast<size_t>(arithmetic)];
  return launchUs + std::max(flops / peak, (bytesRead + bytesWritten) / memoryBytesPerUs);
}

} // namespace msc
