// Where the elements of a tensor are: the plain-data sharding that plans carry and the compiler reasons about.
//
// Words. N devices are one list of ranks 0..N-1. A sharding carries its own factorisation of that list, the *device
// matrix* `axes` (row-major: the last axis varies fastest; the product is N). Every axis either *cuts* a dimension of
// the tensor, is *partial* (each rank along it holds one term of a sum, max, ...), or *repeats* (equal copies).
//
// Uneven sizes are legal: piece p of P of a dimension of size n is [floor(p n / P), floor((p + 1) n / P)). The
// boundaries of a coarser cut are boundaries of every refinement, so slicing is always local. Elements of a shard lie
// densely, row-major, with the rank's own sizes; capacity() is the largest size over all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msc {

/// How partial results along an axis are brought together.
enum class ReduceKind : uint8_t { Sum = 0, Prod = 1, Min = 2, Max = 3 };

/// "sum", "prod", "min", "max": the word that dumps and reports use.
const char *reduceKindName(ReduceKind kind);

/// One axis along which each rank holds a term of a reduction that is still to be done.
struct PartialAxis {
  int32_t axis = 0;
  ReduceKind kind = ReduceKind::Sum;
  bool operator==(const PartialAxis &) const = default;
};

/// Half-open range of indices of one dimension.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range &) const = default;
};

/// A hyper-rectangle of global indices, one range per dimension of the tensor.
using Box = std::vector<Range>;

/// Number of elements in a box; 1 for a scalar.
int64_t elementCount(const Box &box);
/// Number of elements in a shape; 1 for a scalar.
int64_t elementCount(const std::vector<int64_t> &shape);
/// Common part of two boxes of equal rank; a dimension without overlap has begin == end.
Box intersect(const Box &a, const Box &b);
/// The sizes of a box, one per dimension.
std::vector<int64_t> sizes(const Box &box);

/// Piece `piece` of `pieces` of a dimension of size `size`: [floor(p n / P), floor((p + 1) n / P)).
Range pieceOf(int64_t size, int64_t piece, int64_t pieces);

struct Sharding {
  /// Sizes of the axes of the device matrix, most major first; the product is the number of devices. No axis (N = 1)
  /// is the empty list.
  std::vector<int64_t> axes;
  /// For each dimension of the tensor the axes that cut it, most major first. An axis occurs at most once over `dims`
  /// and `partial`.
  std::vector<std::vector<int32_t>> dims;
  /// Axes along which the value is partial, ascending by axis.
  std::vector<PartialAxis> partial;

  bool operator==(const Sharding &) const = default;

  /// The sharding of a tensor of `rank` dimensions that is whole on each of `devices` ranks.
  static Sharding replicated(int64_t devices, size_t rank);

  /// Product of `axes`.
  int64_t devices() const;
  /// Number of pieces into which dimension `dim` is cut.
  int64_t pieces(size_t dim) const;
  bool isReplicated() const;
  bool isPartial() const { return !partial.empty(); }

  /// Coordinates of a rank in the device matrix, row-major.
  std::vector<int64_t> coordinates(int64_t rank) const;
  /// Which piece of dimension `dim` the rank holds.
  int64_t pieceIndex(size_t dim, int64_t rank) const;
  /// The global indices that the rank holds. `shape` is the global shape.
  Box localBox(const std::vector<int64_t> &shape, int64_t rank) const;
  /// Sizes of localBox.
  std::vector<int64_t> localShape(const std::vector<int64_t> &shape, int64_t rank) const;
  /// Largest local size of each dimension over all ranks: ceil(n / P).
  std::vector<int64_t> capacity(const std::vector<int64_t> &shape) const;
  /// True if every rank holds the same number of elements in every dimension.
  bool isEven(const std::vector<int64_t> &shape) const;
  /// The lowest rank among those that hold the same box and the same partial term as `rank`.
  int64_t ownerOf(int64_t rank) const;

  /// The same distribution in canonical form: axes of size 1 removed, neighbouring axes with the same use merged
  /// (consecutive in one dimension, both partial with the same kind, both repeating). Two shardings place all elements
  /// alike on every shape if their canonical forms are equal.
  Sharding canonical() const &;
  Sharding canonical() &&;
  bool isCanonical() const;

  /// Empty if the structure is sound for a tensor of `rank` dimensions on `devices` ranks, else what is wrong, e.g.
  /// "axis 2 is used twice".
  std::string check(int64_t devices, size_t rank) const;

  /// For diagnostics and tests: "(2, 4) [0, 1] partial(sum: 1)" = device matrix, per dimension the axes ('-' none, '.'
  /// joins several), partial axes by kind.
  std::string str() const;
};

/// The ranks that differ from `rank` only in their coordinates on `axesOfGroup` of the device matrix `axes`, ascending.
std::vector<int64_t> groupOf(const std::vector<int64_t> &axes, const std::vector<int32_t> &axesOfGroup, int64_t rank);

/// MindSpore's name of a group: "<count>-<hash>" where hash is libstdc++'s 64-bit std::hash<std::string> of the ranks
/// joined by '-'; the group of all `devices` ranks is "nccl_world_group".
std::string groupName(const std::vector<int64_t> &ranks, int64_t devices);

} // namespace msc
