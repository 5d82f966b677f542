// The algebra of shardings: refinement, equality of placement, what a move costs. Plain C++, no MLIR.
//
// Every sharding carries its own factorisation of the rank list. Two of them are compared over a *common refinement*, a
// device matrix that splits the axes of both (8 = 2 x 2 x 2 refines 2 x 4 and 4 x 2); (2, 3) and (3, 2) have none. See
// runtime/plan/Refinement.h, which plan checks share.
#pragma once

#include "runtime/plan/Sharding.h"

#include <optional>
#include <utility>

namespace msc::dist {

using Matrix = std::vector<int64_t>;

/// Both shardings, in canonical form, rewritten over their common refinement.
std::optional<std::pair<Sharding, Sharding>> overCommonMatrix(const Sharding &a, const Sharding &b);

/// True if both place all elements alike on every shape.
bool samePlacement(const Sharding &a, const Sharding &b);

/// True if no rank needs anything that it does not hold: the move is a local slice. Partial axes are not looked at.
bool slicesLocally(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape);

/// Elements that the busiest rank lacks: the lower bound of any move between the placements. Partial axes are not
/// looked at; leastReceived counts them.
int64_t receivedElements(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape);

/// Elements that the busiest rank receives at least, whatever the steps. Where terms are brought together: each element has
/// m terms and k ranks that want the whole, the first of which has it after m - 1 receipts, the others after one more each; no
/// rank receives less than the mean, (m - 1) + (k - 1) for each element of the tensor over all ranks, nor less than it wants.
/// Partial axes of `to` are partial in `from`.
int64_t leastReceived(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape);

/// Elements that the busiest rank receives when `local` elements are reduced among `members` ranks and every rank keeps
/// the result: owner r of g has elements [floor(r n / g), floor((r + 1) n / g)), receives its part of the others and
/// then the parts of the other owners.
int64_t allReduceElements(int64_t local, int64_t members);

/// Empty if the sharding is sound for this tensor and no dimension is cut into more pieces than it has elements, else
/// what is wrong.
std::string checkLegal(const Sharding &sharding, const std::vector<int64_t> &shape, int64_t devices);

/// MindSpore's tensor layout: the device matrix and, per dimension, the axes that cut it counted from the right; an
/// empty list is its -1.
struct TensorLayout {
  Matrix deviceMatrix;
  std::vector<std::vector<int64_t>> tensorMap;
  bool operator==(const TensorLayout &) const = default;
};
TensorLayout tensorLayout(const Sharding &sharding);

/// From MindSpore's device matrix and right-counted tensor map, -1 for a dimension that is not cut.
Sharding shardingFromLayout(const Matrix &deviceMatrix, const std::vector<int64_t> &tensorMap);

} // namespace msc::dist
