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
  /// truth, the states on the way being any, also with empty pieces (a dimension of size a in P > a pieces):
  ///
  /// One uneven dimension: the smallest piece as a share of the average one, of states without empty pieces. AllGather: nothing, all
  /// ranks together receive so much on the average. AlltoAll: nothing, since one of the two dimensions is even, so that the largest
  /// factor of the other counts. Exchange: if one list of each dimension starts with the other, the average again; else some rank is in
  /// the first part of what it wants and in the last of what it holds, lacks all, and the goal has no empty pieces. CollectivePermute:
  /// the same; with empty pieces a piece has one element, no less than the average, and whoever wants the last piece has one. Unless only
  /// this dimension changes and every rank that wants an element holds it: then nothing is received, though shares move. Let h be the first
  /// axis in which the lists differ. It weighs more in the one before than in the one after: of ranks that differ along h only, one at most
  /// has equal numbers of pieces. So half of the pieces are empty at least, 2 a <= P. If 2 a <= ranks, only half is claimed, which
  /// `ofPieces` proves: some unit lacks so many elements in truth, and what crosses its border is half of what is priced at least.
  ///
  /// Size 1, or powers of two that divide the number of ranks, of which any two have a product no smaller than it: nothing. In a sharding
  /// one of them at most is cut into more pieces than it has elements; axes count as split into axes of 2. Read a state with a dimension
  /// in P > a pieces as if only its first axes, of product a, cut it: ranks hold no less, and start and goal are as they are. No step then
  /// brings a unit more than it is priced. Slice, ReduceScatter: nothing comes. CollectivePermute: nothing comes if the first axes
  /// stay; else, as above, some rank lacks its whole piece, of one element. Exchange: ranks hold no less, want the same. AllGather out of it,
  /// of n = r d members, g = r' d' of them in a unit, where the r are among the first axes: some rank has an empty piece and receives the
  /// whole W; the unit lacks W (1 - r' / r) <= W (n - g) / (n - 1). AlltoAll out of it: likewise. AlltoAll into it: some rank gets one
  /// element and the right share of the other dimension. Out of one, into another, also e = Y n / b of them empty for one that is not: if d > e
  /// some rank has an element after and an empty piece before, and receives all r; if not, r - 1, and all d' ranks that differ in the last axes want
  /// the same: the unit lacks (r - r') g / d' <= g (r - 1) (n - g) / (n - 1).
  ///
  /// Besides, dimensions of which every piece has k elements or more, k >= 8: the share 2 / k. On both sides of a step sizes differ by one.
  double ofShares = 1;

  Evenness(const std::vector<int64_t> &shape, int64_t ranks);
};

} // namespace msc::dist
