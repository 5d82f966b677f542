// For which local sizes a cluster needs kernels: pieces of one tensor need not be alike on all ranks.
#pragma once

#include "passes/plan/ClusterFunction.h"

#include <utility>
#include <vector>

namespace msc::passes {

/// (index into the kernel's pointers, dimension).
using SizeReference = std::pair<int64_t, int64_t>;

/// Sizes of the kernel's tensors that differ between ranks.
std::vector<SizeReference> varyingSizes(llvm::ArrayRef<mlir::Value> pointers);

/// The referenced sizes, in elements, of the pieces of one rank.
std::vector<int64_t> localSizes(llvm::ArrayRef<mlir::Value> pointers, const std::vector<SizeReference> &references, int64_t rank);

/// One rank for each combination of local sizes that occurs with something to compute. The last rank comes first: its
/// pieces are never the smaller ones.
std::vector<int64_t> ranksWithOwnSizes(const ClusterSignature &signature);

/// A kernel is chosen by the sizes of its buffers. A dimension that exists only inside the cluster (broadcast and then
/// reduced) must not differ between ranks whose buffers are alike.
bool pointersShowSizes(const Unit &unit, const ClusterSignature &signature);

} // namespace msc::passes
