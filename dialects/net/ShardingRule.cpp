#include "dialects/net/ShardingRule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace msc::net {

int32_t ShardingRule::add(Factor factor) {
  factors.push_back(std::move(factor));
  return static_cast<int32_t>(factors.size()) - 1;
}

namespace {
/// "m k" or, for a dimension without factor, "1"; "()" for a scalar.
std::string dimsText(const ShardingRule &rule, const std::vector<DimFactors> &dims) {
  if (dims.empty())
    return "()";
  return llvm::join(llvm::map_range(dims,
                                    [&](const DimFactors &dim) {
                                      if (dim.empty())
                                        return std::string("1");
                                      return llvm::join(
                                          llvm::map_range(dim, [&](int32_t f) { return rule.factors[f].name; }), ".");
                                    }),
                    " ");
}

std::string listText(const ShardingRule &rule, const std::vector<std::vector<DimFactors>> &list) {
  return "(" + llvm::join(llvm::map_range(list, [&](const auto &dims) { return dimsText(rule, dims); }), ", ") + ")";
}

/// ", reduce k", ", max k", ", whole k", ", halo k", ", exchange k", ", k by 32"; nothing for PassThrough. What is reduced
/// with halos shows both.
std::string kindText(const Factor &factor) {
  switch (factor.kind) {
  case FactorKind::PassThrough:
    return factor.halo ? ", halo " + factor.name : "";
  case FactorKind::Reduction:
    return (factor.reduce == ReduceKind::Sum ? ", reduce " : std::string(", ") + reduceKindName(factor.reduce) + " ") +
           factor.name + (factor.halo ? ", halo " + factor.name : "") + (factor.block > 1 ? " by " + std::to_string(factor.block) : "");
  case FactorKind::Replicated:
    return ", whole " + factor.name;
  case FactorKind::Exchanged:
    return ", exchange " + factor.name;
  case FactorKind::Blocked:
    return ", " + factor.name + " by " + std::to_string(factor.block);
  }
  return "";
}

const std::vector<int32_t> *axesOf(const Assignment &assignment, int32_t factor) {
  return static_cast<size_t>(factor) < assignment.factors.size() ? &assignment.factors[factor] : nullptr;
}

Sharding shardingOfDims(const Assignment &assignment, const std::vector<DimFactors> &dims) {
  Sharding sharding;
  sharding.axes = assignment.matrix;
  sharding.dims.resize(dims.size());
  for (size_t dim = 0; dim < dims.size(); ++dim)
    for (int32_t factor : dims[dim])
      if (const std::vector<int32_t> *axes = axesOf(assignment, factor))
        llvm::append_range(sharding.dims[dim], *axes);
  return sharding;
}
} // namespace

std::string ShardingRule::str() const {
  std::string text = listText(*this, operands) + " -> " + listText(*this, results);
  for (const Factor &factor : factors)
    text += kindText(factor);
  return text;
}

std::string strategyText(const Strategy &strategy) {
  auto tuple = [](const std::vector<int64_t> &pieces) {
    return "(" + llvm::join(llvm::map_range(pieces, [](int64_t n) { return std::to_string(n); }), ", ") + ")";
  };
  return "(" + llvm::join(llvm::map_range(strategy, tuple), ", ") + ")";
}

Sharding operandSharding(const ShardingRule &rule, const Assignment &assignment, size_t operand) {
  return shardingOfDims(assignment, rule.operands[operand]);
}

Sharding resultSharding(const ShardingRule &rule, const Assignment &assignment, size_t result) {
  const std::vector<DimFactors> &dims = rule.results[result];
  Sharding sharding = shardingOfDims(assignment, dims);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const std::vector<int32_t> *axes = axesOf(assignment, f);
    bool carried = llvm::any_of(dims, [&](const DimFactors &dim) { return llvm::is_contained(dim, f); });
    if (!axes || carried || rule.factors[f].kind != FactorKind::Reduction)
      continue;
    for (int32_t axis : *axes)
      sharding.partial.push_back({axis, rule.factors[f].reduce});
  }
  llvm::sort(sharding.partial, [](const PartialAxis &a, const PartialAxis &b) { return a.axis < b.axis; });
  return sharding;
}

} // namespace msc::net
