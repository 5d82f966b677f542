#include "dialects/dist/reshard/Evenness.h"

#include <algorithm>
#include <bit>

namespace msc::dist {

static bool isPowerOfTwo(int64_t size) { return std::has_single_bit(static_cast<uint64_t>(size)); }

/// The smallest piece as a share of the average one, of pieces that all have elements; their number divides that of the ranks.
static double leastPiece(int64_t size, int64_t ranks) {
  double least = 1;
  for (int64_t pieces = 2; pieces <= std::min(size, ranks); ++pieces)
    if (ranks % pieces == 0)
      least = std::min(least, static_cast<double>(size / pieces * pieces) / static_cast<double>(size));
  return least;
}

Evenness::Evenness(const std::vector<int64_t> &shape, int64_t ranks) {
  std::vector<int64_t> uneven;
  for (int64_t size : shape) {
    if (size % ranks == 0)
      continue;
    const int64_t least = size / ranks; // elements of the smallest piece
    ofPieces *= static_cast<double>(least) / static_cast<double>(least + 1);
    if (least >= 8)
      ofShares *= 1 - 2 / static_cast<double>(least);
    else if (!isPowerOfTwo(ranks) || !isPowerOfTwo(size) ||
             std::ranges::any_of(uneven, [&](int64_t other) { return other * size < ranks; }))
      ofShares = 0;
    uneven.push_back(size);
  }
  ofPieces = std::max(ofPieces, 0.5);
  if (uneven.size() == 1) {
    const bool mayMoveForNothing = uneven[0] > 1 && 2 * uneven[0] <= ranks; // in states with empty pieces
    ofShares = std::max(ofShares, leastPiece(uneven[0], ranks) * (mayMoveForNothing ? 0.5 : 1));
  }
}

} // namespace msc::dist
