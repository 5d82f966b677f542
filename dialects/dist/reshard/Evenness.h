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
  /// `ofPieces` proves: some unit lacks so many elements in truth, and at least half of what crosses its border is priced.
  ///
  /// Size 1, or powers of two that divide the number of ranks, of which any two have a product no smaller than it: nothing. In a sharding
  /// one of them at most is cut into more pieces than it has elements. Axes count as split into axes of 2. A state in which a dimension
  /// of size a is cut into P > a pieces is read as if only its first axes cut it, those of product a: ranks hold no less then, and start
  /// and goal are as they were. No step brings a unit more than is priced, read so. Slice, ReduceScatter: nothing. CollectivePermute:
  /// nothing if the first axes stay, else some rank lacks its whole piece of one element. Exchange: ranks held no less and want the
  /// same. AllGather and AlltoAll from a dimension with empty pieces, among n = r d ranks, g = r' d' of them in a unit, the r along first
  /// axes and the d along others: some rank held nothing and receives all it wants, W; of that a unit lacks W (1 - r' / r), which is
  /// no more than W (n - g) / (n - 1). AlltoAll to one: whoever gets an element receives what he would if all were even. AlltoAll from one
  /// to another, of which e of the n ranks lie along others: if d > e some rank that gets an element held none, as before. Else
  /// r - 1 are received, and the d' or more ranks of a unit that differ along others want the same: it lacks (r - r') g / d' of them at
  /// most, no more than g (r - 1) (n - g) / (n - 1).
  ///
  /// Besides, dimensions of which every piece has k elements or more, k >= 8: the share 2 / k. On both sides of a step sizes differ by one.
  double ofShares = 1;

  Evenness(const std::vector<int64_t> &shape, int64_t ranks);
};

} // namespace msc::dist
