#include "runtime/plan/Sharding.h"

#include <utility>
#include <algorithm>
#include <functional>

namespace msc {

const char *reduceKindName(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum: return "sum";
  case ReduceKind::Prod: return "prod";
  case ReduceKind::Min: return "min";
  case ReduceKind::Max: return "max";
  }
  return "?";
}

int64_t elementCount(const Box &box) {
  int64_t count = 1;
  for (const Range &range : box)
    count *= range.size();
  return count;
}

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Box intersect(const Box &a, const Box &b) {
  Box common(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    common[i].begin = std::max(a[i].begin, b[i].begin);
    common[i].end = std::max(common[i].begin, std::min(a[i].end, b[i].end));
  }
  return common;
}

std::vector<int64_t> sizes(const Box &box) {
  std::vector<int64_t> result;
  for (const Range &range : box)
    result.push_back(range.size());
  return result;
}

Range pieceOf(int64_t size, int64_t piece, int64_t pieces) {
  // 128-bit products where 64 bits do not do: size and pieces come from files. They are slow, and this is asked per rank.
  int64_t product;
  if (!__builtin_mul_overflow(size, pieces, &product))
    return {piece * size / pieces, (piece + 1) * size / pieces};
  auto bound = [&](int64_t p) { return static_cast<int64_t>(static_cast<__int128>(p) * size / pieces); };
  return {bound(piece), bound(piece + 1)};
}

Sharding Sharding::replicated(int64_t devices, size_t rank) {
  Sharding sharding;
  if (devices > 1)
    sharding.axes.push_back(devices);
  sharding.dims.resize(rank);
  return sharding;
}

int64_t Sharding::devices() const { return elementCount(axes); }

int64_t Sharding::pieces(size_t dim) const {
  int64_t count = 1;
  for (int32_t axis : dims[dim])
    count *= axes[axis];
  return count;
}

bool Sharding::isReplicated() const {
  if (isPartial())
    return false;
  for (size_t dim = 0; dim < dims.size(); ++dim)
    if (pieces(dim) != 1)
      return false;
  return true;
}

std::vector<int64_t> Sharding::coordinates(int64_t rank) const {
  std::vector<int64_t> result(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    result[i] = rank % axes[i];
    rank /= axes[i];
  }
  return result;
}

int64_t Sharding::pieceIndex(size_t dim, int64_t rank) const {
  std::vector<int64_t> at = coordinates(rank);
  int64_t piece = 0;
  for (int32_t axis : dims[dim])
    piece = piece * axes[axis] + at[axis];
  return piece;
}

Box Sharding::localBox(const std::vector<int64_t> &shape, int64_t rank) const {
  Box box(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    box[dim] = pieceOf(shape[dim], pieceIndex(dim, rank), pieces(dim));
  return box;
}

std::vector<int64_t> Sharding::localShape(const std::vector<int64_t> &shape, int64_t rank) const {
  return sizes(localBox(shape, rank));
}

std::vector<int64_t> Sharding::capacity(const std::vector<int64_t> &shape) const {
  std::vector<int64_t> result(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t parts = pieces(dim);
    result[dim] = (shape[dim] + parts - 1) / parts;
  }
  return result;
}

bool Sharding::isEven(const std::vector<int64_t> &shape) const {
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] % pieces(dim) != 0)
      return false;
  return true;
}

int64_t Sharding::ownerOf(int64_t rank) const {
  std::vector<bool> used(axes.size(), false);
  for (const auto &dim : dims)
    for (int32_t axis : dim)
      used[axis] = true;
  for (const PartialAxis &p : partial)
    used[p.axis] = true;
  std::vector<int64_t> at = coordinates(rank);
  int64_t owner = 0;
  for (size_t i = 0; i < axes.size(); ++i)
    owner = owner * axes[i] + (used[i] ? at[i] : 0);
  return owner;
}

bool Sharding::isCanonical() const {
  // Whether an axis and the one before it would merge. Bit i: axis i is used.
  if (axes.size() > 64)
    return false;
  uint64_t used = 0;
  for (const std::vector<int32_t> &dim : dims)
    for (size_t i = 0; i < dim.size(); ++i) {
      if (i > 0 && dim[i] == dim[i - 1] + 1)
        return false;
      used |= uint64_t(1) << dim[i];
    }
  for (size_t i = 0; i < partial.size(); ++i) {
    if (i > 0 && partial[i].axis == partial[i - 1].axis + 1 && partial[i].kind == partial[i - 1].kind)
      return false;
    used |= uint64_t(1) << partial[i].axis;
  }
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] == 1 || (i > 0 && ((used >> (i - 1)) & 3) == 0))
      return false;
  return true;
}

Sharding Sharding::canonical() && { return isCanonical() ? std::move(*this) : std::as_const(*this).canonical(); }

