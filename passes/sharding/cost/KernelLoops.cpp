#include "passes/sharding/cost/KernelLoops.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace msc::passes {
namespace {

/// Tensors of an operator, with the factors of their dimensions.
struct Tensor {
  const std::vector<net::DimFactors> &factors;
  Shape local;
};

} // namespace

KernelLoops loopsOf(const TracedOperator &traced, const std::vector<StepValue> &values) {
  const net::ShardingRule &rule = traced.op->facts.rule;
  std::vector<Tensor> tensors;
  auto add = [&](const TracedOperator::Use &use, const std::vector<net::DimFactors> &factors) {
    tensors.push_back({factors, use.sharding.capacity(values[use.value].shape)});
  };
  for (size_t i = 0; i < traced.reads.size(); ++i)
    add(traced.reads[i], rule.operands[i]);
  for (size_t i = 0; i < traced.writes.size(); ++i)
    add(traced.writes[i], rule.results[i]);
  std::vector<const Tensor *> widestFirst;
  for (const Tensor &tensor : tensors)
    widestFirst.push_back(&tensor);
  std::ranges::stable_sort(widestFirst, std::greater(), [](const Tensor *tensor) { return tensor->factors.size(); });
  KernelLoops made;
  std::map<net::DimFactors, int32_t> loopOf;
  for (const Tensor *tensor : widestFirst)
    for (size_t dim = 0; dim < tensor->factors.size(); ++dim)
      if (!tensor->factors[dim].empty() && loopOf.try_emplace(tensor->factors[dim], static_cast<int32_t>(made.loops.size())).second)
        made.loops.push_back({tensor->local[dim], true});
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool isWritten = i >= traced.reads.size();
    std::vector<int32_t> &dims = (isWritten ? made.writes : made.reads).emplace_back();
    for (const net::DimFactors &factors : tensors[i].factors) {
      dims.push_back(factors.empty() ? KernelLoops::none : loopOf.at(factors));
      if (isWritten && !factors.empty())
        made.loops[dims.back()].isReduced = false;
    }
  }
  return made;
}

KernelLoops elementwiseLoops(const Shape &shape, size_t count) {
  KernelLoops made;
  std::vector<int32_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  for (int64_t size : shape)
    made.loops.push_back({size, false});
  made.reads.assign(count, dims);
  made.writes.assign(1, dims);
  return made;
}

} // namespace msc::passes
