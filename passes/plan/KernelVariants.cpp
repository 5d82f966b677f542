#include "passes/plan/KernelVariants.h"

using namespace mlir;

namespace msc::passes {

std::optional<std::vector<SizeReference>> rangeOf(const KernelVariants &variants, ArrayRef<Value> pointers) {
  auto extent = [&](const codegen::CompiledKernel &kernel, int64_t rank) {
    int64_t product = 1;
    for (auto [pointer, dim] : kernel.rangeSizes)
      product *= localType(pointers[pointer].getType(), rank).getDimSize(dim);
    return product;
  };
  for (const auto &[sizes, candidate] : variants)
    if (llvm::all_of(variants, [&](const auto &other) {
          return extent(candidate.kernel, other.second.rank) == extent(other.second.kernel, other.second.rank) &&
                 candidate.kernel.unit == other.second.kernel.unit;
        }))
      return std::vector<SizeReference>(candidate.kernel.rangeSizes.begin(), candidate.kernel.rangeSizes.end());
  return std::nullopt;
}

} // namespace msc::passes
