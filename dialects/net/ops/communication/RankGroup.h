// Groups of ranks that every rank has alike, and how what a group holds is sharded.
#pragma once

#include "dialects/net/NetInterfaces.h"
#include "dialects/net/ops/support/Infer.h"

namespace msc::net {

/// How the tensors of all ranks become one result on each: together they are one tensor, which moves.
struct Communication {
  std::vector<int64_t> shape; ///< of that tensor; the pieces of it have as many elements as operand and result
  msc::Sharding from, to;     ///< what each rank has of it as its operand, and as its result
  msc::CopyRegions regions;   ///< where there are any, rows are copied between ranks, and both shardings are the same
};

/// MindSpore's names of the group of all ranks: of its libraries for GPUs, Ascend and CPUs.
inline constexpr llvm::StringRef kGroups[] = {"nccl_world_group", "hccl_world_group", "mccl_world_group"};
inline constexpr llvm::StringRef kRankReductions[] = {"sum", "max", "min", "prod"};

/// rank = (o * size + place) * inner + i: the ranks of a group differ in `place`. `outer` times `inner` groups.
struct RankGroup {
  int64_t outer = 1, size = 1, inner = 1;

  /// The shape of what all ranks hold together, and its sharding. `own` is that of a group; where there are several groups
  /// two dimensions in front tell them apart.
  std::vector<int64_t> shape(llvm::ArrayRef<int64_t> own) const;
  /// Whole on every rank of the group.
  msc::Sharding whole(size_t ownDims) const;
  /// Every rank has a term.
  msc::Sharding terms(size_t ownDims, msc::ReduceKind kind) const;
  /// Every rank has a piece along a dimension.
  msc::Sharding cut(size_t ownDims, size_t ownDim) const;
  /// Number of dimensions in front.
  size_t leading() const { return outer * inner == 1 ? 0 : 2; }
};

/// Out of `ranks` ranks those of `list` as rank 0 sees them; all for an empty list. Nothing if not every rank can have such
/// a group.
std::optional<RankGroup> rankGroup(int64_t ranks, llvm::ArrayRef<int64_t> list);

/// The same for an operator whose types are inferred; reports what stands against it.
llvm::FailureOr<RankGroup> groupOf(const Inference &at, int64_t ranks, std::optional<llvm::ArrayRef<int64_t>> list);

/// Reports a number of a rank that is not below `ranks`.
llvm::LogicalResult checkRank(const Inference &at, llvm::StringRef name, int64_t rank, int64_t ranks);

/// Every dimension stays whole: each rank has a tensor of its own.
ShardingRule rankTensorRule(mlir::Operation *op);

} // namespace msc::net
