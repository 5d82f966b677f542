#include "passes/plan/KernelSizes.h"

#include "dialects/dist/DistDialect.h"
#include "runtime/plan/RankClasses.h"

#include <map>
#include <set>

using namespace mlir;

namespace msc::passes {

std::vector<SizeReference> varyingSizes(ArrayRef<Value> pointers) {
  std::vector<SizeReference> varying;
  for (auto [index, pointer] : llvm::enumerate(pointers)) {
    Sharding sharding = dist::shardingOf(pointer);
    std::vector<int64_t> shape = dist::globalShape(pointer.getType());
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] % sharding.pieces(dim) != 0)
        varying.push_back({index, dim});
  }
  return varying;
}

std::vector<int64_t> localSizes(ArrayRef<Value> pointers, const std::vector<SizeReference> &references, int64_t rank) {
  std::vector<int64_t> sizes;
  for (auto [index, dim] : references)
    sizes.push_back(localType(pointers[index].getType(), rank).getDimSize(dim));
  return sizes;
}

/// Ranks, ascending, among which all combinations of the values' local sizes occur.
static std::vector<int64_t> ranksOfOwnSizes(ArrayRef<Value> values) {
  RankClasses classes(dist::shardingOf(values.front()).devices());
  for (Value value : values)
    classes.addSizes(dist::shardingOf(value), dist::globalShape(value.getType()));
  return classes.ranks();
}

/// No element to compute on this rank.
static bool isIdle(const ClusterSignature &signature, int64_t rank) {
  return llvm::all_of(signature.outputs,
                      [&](Value output) { return localType(output.getType(), rank).getNumElements() == 0; });
}

std::vector<int64_t> ranksWithOwnSizes(const ClusterSignature &signature) {
  SmallVector<Value> pointers = signature.pointers();
  std::vector<SizeReference> varying = varyingSizes(pointers);
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> ranks, candidates = ranksOfOwnSizes(pointers);
  for (int64_t rank : llvm::reverse(candidates))
    if (!isIdle(signature, rank) && seen.insert(localSizes(pointers, varying, rank)).second)
      ranks.push_back(rank);
  return ranks;
}

bool pointersShowSizes(const Unit &unit, const ClusterSignature &signature) {
  SmallVector<Value> pointers = signature.pointers(), inside;
  for (Operation *op : unit.ops)
    llvm::copy_if(op->getResults(), std::back_inserter(inside),
                  [&](Value value) { return !llvm::is_contained(pointers, value); });
  std::vector<SizeReference> varying = varyingSizes(inside);
  if (varying.empty())
    return true;
  std::vector<SizeReference> shown = varyingSizes(pointers);
  std::map<std::vector<int64_t>, std::vector<int64_t>> sizes;
  llvm::append_range(pointers, inside);
  for (int64_t rank : ranksOfOwnSizes(pointers)) {
    std::vector<int64_t> own = localSizes(inside, varying, rank);
    if (sizes.try_emplace(localSizes(pointers, shown, rank), own).first->second != own)
      return false;
  }
  return true;
}

} // namespace msc::passes
