#include "runtime/plan/Refinement.h"

#include "runtime/plan/RankClasses.h"

#include <algorithm>
#include <functional>
#include <set>

namespace msc {
namespace {

/// Most ranks, or coordinates, that one proof looks at.
constexpr int64_t workLimit = int64_t{1} << 22;

Proof both(Proof a, Proof b) {
  if (a == Proof::No || b == Proof::No)
    return Proof::No;
  return a == Proof::Yes && b == Proof::Yes ? Proof::Yes : Proof::Unknown;
}

Range rangeOf(const CutDimension &cut, int64_t rank) {
  return pieceOf(cut.size, cut.sharding->pieceIndex(cut.dim, rank), cut.sharding->pieces(cut.dim));
}

/// Index of the piece among `axesOfDim` at coordinates `at` of `axes`.
int64_t pieceAt(const std::vector<int32_t> &axesOfDim, const std::vector<int64_t> &axes,
                const std::vector<int64_t> &at) {
  int64_t piece = 0;
  for (int32_t axis : axesOfDim)
    piece = piece * axes[axis] + at[axis];
  return piece;
}

int64_t product(const std::vector<int64_t> &axes, const std::vector<int32_t> &which) {
  int64_t result = 1;
  for (int32_t axis : which)
    result *= axes[axis];
  return result;
}

/// Calls `holds` for all coordinates on the axes in `lists`; the others stay 0. Stops at the first false.
Proof forAllCoordinates(const std::vector<int64_t> &axes,
                        std::initializer_list<const std::vector<int32_t> *> lists,
                        const std::function<bool(const std::vector<int64_t> &)> &holds) {
  std::set<int32_t> used;
  for (const std::vector<int32_t> *list : lists)
    used.insert(list->begin(), list->end());
  std::vector<int32_t> moving(used.begin(), used.end());
  int64_t count = product(axes, moving);
  if (count > workLimit)
    return Proof::Unknown;
  std::vector<int64_t> at(axes.size(), 0);
  for (int64_t step = 0; step < count; ++step) {
    if (!holds(at))
      return Proof::No;
    for (size_t i = moving.size(); i-- > 0;) {
      if (++at[moving[i]] < axes[moving[i]])
        break;
      at[moving[i]] = 0;
    }
  }
  return Proof::Yes;
}

/// Does it hold for all ranks, if it is the same for those that hold the same pieces of `a` and of `b`?
Proof forAllRanks(const Sharding &a, const Sharding &b, const std::function<bool(int64_t)> &holds) {
  if (a.devices() > workLimit)
    return Proof::Unknown;
  RankClasses classes(a.devices());
  classes.addPieces(a);
  classes.addPieces(b);
  for (int64_t rank : classes.ranks())
    if (!holds(rank))
      return Proof::No;
  return Proof::Yes;
}

bool isWithin(const Range &inner, const Range &outer) {
  return inner.size() == 0 || (inner.begin >= outer.begin && inner.end <= outer.end);
}

/// Both dimensions over a common refinement, `compare` on their ranges for all coordinates; per rank if there is none.
Proof compareRanges(const CutDimension &a, const CutDimension &b, bool prefixSuffices,
                    const std::function<bool(const Range &, const Range &)> &compare) {
  auto refined = commonRefinement({&a.sharding->axes, &b.sharding->axes});
  if (!refined)
    return forAllRanks(*a.sharding, *b.sharding,
                       [&](int64_t rank) { return compare(rangeOf(a, rank), rangeOf(b, rank)); });
  std::vector<int32_t> listA = refineAxes(a.sharding->axes, a.sharding->dims[a.dim], *refined);
  std::vector<int32_t> listB = refineAxes(b.sharding->axes, b.sharding->dims[b.dim], *refined);
  bool prefix = listB.size() <= listA.size() && std::equal(listB.begin(), listB.end(), listA.begin());
  if (a.size == b.size && prefix && (prefixSuffices || listA.size() == listB.size()))
    return Proof::Yes;
  int64_t piecesA = product(*refined, listA), piecesB = product(*refined, listB);
  return forAllCoordinates(*refined, {&listA, &listB}, [&](const std::vector<int64_t> &at) {
    return compare(pieceOf(a.size, pieceAt(listA, *refined, at), piecesA),
                   pieceOf(b.size, pieceAt(listB, *refined, at), piecesB));
  });
}

/// The piece, of `pieces` of a dimension of size `size`, that holds `index`.
int64_t pieceHolding(int64_t size, int64_t pieces, int64_t index) {
  auto guess = static_cast<int64_t>((static_cast<__int128>(index) * pieces + pieces - 1) / size);
  guess = std::clamp<int64_t>(guess, 0, pieces - 1);
  while (guess > 0 && pieceOf(size, guess, pieces).begin > index)
    --guess;
  while (pieceOf(size, guess, pieces).end <= index)
    ++guess;
  return guess;
}

/// One dimension of coveredByGroup, over refined axes: `isFree[axis]` is true for axes of the group.
Proof coveredInDimension(int64_t size, const std::vector<int32_t> &target, std::vector<int32_t> source,
                         const std::vector<int64_t> &axes, const std::vector<bool> &isFree) {
  // The pieces along free innermost axes join to one coarser piece, which some member of the group holds.
  while (!source.empty() && isFree[source.back()])
    source.pop_back();
  bool prefix = source.size() <= target.size() && std::equal(source.begin(), source.end(), target.begin());
  if (prefix)
    return Proof::Yes;
  int64_t piecesTarget = product(axes, target), piecesSource = product(axes, source);
  int64_t work = 0;
  Proof proof = forAllCoordinates(axes, {&target, &source}, [&](const std::vector<int64_t> &at) {
    Range needed = pieceOf(size, pieceAt(target, axes, at), piecesTarget);
    while (needed.size() > 0 && ++work <= workLimit) {
      int64_t piece = pieceHolding(size, piecesSource, needed.begin);
      needed.begin = pieceOf(size, piece, piecesSource).end;
      for (size_t i = source.size(); i-- > 0; piece /= axes[source[i]])
        if (!isFree[source[i]] && piece % axes[source[i]] != at[source[i]])
          return false;
    }
    return true;
  });
  return proof == Proof::Yes && work > workLimit ? Proof::Unknown : proof;
}

/// coveredByGroup without a common refinement: by rank and member. Values that are partial are not compared this way.
Proof coveredByEnumeration(const Sharding &target, const Sharding &source, const std::vector<int64_t> &shape,
                           const std::vector<int64_t> &matrix, const std::vector<int32_t> &axesOfGroup) {
  if (target.isPartial() || source.isPartial())
    return Proof::No;
  int64_t devices = source.devices(), members = product(matrix, axesOfGroup);
  if (members == devices)
    return Proof::Yes;
  if (devices > workLimit / members)
    return Proof::Unknown;
  for (int64_t rank = 0; rank < devices; ++rank) {
    Box needed = target.localBox(shape, rank);
    int64_t missing = elementCount(needed);
    std::set<int64_t> owners; // replicas count once
    for (int64_t member : groupOf(matrix, axesOfGroup, rank))
      if (owners.insert(source.ownerOf(member)).second)
        missing -= elementCount(intersect(needed, source.localBox(shape, member)));
    if (missing != 0)
      return Proof::No;
  }
  return Proof::Yes;
}

} // namespace

std::optional<std::vector<int64_t>> commonRefinement(std::initializer_list<const std::vector<int64_t> *> matrices) {
  if (std::ranges::all_of(matrices, [&](const auto *matrix) {
        return *matrix == **matrices.begin() && std::ranges::find(*matrix, 1) == matrix->end();
      }))
    return **matrices.begin();
  // The strides of all axes; they must divide each other.
  std::vector<int64_t> strides;
  for (const std::vector<int64_t> *matrix : matrices) {
    int64_t stride = 1;
    for (size_t i = matrix->size(); i-- > 0;)
      strides.push_back(stride *= (*matrix)[i]);
  }
  std::sort(strides.begin(), strides.end());
  std::vector<int64_t> refined;
  int64_t inner = 1;
  for (int64_t stride : strides) {
    if (stride % inner != 0)
      return std::nullopt;
    if (stride != inner)
      refined.push_back(stride / inner);
    inner = stride;
  }
  std::reverse(refined.begin(), refined.end());
  return refined;
}

namespace {

/// Which neighbours in a refinement make up each axis of a device matrix.
class RefinedAxes {
public:
  RefinedAxes(const std::vector<int64_t> &matrix, const std::vector<int64_t> &refined)
      : isSame(matrix == refined), begin(isSame ? 0 : matrix.size() + 1) {
    if (isSame)
      return;
    auto next = static_cast<int32_t>(refined.size());
    begin.back() = next;
    for (size_t i = matrix.size(); i-- > 0; begin[i] = next)
      for (int64_t left = matrix[i]; left > 1; left /= refined[next])
        --next;
  }

