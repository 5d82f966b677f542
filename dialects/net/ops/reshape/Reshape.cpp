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
  constexpr int64_t most = int64_t{1} << 60; // more than any tensor has
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
      known = size > 0 && known > most / size ? most : known * size;
  }
  int64_t count = countOf(at.shape(0));
  if (open >= 0 && (known == 0 || count % known != 0)) // C2
    return at.error(
        "cannot reshape " + at.text(0) + ": " + Twine(count) + " elements are not a multiple of " + Twine(known), {0});
  if (open >= 0)
    shape[open] = count / known;
  if (open < 0 && known != count && known < most) // C2; larger ones are refused as a result
    return at.error("cannot reshape " + at.text(0) + " to " + shapeText(shape) + ": " + Twine(count) +
                        " elements do not fill " + Twine(known),
                    {0});
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult ExpandDimsOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  int64_t axis = op.getAxis(), places = at.rank(0) + 1;
  if (axis < -places || axis >= places) // C1
    return at.error("'axis' of 'ExpandDims' is " + Twine(axis) + ": " + at.text(0) + " with one more dimension has " +
                        Twine(places),
                    {0});
  SmallVector<int64_t> shape(at.shape(0));
  shape.insert(shape.begin() + (axis < 0 ? axis + places : axis), 1);
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult SqueezeOp::infer(const Inference &at, Adaptor op, SmallVectorImpl<Type> &results) {
  FailureOr<SmallVector<int64_t>> dims = resolveAxes(at, 0, op.getAxis()); // C1
  if (failed(dims))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(at.shape(0))) {
    bool named = llvm::is_contained(*dims, static_cast<int64_t>(dim));
    if (named && size != 1 && !op.getAxis().empty()) // C2
      return at.error("'Squeeze' cannot leave out dimension " + Twine(dim) + " of " + at.text(0) + ": its size is " +
                          Twine(size) + ", not 1",
                      {0});
    if (!named || size != 1)
      shape.push_back(size);
  }
  results.push_back(tensorOf(shape, at.element(0)));
  return success();
}

LogicalResult FlattenOp::infer(const Inference &at, Adaptor, SmallVectorImpl<Type> &results) {
  if (at.rank(0) == 0) // C1
    return at.error("'Flatten' takes a tensor of at least one dimension, but " + at.name(0) + " is a scalar", {0});
  ArrayRef<int64_t> shape = at.shape(0);
  results.push_back(tensorOf({shape.front(), countOf(shape.drop_front())}, at.element(0)));
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

ShardingRule msc::net::reshapeRule(const std::vector<int64_t> &from, const std::vector<int64_t> &to) {
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
