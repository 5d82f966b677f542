#include "dialects/net/ops/communication/CommunicationOps.h"

#include "dialects/net/ops/support/Rules.h"

using namespace mlir;
using namespace msc::net;

#include "dialects/net/ops/communication/CommunicationInterface.cpp.inc"

LoweringKind ReinterpretOp::loweringKind() {
  return LoweringKind::View;
}

std::vector<int64_t> RankGroup::shape(ArrayRef<int64_t> own) const {
  std::vector<int64_t> all;
  if (leading() != 0)
    all = {outer, inner};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

msc::Sharding RankGroup::whole(size_t ownDims) const {
  msc::Sharding sharding{.axes = {outer, size, inner}};
  if (leading() != 0)
    sharding.dims = {{0}, {2}};
  sharding.dims.resize(leading() + ownDims);
  return sharding;
}

msc::Sharding RankGroup::terms(size_t ownDims, msc::ReduceKind kind) const {
  msc::Sharding sharding = whole(ownDims);
  sharding.partial = {{1, kind}};
  return sharding;
}

msc::Sharding RankGroup::cut(size_t ownDims, size_t ownDim) const {
  msc::Sharding sharding = whole(ownDims);
  sharding.dims[leading() + ownDim] = {1};
  return sharding;
}

std::optional<RankGroup> msc::net::rankGroup(int64_t ranks, ArrayRef<int64_t> list) {
  if (list.empty())
    return RankGroup{1, ranks, 1};
  auto size = static_cast<int64_t>(list.size());
  int64_t step = size == 1 ? 1 : list[1];
  if (list[0] != 0 || step < 1 || step > ranks || ranks % (step * size) != 0)
    return std::nullopt;
  for (auto [place, rank] : llvm::enumerate(list))
    if (rank != static_cast<int64_t>(place) * step)
      return std::nullopt;
  return RankGroup{ranks / (step * size), size, step};
}

FailureOr<RankGroup> msc::net::groupOf(const Inference &at, int64_t ranks, std::optional<ArrayRef<int64_t>> list) {
  ArrayRef<int64_t> given = list.value_or(ArrayRef<int64_t>());
  if (std::optional<RankGroup> group = rankGroup(ranks, given))
    return *group;
  std::string text;
  for (int64_t rank : given)
    text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return at.error("'rank_list' (" + Twine(text) + ") of '" + at.opName + "' is no group that all of " + Twine(ranks) +
                      " ranks have alike",
                  {}, "write the group of rank 0, in equal steps: (0, 1) or (0, 2) of 4 ranks");
}

LogicalResult msc::net::checkRank(const Inference &at, StringRef name, int64_t rank, int64_t ranks) {
  if (rank >= 0 && rank < ranks)
    return success();
  return at.error("'" + name + "' of '" + at.opName + "' names rank " + Twine(rank) + ", but the last rank is " + Twine(ranks - 1));
}

ShardingRule msc::net::rankTensorRule(Operation *op) {
  ShardingRule rule;
  auto whole = [&](Value value) {
    std::vector<DimFactors> dims;
    for (int64_t size : shapeOf(value))
      dims.push_back({rule.add({.name = factorName(static_cast<int64_t>(rule.factors.size())),
                                .size = size,
                                .kind = FactorKind::Replicated,
                                .reason = "every rank has a tensor of its own"})});
    return dims;
  };
  for (Value operand : op->getOperands())
    rule.operands.push_back(whole(operand));
  for (Value result : op->getResults())
    rule.results.push_back(whole(result));
  return rule;
}