  std::vector<int32_t> of(const std::vector<int32_t> &axes) const {
    if (isSame)
      return axes;
    std::vector<int32_t> result;
    for (int32_t axis : axes)
      for (int32_t part = begin[axis]; part < begin[axis + 1]; ++part)
        result.push_back(part);
    return result;
  }

private:
  bool isSame;
  std::vector<int32_t> begin; ///< of each axis, and where the last one ends
};

} // namespace

std::vector<int32_t> refineAxes(const std::vector<int64_t> &matrix, const std::vector<int32_t> &axesOfMatrix,
                                const std::vector<int64_t> &refined) {
  return RefinedAxes(matrix, refined).of(axesOfMatrix);
}

Sharding refine(const Sharding &sharding, const std::vector<int64_t> &refined) {
  const RefinedAxes parts(sharding.axes, refined);
  Sharding result;
  result.axes = refined;
  result.dims.reserve(sharding.dims.size());
  for (const std::vector<int32_t> &dim : sharding.dims)
    result.dims.push_back(parts.of(dim));
  for (const PartialAxis &partial : sharding.partial)
    for (int32_t axis : parts.of({partial.axis}))
      result.partial.push_back({axis, partial.kind});
  return result;
}

Proof sameRange(const CutDimension &a, const CutDimension &b) {
  return compareRanges(a, b, false, [](const Range &x, const Range &y) { return x == y; });
}

Proof rangeWithin(const CutDimension &inner, const CutDimension &outer) {
  return compareRanges(inner, outer, true, isWithin);
}

Proof boxWithin(const Sharding &inner, const Sharding &outer, const std::vector<int64_t> &shape) {
  Proof proof = Proof::Yes;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    proof = both(proof, rangeWithin({&inner, dim, shape[dim]}, {&outer, dim, shape[dim]}));
  return proof;
}

Proof coveredByGroup(const Sharding &target, const Sharding &source, const std::vector<int64_t> &shape,
                     const std::vector<int64_t> &matrix, const std::vector<int32_t> &axesOfGroup) {
  auto refined = commonRefinement({&target.axes, &source.axes, &matrix});
  if (!refined)
    return coveredByEnumeration(target, source, shape, matrix, axesOfGroup);
  Sharding to = refine(target, *refined), from = refine(source, *refined);
  if (to.partial != from.partial)
    return Proof::No;
  std::vector<bool> isFree(refined->size(), false);
  for (int32_t axis : refineAxes(matrix, axesOfGroup, *refined))
    isFree[axis] = true;
  // A term of a partial value is taken from ranks with the same coordinates on the partial axes.
  for (const PartialAxis &partial : to.partial)
    isFree[partial.axis] = false;
  Proof proof = Proof::Yes;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    proof = both(proof, coveredInDimension(shape[dim], to.dims[dim], from.dims[dim], *refined, isFree));
  return proof;
}

} // namespace msc
