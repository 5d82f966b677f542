// How much of what a rank wants it does not hold, counted by the axes that cut the dimensions instead of rank by rank.
//
// The busiest rank wants W elements, the product over the dimensions of the sizes of its pieces, and holds C of them,
// the product of what its pieces have in common; W - C is to be the most. Dimensions whose pieces are all alike, or are
// the same on both sides, are factors. In the others a piece of floor-splits has few sizes, but which of them meet on
// one rank depends on the axes that two dimensions share: the coordinates on their axes are looked through, until the
// sizes that would be worst have met.
#pragma once

#include "dialects/dist/AxisLists.h"

#include <memory>

namespace msc::dist {

/// Questions about one tensor over one device matrix. Holds no reference to its arguments.
class Lacking {
public:
  /// At most mostAxes axes and mostDims dimensions.
  Lacking(std::vector<int64_t> axes, std::vector<int64_t> shape) : axes(std::move(axes)), shape(std::move(shape)) {}

  /// Elements that the busiest rank wants and does not hold.
  int64_t most(const AxisLists &held, const AxisLists &wanted);
  /// The same or less, from one rank: exact where all pieces of a dimension are alike.
  int64_t atLeast(const AxisLists &held, const AxisLists &wanted);
  /// Elements of the largest shard.
  int64_t capacity(const AxisLists &lists);

private:
  /// A dimension in `count` pieces of `smallest` elements, or one more where there is a rest. Where pieces start is listed only to look
  /// through all coordinates: most questions are settled without that, and there may be a million pieces.
  struct Pieces {
    int64_t count, smallest, rest;
    mutable std::vector<int64_t> starts; ///< of each piece, and the end; empty: not listed
    void listStarts() const;
    /// floor(piece size / count).
    int64_t startOf(int64_t piece) const { return starts.empty() ? piece * smallest + piece * rest / count : starts[piece]; }
    int64_t largest() const { return smallest + (rest != 0); }
  };
  /// A dimension whose pieces differ from rank to rank.
  struct Uneven {
    size_t dim;
    const AxisList *held, *wanted;
    bool nested; ///< the axes of one side are the first ones of the other
    const Pieces *heldPieces, *wantedPieces;
  };
  struct Question {
    int64_t wanted = 1, common = 1; ///< factors of dimensions whose pieces are alike
    int64_t both = 1;               ///< factor of W and of C
    size_t count = 0;               ///< of uneven dimensions
    bool settled = false;
    int64_t answer = 0; ///< where settled
  };
  /// Where a rank is: its pieces of the uneven dimensions.
  struct Place {
    std::array<int64_t, mostDims> held, wanted;
  };

  void ask(const AxisLists &held, const AxisLists &wanted);
  void addDimension(size_t dim, const AxisList &held, const AxisList &wanted);
  void settle();
  void listStarts() const;
  int64_t atMost() const;
  int64_t lackingOfFirstWhereFree() const;
  int64_t lackingOfLast() const;
  int64_t lookThrough(int64_t least, int64_t most) const;
  int64_t lackingAt(const Place &place) const;
  int64_t pieceAt(const AxisList &list, uint32_t last) const;
  size_t evenPrefix(const Uneven &uneven) const;
  const Pieces &piecesOf(size_t dim, int64_t count) {
    const Pieces *&recent = recents[dim][static_cast<uint64_t>(count) * 0x9E3779B97F4A7C15ull >> 60];
    if (!recent || recent->count != count)
      recent = &findPieces(dim, count);
    return *recent;
  }
  const Pieces &findPieces(size_t dim, int64_t count);

  std::vector<int64_t> axes, shape;
  Question question; ///< that was asked last
  std::array<Uneven, mostDims> dims;
  std::array<std::vector<std::unique_ptr<Pieces>>, mostDims> known; ///< by dimension
  std::array<std::array<const Pieces *, 16>, mostDims> recents{}; ///< of these, by dimension and a hash of their number
};

} // namespace msc::dist
