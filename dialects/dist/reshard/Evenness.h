// What is left of a bound on what crosses the borders of units where pieces are not alike.
//
// Where collectives are staged, their time is made of what the busiest rank receives, R, as if all pieces were alike: groups of n ranks,
// g of them in a unit, bring a unit R (n - g) / (n - 1) from outside. What a unit lacks of the goal cannot shrink by more than so much
// for each such step, times a factor; `ofPieces` and `ofShares` are its inverses, for two ways to count what a unit lacks.
#pragma once

#include <cstdint>
#include <vector>

namespace msc::dist {

struct Evenness {
  /// What lacks is counted in elements. 1 where all dimensions are cut evenly. Else at least 1 / 2: after an AllGather of W elements
  /// R >= W (1 - 1 / n), since somebody holds the n-th part of them at most, and no unit received more than W; after an AlltoAll no unit
  /// received more than g R; (n - g) / n >= 1 / 2 where there is a unit outside. All else is priced as if everything came from outside.
  double ofPieces = 1;
  /// What lacks is counted in shares of the tensor as if it could be cut anywhere, from a state to a goal without empty pieces; 0:
  /// nothing is known. There all ranks of an AllGather or an AlltoAll receive the same. How much less the busiest one may receive in
  /// truth:
  ///
  /// One uneven dimension. AllGather: nothing, the ranks of a group receive so much on the average. AlltoAll: nothing, since one of the
  /// two dimensions is even, so that the largest factor of the other counts. Exchange, CollectivePermute: some rank wants a smallest
  /// piece and lacks it wherever an even one would be lacking.
  ///
  /// Powers of two that divide the number of ranks, of which any two have a product no smaller than it: nothing. In a sharding one of
  /// them at most is cut into more pieces than it has elements. In an AlltoAll from one such dimension of size a to another of size b,
  /// cut into X n and Y before, X and Y n after, X = a and Y = b is ruled out by n >= 2: a piece of a / X >= 2 elements, of which no
  /// rank held more than one, goes to a rank that wants one of b, or the reverse, where half an element at most is wanted on the average.
  ///
  /// Besides, dimensions of which every piece has k elements or more, k >= 8: the share 2 / k. On both sides of a step sizes differ by one.
  ///
  /// States on the way may have empty pieces. That none of these gets round the bound is tested (LowerBoundsTest), not proven.
  double ofShares = 1;

  Evenness(const std::vector<int64_t> &shape, int64_t ranks);
};

} // namespace msc::dist
