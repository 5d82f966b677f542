#include "dialects/net/NetOps.h"
#include "dialects/net/ops/support/Rules.h"

#include <numeric>

using namespace mlir;
using namespace msc::net;

//===-- constraints and result type ---------------------------------------===//

static int64_t countOf(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

LogicalResult ReshapeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  SmallVector<int64_t> shape(op.getShape());
  int64_t open = -1, known = 1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size < -1 || (size == -1 && open >= 0)) // C1
      return at.error("cannot reshape " + at.text(0) + ": " +
                          (size < -1 ? "size " + Twine(size) + " of 'shape' is negative"
                                     : Twine("two sizes of 'shape' are left open with -1")),
                      {0});
    if (size == -1)
      open = i;
    else
      known *= size;
  }
  int64_t count = countOf(at.shape(0));
  if (open >= 0 && (known == 0 || count % known != 0)) // C2
    return at.error(
        "cannot reshape " + at.text(0) + ": " + Twine(count) + " elements are not a multiple of " + Twine(known), {0});
  if (open >= 0)
    shape[open] = count / known;
  if (open < 0 && known != count) // C2
    return at.error("cannot reshape " + at.text(0) + " to " + shapeText(shape) + ": " + Twine(count) +
                        " elements do not fill " + Twine(known),
                    {0});
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

//===-- gradient ----------------------------------------------------------===//

LogicalResult ReshapeOp::buildGradient(OpBuilder &builder, ValueRange dy, const llvm::SmallBitVector &,
                                       MutableArrayRef<Value> gradients) {
  gradients[0] = reshaped(builder, getLoc(), dy[0], cast<RankedTensorType>(getX().getType()).getShape());
  return success();
}

//===-- rule --------------------------------------------------------------===//

namespace {
/// Dimensions of both sides, sizes of 1 left out, that hold the same number of elements.
struct Group {
  SmallVector<int32_t> from, to;
};
} // namespace

/// The smallest groups from the left. Without empty tensors.
static SmallVector<Group> groupsOf(const std::vector<int64_t> &from, const std::vector<int64_t> &to) {
  SmallVector<Group> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group group;
    int64_t left = 1, right = 1;
    auto takeLeft = [&] { left *= from[i], group.from.push_back(i++); };
    auto takeRight = [&] { right *= to[j], group.to.push_back(j++); };
    while (i < from.size() && from[i] == 1)
      ++i;
    while (j < to.size() && to[j] == 1)
      ++j;
    if (i == from.size() && j == to.size())
      break;
    takeLeft(), takeRight();
    while (left != right)
      left < right ? takeLeft() : takeRight();
    // A trailing 1 was taken only on the way to a larger size and is harmless: it carries no factor.
    groups.push_back(group);
  }
  return groups;
}

/// Gives the leading dimensions of a merged group their common factor: pieces must begin at whole units of both sides.
static void addLeadingFactor(ShardingRule &rule, const Group &group, const std::vector<int64_t> &from,
                             const std::vector<int64_t> &to) {
  int64_t count = 1;
  for (int32_t dim : group.from)
    count *= from[dim];
  int64_t unit = std::lcm(count / from[group.from[0]], count / to[group.to[0]]);
  int32_t factor = rule.add({.name = factorName(rule.factors.size()), .size = count});
  if (unit > 1) {
    rule.factors[factor].kind = FactorKind::Blocked;
    rule.factors[factor].block = unit;
  }
  rule.operands[0][group.from[0]] = {factor};
  rule.results[0][group.to[0]] = {factor};
}

static void addWhole(ShardingRule &rule, int64_t size, DimFactors &dim) {
  if (size != 1)
    dim = {rule.add({.name = factorName(rule.factors.size()),
                     .size = size,
                     .kind = FactorKind::Replicated,
                     .reason = "pieces of an inner dimension of a merged group are not contiguous"})};
}

/// An empty tensor has no groups: every dimension stays whole.
static ShardingRule emptyRule(ShardingRule rule, const std::vector<int64_t> &from, const std::vector<int64_t> &to) {
  for (size_t dim = 0; dim < from.size(); ++dim)
    addWhole(rule, from[dim], rule.operands[0][dim]);
  for (size_t dim = 0; dim < to.size(); ++dim)
    addWhole(rule, to[dim], rule.results[0][dim]);
  return rule;
}

ShardingRule ReshapeOp::shardingRule() {
  std::vector<int64_t> from = shapeOf(getX()), to = shapeOf(getOutput());
  ShardingRule rule;
  rule.operands.assign(1, std::vector<DimFactors>(from.size()));
  rule.results.assign(1, std::vector<DimFactors>(to.size()));
  if (msc::elementCount(from) == 0)
    return emptyRule(std::move(rule), from, to);
  for (const Group &group : groupsOf(from, to)) {
    addLeadingFactor(rule, group, from, to);
    for (int32_t dim : ArrayRef(group.from).drop_front())
      addWhole(rule, from[dim], rule.operands[0][dim]);
    for (int32_t dim : ArrayRef(group.to).drop_front())
      addWhole(rule, to[dim], rule.results[0][dim]);
  }
  return rule;
}

//===-- cost, lowering ----------------------------------------------------===//

OperatorCost ReshapeOp::cost(ArrayRef<std::vector<int64_t>>, ArrayRef<std::vector<int64_t>>) {
  return {};
}

LoweringKind ReshapeOp::loweringKind() {
  return LoweringKind::View;
}
