// Boxes of elements that are copied between tensors of other shapes: what Slice, Split, Concat, Pad and their gradients are
// made of. Plain data and index arithmetic, shared by the compiler and the runtime.
//
// A region copies, for every index i of its sizes, element source[begin + i * stride] to target[begin + i * stride], per
// dimension; source and target have as many dimensions. Several regions that write one target never write the same
// element, so their order does not matter; they may read the same elements.
#pragma once

#include "runtime/plan/Sharding.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace msc {

/// One dimension of a region.
struct CopyRange {
  int64_t source = 0;       ///< index in the source of i = 0
  int64_t target = 0;       ///< index in the target of i = 0
  int64_t size = 0;         ///< number of indices i
  int64_t sourceStride = 1; ///< not 0
  int64_t targetStride = 1; ///< at least 1
  bool operator==(const CopyRange &) const = default;
};

/// One region, from one of several sources.
struct CopyRegion {
  uint32_t operand = 0;          ///< which source
  std::vector<CopyRange> ranges; ///< one per dimension
  bool operator==(const CopyRegion &) const = default;
};

using CopyRegions = std::vector<CopyRegion>;

/// Number of elements that a region copies.
int64_t elementCount(const CopyRegion &region);

/// Empty if all regions lie within the shapes and no element of the target is written twice, else what is wrong. Strides that
/// interleave in ways that do not show by their common divisor count as overlapping.
std::string checkRegions(const CopyRegions &regions, const std::vector<std::vector<int64_t>> &sources,
                         const std::vector<int64_t> &target);

/// True if the regions, which write nothing twice, write every element of the target.
bool coverTarget(const CopyRegions &regions, const std::vector<int64_t> &target);

/// Per dimension, true if some region does more there than to copy every index to itself: where the dimension is cut, elements
/// change the rank. Sizes of dimensions where none does are equal.
std::vector<bool> movedDimensions(const CopyRegions &regions, const std::vector<std::vector<int64_t>> &sources,
                                  const std::vector<int64_t> &target);

/// The indices i of a region whose source (target) lies in a box.
Box indicesInSource(const CopyRegion &region, const Box &source);
Box indicesInTarget(const CopyRegion &region, const Box &target);

/// The same elements from target to source, as a region of operand 0: what a gradient takes.
CopyRegion transposed(const CopyRegion &region);

/// Regions in lists, none of which writes an element twice: the first list takes what it can, in order.
std::vector<CopyRegions> withoutOverlap(const CopyRegions &regions);

/// One tensor out of which regions (of operand 0) copy into another.
struct CopyEnds {
  Sharding source;
  std::vector<int64_t> sourceShape;
  Sharding target;
  std::vector<int64_t> targetShape;
  CopyRegions regions;
};

/// Elements of each tensor that a rank receives when it gets its boxes of all targets; of the rank that receives most in all.
/// A rank takes what it holds from itself.
std::vector<int64_t> receivedElements(std::span<const CopyEnds> tensors);

/// All regions in one list of numbers, and back: per region the operand, then source, target, size, source stride and target
/// stride of every dimension. Nothing if the list has another length.
std::vector<int64_t> flattened(const CopyRegions &regions);
CopyRegions regionsFrom(std::span<const int64_t> numbers, size_t dimensions);

} // namespace msc
