#include "dialects/dist/Algebra.h"

#include "runtime/plan/Refinement.h"

#include <algorithm>

namespace msc::dist {

std::optional<std::pair<Sharding, Sharding>> overCommonMatrix(const Sharding &a, const Sharding &b) {
  Sharding left = a.canonical(), right = b.canonical();
  std::optional<Matrix> matrix = commonRefinement({&left.axes, &right.axes});
  if (!matrix)
    return std::nullopt;
  return std::pair{refine(left, *matrix), refine(right, *matrix)};
}

bool samePlacement(const Sharding &a, const Sharding &b) {
  return a.canonical() == b.canonical();
}

LocalBoxes::LocalBoxes(const Sharding &sharding, const std::vector<int64_t> &shape)
    : count(sharding.devices()), piece(shape.size(), std::vector<int32_t>(count)), boundaries(shape.size()) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t pieces = sharding.pieces(dim);
    for (int64_t p = 0; p < pieces; ++p)
      boundaries[dim].push_back(pieceOf(shape[dim], p, pieces));
    if (pieces == 1)
      continue;
    for (int32_t axis : sharding.dims[dim]) {
      int64_t stride = 1;
      for (size_t i = axis + 1; i < sharding.axes.size(); ++i)
        stride *= sharding.axes[i];
      int64_t size = sharding.axes[axis];
      for (int64_t rank = 0; rank < count; ++rank)
        piece[dim][rank] = static_cast<int32_t>(piece[dim][rank] * size + rank / stride % size);
    }
  }
}

int64_t LocalBoxes::elements(int64_t rank) const {
  int64_t product = 1;
  for (size_t dim = 0; dim < piece.size(); ++dim)
    product *= range(dim, rank).size();
  return product;
}

Box LocalBoxes::box(int64_t rank) const {
  Box result;
  for (size_t dim = 0; dim < piece.size(); ++dim)
    result.push_back(range(dim, rank));
  return result;
}

int64_t commonElements(const LocalBoxes &a, int64_t rankOfA, const LocalBoxes &b, int64_t rankOfB) {
  int64_t product = 1;
  for (size_t dim = 0; dim < a.dims(); ++dim) {
    const Range &left = a.range(dim, rankOfA), &right = b.range(dim, rankOfB);
    product *= std::max<int64_t>(0, std::min(left.end, right.end) - std::max(left.begin, right.begin));
  }
  return product;
}

int64_t receivedElements(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  LocalBoxes source(from, shape), target(to, shape);
  int64_t most = 0;
  for (int64_t rank = 0; rank < target.devices(); ++rank)
    most = std::max(most, target.elements(rank) - commonElements(source, rank, target, rank));
  return most;
}

bool slicesLocally(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  return receivedElements(from, to, shape) == 0;
}

static int64_t termsOf(const Sharding &sharding) {
  int64_t terms = 1;
  for (const PartialAxis &p : sharding.partial)
    terms *= sharding.axes[p.axis];
  return terms;
}

int64_t leastReceived(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  int64_t kept = termsOf(to), terms = termsOf(from) / kept;
  if (terms == 1)
    return receivedElements(from, to, shape);
  int64_t places = to.devices() / kept; // of each term that is kept
  for (size_t dim = 0; dim < shape.size(); ++dim)
    places /= to.pieces(dim);
  int64_t receipts = elementCount(shape) * kept * (terms - 1 + places - 1);
  return std::max(elementCount(to.capacity(shape)), (receipts + to.devices() - 1) / to.devices());
}

int64_t allReduceElements(int64_t local, int64_t members) {
  if (members <= 1)
    return 0;
  // Owner of p elements: p from each of the others, then local - p; largest for the largest owner.
  int64_t largest = (local + members - 1) / members;
  return (members - 2) * largest + local;
}

std::string checkLegal(const Sharding &sharding, const std::vector<int64_t> &shape, int64_t devices) {
  if (std::string wrong = sharding.check(devices, shape.size()); !wrong.empty())
    return wrong;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (int64_t pieces = sharding.pieces(dim); pieces > 1 && pieces > shape[dim])
      return "dimension " + std::to_string(dim) + " has size " + std::to_string(shape[dim]) +
             " and cannot be cut into " + std::to_string(pieces) + " pieces";
  return "";
}

TensorLayout tensorLayout(const Sharding &sharding) {
  TensorLayout layout{sharding.axes, {}};
  for (const auto &dim : sharding.dims) {
    auto &map = layout.tensorMap.emplace_back();
    for (int32_t axis : dim)
      map.push_back(static_cast<int64_t>(sharding.axes.size()) - 1 - axis);
  }
  return layout;
}

Sharding shardingFromLayout(const Matrix &deviceMatrix, const std::vector<int64_t> &tensorMap) {
  Sharding sharding;
  sharding.axes = deviceMatrix;
  for (int64_t fromRight : tensorMap) {
    auto &dim = sharding.dims.emplace_back();
    if (fromRight >= 0)
      dim.push_back(static_cast<int32_t>(static_cast<int64_t>(deviceMatrix.size()) - 1 - fromRight));
  }
  return sharding;
}

} // namespace msc::dist
