#include "passes/partition/Inherit.h"

#include "runtime/plan/Refinement.h"

#include <algorithm>
#include <optional>

namespace msc::passes {

using net::Assignment;
using net::DimFactors;

using Axes = std::vector<int32_t>;

Inheritance::Inheritance(const OperatorFacts &facts, int64_t devices) : facts(facts) {
  if (devices > 1)
    assignment.matrix = {devices};
  assignment.factors.resize(facts.rule.factors.size());
}

void Inheritance::take(bool isResult, size_t position, const Sharding &wanted) {
  std::optional<Sharding> other;
  const Sharding &hint = wanted.isCanonical() ? wanted : other.emplace(wanted.canonical());
  if (hint.isReplicated())
    return; // says nothing of any factor
  auto matrix = commonRefinement({&assignment.matrix, &hint.axes});
  if (!matrix)
    return;
  refineTo(*matrix);
  const auto &dims = (isResult ? facts.rule.results : facts.rule.operands)[position];
  const Shape &shape = (isResult ? facts.resultShapes : facts.operandShapes)[position];
  for (size_t dim = 0; dim < dims.size(); ++dim)
    if (!hint.dims[dim].empty()) {
      mayBeEmpty |= hint.pieces(dim) > std::max<int64_t>(shape[dim], 1);
      takeDimension(dims[dim], refineAxes(hint.axes, hint.dims[dim], *matrix));
    }
}

Assignment Inheritance::finish() && {
  Pieces pieces = piecesOf(assignment);
  for (size_t f = 0; f < assignment.factors.size(); ++f)
    for (Axes &axes = assignment.factors[f]; !axes.empty() && !whyNotCut(facts, f, pieces[f], mayBeEmpty).empty(); axes.pop_back())
      pieces[f] /= assignment.matrix[axes.back()];
  for (size_t f = assignment.factors.size(); f-- > 0 && !piecesPass(facts, pieces, mayBeEmpty);) {
    assignment.factors[f].clear();
    pieces[f] = 1;
  }
  return std::move(assignment);
}

void Inheritance::refineTo(const std::vector<int64_t> &matrix) {
  if (matrix == assignment.matrix)
    return;
  for (Axes &axes : assignment.factors)
    axes = refineAxes(assignment.matrix, axes, matrix);
  assignment.matrix = matrix;
}

bool Inheritance::isFree(int32_t axis) const {
  return std::none_of(assignment.factors.begin(), assignment.factors.end(),
                      [&](const Axes &axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
}

/// Hands the axes that cut one dimension to its factors, most major first, as far as they are free.
void Inheritance::takeDimension(const DimFactors &factors, const Axes &axes) {
  size_t next = 0;
  for (size_t i = 0; i < factors.size() && next < axes.size(); ++i) {
    Axes &have = assignment.factors[factors[i]];
    if (!have.empty())
      return; // an earlier hint decided; a different wish has to be redistributed
    bool isLast = i + 1 == factors.size();
    int64_t size = facts.rule.factors[factors[i]].size, pieces = 1;
    while (next < axes.size() && isFree(axes[next]) && (isLast || size % (pieces * assignment.matrix[axes[next]]) == 0)) {
      pieces *= assignment.matrix[axes[next]];
      have.push_back(axes[next++]);
    }
    if (pieces != size)
      return;
  }
}

Pieces piecesOf(const Assignment &assignment) {
  Pieces pieces;
  for (const Axes &axes : assignment.factors) {
    pieces.push_back(1);
    for (int32_t axis : axes)
      pieces.back() *= assignment.matrix[axis];
  }
  return pieces;
}

Assignment inheritAssignment(const OperatorFacts &facts, const std::vector<ShardingHint> &hints, int64_t devices) {
  Inheritance inheritance(facts, devices);
  for (const ShardingHint &hint : hints)
    inheritance.take(hint.isResult, hint.position, hint.sharding);
  return std::move(inheritance).finish();
}

} // namespace msc::passes
