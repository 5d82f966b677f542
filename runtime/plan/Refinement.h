// Shardings compared. Two shardings that factorise the ranks differently are brought to a common refinement, a list of
// axes of which the axes of both are products of neighbours; questions about boxes are then answered per dimension, over
// the few axes that cut it, instead of per rank.
#pragma once

#include "runtime/plan/Sharding.h"

#include <initializer_list>
#include <optional>
#include <vector>

namespace msc {

/// The coarsest device matrix that refines all of `matrices` (same number of devices), without axes of size 1; none for
/// (2, 3) and (3, 2).
std::optional<std::vector<int64_t>> commonRefinement(std::initializer_list<const std::vector<int64_t> *> matrices);

/// `axesOfMatrix` of the device matrix `matrix`, named in its refinement `refined`.
std::vector<int32_t> refineAxes(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axesOfMatrix,
                                const std::vector<int64_t> &refined);

/// The same distribution over the refinement `refined` of its axes.
Sharding refine(const Sharding &sharding, const std::vector<int64_t> &refined);

/// Answer of a proof: Unknown when it would have taken more than the bounded work.
enum class Proof { Yes, No, Unknown };

/// One dimension of a tensor of global size `size` under `sharding`.
struct CutDimension {
  const Sharding *sharding = nullptr;
  size_t dim = 0;
  int64_t size = 0;
};

/// Do all ranks hold the same index range of `a` and of `b`?
Proof sameRange(const CutDimension &a, const CutDimension &b);
/// Does the range of `inner` lie within that of `outer` on all ranks? An empty range lies within every other.
Proof rangeWithin(const CutDimension &inner, const CutDimension &outer);
/// Does, on all ranks, the box of `inner` lie within that of `outer`?
Proof boxWithin(const Sharding &inner, const Sharding &outer, const std::vector<int64_t> &shape);

/// Is each element that a rank holds under `target` held under `source` by a member of its group, as the same partial
/// term? The group is `axesOfGroup` of the device matrix `matrix`.
Proof coveredByGroup(const Sharding &target, const Sharding &source, const std::vector<int64_t> &shape,
                     const std::vector<int64_t> &matrix, const std::vector<int32_t> &axesOfGroup);

} // namespace msc
