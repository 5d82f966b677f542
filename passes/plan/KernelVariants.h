// The compiled kernels of a cluster, one for each combination of local sizes.
#pragma once

#include "passes/codegen/KernelLibrary.h"
#include "passes/plan/KernelSizes.h"

#include <map>
#include <optional>

namespace msc::passes {

/// What one combination of local sizes runs, and a rank that has these sizes.
struct VariantOnRank {
  codegen::CompiledKernel kernel;
  int64_t rank;
};
/// By the kernel's local sizes that differ between ranks.
using KernelVariants = std::map<std::vector<int64_t>, VariantOnRank>;

/// Sizes whose product is the end of the range. All variants count alike: they differ only in which dimensions of
/// size 1 they name.
std::optional<std::vector<SizeReference>> rangeOf(const KernelVariants &variants, llvm::ArrayRef<mlir::Value> pointers);

} // namespace msc::passes