Sharding Sharding::canonical() const & {
  if (isCanonical())
    return *this;
  // use[i]: {0} repeat, {1, kind} partial, {2, dim, position in dim}.
  struct Use {
    int what = 0, where = 0, position = 0;
  };
  std::vector<Use> use(axes.size());
  for (const PartialAxis &p : partial)
    use[p.axis] = {1, static_cast<int>(p.kind), 0};
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    int position = 0;
    for (int32_t axis : dims[dim])
      if (axes[axis] != 1)
        use[axis] = {2, static_cast<int>(dim), position++};
  }
  Sharding result;
  result.dims.resize(dims.size());
  std::vector<int32_t> renamed(axes.size(), -1);
  int last = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == 1)
      continue;
    bool merges = last >= 0 && use[last].what == use[i].what && use[last].where == use[i].where &&
                  (use[i].what != 2 || use[last].position + 1 == use[i].position);
    if (merges)
      result.axes.back() *= axes[i];
    else
      result.axes.push_back(axes[i]);
    renamed[i] = static_cast<int32_t>(result.axes.size()) - 1;
    last = static_cast<int>(i);
  }
  for (size_t dim = 0; dim < dims.size(); ++dim)
    for (int32_t axis : dims[dim])
      if (renamed[axis] >= 0 && (result.dims[dim].empty() || result.dims[dim].back() != renamed[axis]))
        result.dims[dim].push_back(renamed[axis]);
  for (const PartialAxis &p : partial)
    if (renamed[p.axis] >= 0 && (result.partial.empty() || result.partial.back().axis != renamed[p.axis]))
      result.partial.push_back({renamed[p.axis], p.kind});
  return result;
}

std::string Sharding::check(int64_t expectedDevices, size_t rank) const {
  __int128 product = 1;
  for (int64_t size : axes) {
    if (size < 1)
      return "an axis has size " + std::to_string(size);
    product *= size;
    if (product > expectedDevices)
      break;
  }
  if (product != expectedDevices)
    return "the device matrix does not cover " + std::to_string(expectedDevices) + " devices";
  if (dims.size() != rank)
    return "it names " + std::to_string(dims.size()) + " dimensions, the tensor has " + std::to_string(rank);
  std::vector<bool> used(axes.size(), false);
  auto take = [&](int32_t axis) -> std::string {
    if (axis < 0 || axis >= static_cast<int32_t>(axes.size()))
      return "axis " + std::to_string(axis) + " does not exist";
    if (used[axis])
      return "axis " + std::to_string(axis) + " is used twice";
    used[axis] = true;
    return "";
  };
  for (const auto &dim : dims)
    for (int32_t axis : dim)
      if (std::string wrong = take(axis); !wrong.empty())
        return wrong;
  for (size_t i = 0; i < partial.size(); ++i) {
    if (std::string wrong = take(partial[i].axis); !wrong.empty())
      return wrong;
    if (i > 0 && partial[i - 1].axis > partial[i].axis)
      return "partial axes are not in ascending order";
    if (static_cast<uint8_t>(partial[i].kind) > static_cast<uint8_t>(ReduceKind::Max))
      return "unknown kind of partial value";
  }
  return "";
}

std::string Sharding::str() const {
  auto join = [](const auto &list, const char *separator, auto text) {
    std::string result;
    for (size_t i = 0; i < list.size(); ++i)
      result += (i ? separator : "") + text(list[i]);
    return result;
  };
  auto number = [](auto value) { return std::to_string(value); };
  std::string result = "(" + join(axes, ", ", number) + ") [";
  result += join(dims, ", ", [&](const auto &dim) { return dim.empty() ? std::string("-") : join(dim, ".", number); });
  result += "]";
  if (!partial.empty())
    result += " partial(" + join(partial, ", ", [](const PartialAxis &p) {
                return std::string(reduceKindName(p.kind)) + ": " + std::to_string(p.axis);
              }) + ")";
  return result;
}

std::vector<int64_t> groupOf(const std::vector<int64_t> &axes, const std::vector<int32_t> &axesOfGroup, int64_t rank) {
  std::vector<int64_t> stride(axes.size(), 1);
  for (size_t i = axes.size(); i-- > 1;)
    stride[i - 1] = stride[i] * axes[i];
  int64_t base = rank;
  for (int32_t axis : axesOfGroup)
    base -= (rank / stride[axis]) % axes[axis] * stride[axis];
  std::vector<int64_t> ranks{base};
  for (int32_t axis : axesOfGroup) {
    std::vector<int64_t> grown;
    for (int64_t member : ranks)
      for (int64_t i = 0; i < axes[axis]; ++i)
        grown.push_back(member + i * stride[axis]);
    ranks = std::move(grown);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string groupName(const std::vector<int64_t> &ranks, int64_t devices) {
  if (static_cast<int64_t>(ranks.size()) == devices)
    return "nccl_world_group";
  std::string joined;
  for (size_t i = 0; i < ranks.size(); ++i)
    joined += (i ? "-" : "") + std::to_string(ranks[i]);
  return std::to_string(ranks.size()) + "-" + std::to_string(std::hash<std::string>{}(joined));
}

} // namespace msc
