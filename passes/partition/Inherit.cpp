#include "passes/partition/Inherit.h"

#include "runtime/plan/Refinement.h"

#include <algorithm>

namespace msc::passes {

using net::Assignment;
using net::DimFactors;

namespace {

using Axes = std::vector<int32_t>;

class Inheritance {
public:
  Inheritance(const OperatorFacts &facts, int64_t devices) : facts(facts) {
    if (devices > 1)
      assignment.matrix = {devices};
    assignment.factors.resize(facts.rule.factors.size());
  }

  void take(const ShardingHint &hint) {
    Sharding sharding = hint.sharding.canonical();
    auto matrix = commonRefinement({&assignment.matrix, &sharding.axes});
    if (!matrix)
      return;
    refineTo(*matrix);
    sharding = refine(sharding, *matrix);
    const auto &dims = (hint.isResult ? facts.rule.results : facts.rule.operands)[hint.position];
    const Shape &shape = (hint.isResult ? facts.resultShapes : facts.operandShapes)[hint.position];
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      mayBeEmpty |= sharding.pieces(dim) > std::max<int64_t>(shape[dim], 1);
      takeDimension(dims[dim], sharding.dims[dim]);
    }
  }

  Assignment finish() {
    for (size_t f = 0; f < assignment.factors.size(); ++f)
      while (!whyNotCut(facts, f, piecesOf(assignment)[f], mayBeEmpty).empty())
        assignment.factors[f].pop_back();
    for (size_t f = assignment.factors.size(); f-- > 0 && !piecesPass(facts, piecesOf(assignment), mayBeEmpty);)
      assignment.factors[f].clear();
    return std::move(assignment);
  }

private:
  const OperatorFacts &facts;
  Assignment assignment;
  bool mayBeEmpty = false; ///< a value already comes in more pieces than it has elements

  void refineTo(const std::vector<int64_t> &matrix) {
    for (Axes &axes : assignment.factors)
      axes = refineAxes(assignment.matrix, axes, matrix);
    assignment.matrix = matrix;
  }

  bool isFree(int32_t axis) const {
    return std::none_of(assignment.factors.begin(), assignment.factors.end(),
                        [&](const Axes &axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
  }

  /// Hands the axes that cut one dimension to its factors, most major first, as far as they are free.
  void takeDimension(const DimFactors &factors, const Axes &axes) {
    size_t next = 0;
    for (size_t i = 0; i < factors.size() && next < axes.size(); ++i) {
      Axes &have = assignment.factors[factors[i]];
      if (!have.empty())
        return; // an earlier hint decided; a different wish has to be redistributed
      bool isLast = i + 1 == factors.size();
      int64_t size = facts.rule.factors[factors[i]].size, pieces = 1;
      while (next < axes.size() && isFree(axes[next]) &&
             (isLast || size % (pieces * assignment.matrix[axes[next]]) == 0)) {
        pieces *= assignment.matrix[axes[next]];
        have.push_back(axes[next++]);
      }
      if (pieces != size)
        return;
    }
  }
};

} // namespace

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
    inheritance.take(hint);
  return inheritance.finish();
}

} // namespace msc::passes
