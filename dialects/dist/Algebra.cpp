#include "dialects/dist/Algebra.h"

#include "dialects/dist/Lacking.h"
#include "runtime/plan/RankClasses.h"
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

namespace {

/// The pieces of one dimension, found by rank without allocations.
class PiecesOfRanks {
public:
  PiecesOfRanks(const Sharding &sharding, size_t dim, int64_t size) {
    for (int32_t axis : sharding.dims[dim]) {
      int64_t inner = 1;
      for (size_t i = static_cast<size_t>(axis) + 1; i < sharding.axes.size(); ++i)
        inner *= sharding.axes[i];
      axes.push_back({inner, sharding.axes[axis]});
    }
    int64_t count = sharding.pieces(dim);
    for (int64_t piece = 0; piece < count; ++piece)
      ranges.push_back(pieceOf(size, piece, count));
  }

  const Range &at(int64_t rank) const {
    int64_t piece = 0;
    for (const Axis &axis : axes)
      piece = piece * axis.size + rank / axis.inner % axis.size;
    return ranges[static_cast<size_t>(piece)];
  }

private:
  struct Axis {
    int64_t inner, size;
  };
  std::vector<Axis> axes;
  std::vector<Range> ranges;
};

/// By classes of ranks: where the two have no common refinement, or more axes or dimensions than can be packed.
int64_t receivedByRank(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  RankClasses classes(to.devices());
  classes.addPieces(from);
  classes.addPieces(to);
  std::vector<int64_t> ranks = classes.ranks(), wanted(ranks.size(), 1), common(ranks.size(), 1);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    PiecesOfRanks source(from, dim, shape[dim]), target(to, dim, shape[dim]);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Range &have = source.at(ranks[i]), &want = target.at(ranks[i]);
      wanted[i] *= want.size();
      common[i] *= std::max<int64_t>(0, std::min(have.end, want.end) - std::max(have.begin, want.begin));
    }
  }
  int64_t most = 0;
  for (size_t i = 0; i < ranks.size(); ++i)
    most = std::max(most, wanted[i] - common[i]);
  return most;
}

} // namespace

int64_t receivedElements(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  auto common = overCommonMatrix(from, to);
  if (!common || common->first.axes.size() > mostAxes || shape.size() > mostDims)
    return receivedByRank(from, to, shape);
  return Lacking(common->first.axes, shape).most(listsOf(common->first), listsOf(common->second));
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
