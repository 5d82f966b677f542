#include "runtime/machine/MachineModel.h"

#include <algorithm>

namespace msc {

const char *moveKindName(MoveKind kind) {
  static constexpr std::array<const char *, moveKinds> names = {
      "StridedSlice", "AllReduce", "ReduceScatter", "AllGather", "AlltoAll", "CollectivePermute", "Exchange"};
  return names[static_cast<size_t>(kind)];
}

GroupShape groupShape(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axes) {
  GroupShape shape;
  if (axes.empty())
    return shape;
  for (int32_t axis : axes)
    shape.size *= matrix[axis];
  for (size_t i = *std::min_element(axes.begin(), axes.end()); i < matrix.size(); ++i)
    shape.block *= matrix[i];
  return shape;
}

double LinkCost::us(int64_t members, double receivedBytes) const {
  auto others = static_cast<double>(members - 1);
  double handled = receivedBytes * (1 + ownShare / others);
  return alphaUs + hopUs * others + betaUsPerByte * handled +
         beyondCacheUsPerByte * std::max(0.0, handled - cacheBytes);
}

double MachineModel::moveUs(MoveKind kind, GroupShape group, double bytes) const {
  if (kind == MoveKind::Slice)
    return launchUs + 2 * bytes / memoryBytesPerUs;
  if (group.size <= 1)
    return 0;
  // Blocks are aligned at their own size, so a block lies inside one unit exactly if it divides the unit.
  auto level = std::find_if(levels.begin(), levels.end(), [&](const LinkLevel &candidate) {
    return candidate.ranks == 0 || candidate.ranks % group.block == 0;
  });
  const LinkCost &cost = (level == levels.end() ? levels.back() : *level).costs[static_cast<size_t>(kind)];
  return cost.us(group.size, bytes);
}

double MachineModel::operatorUs(double flops, double bytesRead, double bytesWritten) const {
  return launchUs + std::max(flops / flopsPerUs, (bytesRead + bytesWritten) / memoryBytesPerUs);
}

} // namespace msc
