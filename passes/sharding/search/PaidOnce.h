// The joint choice of several readers of one value, each item being paid once: a small branch and bound.
#pragma once

#include "passes/sharding/search/Factor.h"

#include <algorithm>

namespace msc::search {

/// Minimises, over one item set per reader, the readers' own costs plus the prices of all items that are asked for.
class PaidOnce {
public:
  static constexpr int64_t manyBranches = int64_t(1) << 22;

  /// `readers`: positions in `form.itemsOf`; they choose, the others are given.
  PaidOnce(const SharedForm &form, std::vector<size_t> readers);

  /// The producer is in this class and these items (sorted, distinct) are asked for anyway.
  void setContext(int32_t producer, const std::vector<int32_t> &asked);

  /// With these prices no choice costs less than the sum, over the readers, of the least of own[i][c] +
  /// sharedPrices(i)[c], and pricesGiven().
  const std::vector<double> &sharedPrices(size_t i) const { return sharedPrice[i]; }
  double pricesGiven() const { return given; }

  /// Hubs: item sets of which one is paid as a whole, and every reader pays what its own set has beyond it. The
  /// cheapest such sum is never too low. It is the minimum for up to three readers with at most one item of each of two
  /// kinds: at most one item of a kind is shared, by two readers or more, and two such groups have a reader in common.
  bool hubsAreExact() const { return hubExact; }
  /// Price of each hub.
  const std::vector<double> &hubPrices() const { return hubPrice; }
  /// costs[row][hub]: the least of reader i's own costs and of the prices of its items that are not in the hub, for `count` rows from
  /// `first` on of `rows` rows of own costs, given as own[class][row]. Only where hubs are exact.
  void hubCosts(size_t i, const double *own, size_t rows, size_t first, size_t count, std::vector<double> &costs);

  /// own[i][c]: what reader i pays itself with item set c. `classes`, if given, takes the item sets that were chosen. Branching goes
  /// through at most so many of them (readers with sets that differ little make it long); isCut(): there may be cheaper ones, but none
  /// below bound(). Without `classes`: what costs `below` or more is not looked for, and that or a bound above it is returned instead.
  double cheapest(const std::vector<const double *> &own, std::vector<int32_t> *classes = nullptr, int64_t mostBranches = manyBranches,
                  double below = infinity);
  /// After cheapest().
  bool isCut() const { return branches > mostBranches; }
  double bound() const { return given + (isCut() ? std::min(restLeast[0], bestCost) : bestCost); }
  int64_t branchesTaken() const { return branches; }

private:
  void findHubs();
  void chooseHub(const std::vector<const double *> &own);
  double bounds(const std::vector<const double *> &own);
  void descend(const std::vector<const double *> &own, size_t start);
  double marginal(size_t reader, int32_t c) const;
  void ask(size_t reader, int32_t c, int by);
  void filter(const std::vector<const double *> &own);
  void branch(const std::vector<const double *> &own, size_t depth, double paid, double shared);
  double total(const std::vector<const double *> &own);

  const SharedForm &form;
  std::vector<size_t> readers;
  std::vector<double> share;                    // of each item: 1 / how many readers may ask for it
  std::vector<double> prices;                   // of each item, in this context
  double given = 0;                             // price of what is asked for anyway
  std::vector<std::vector<double>> sharedPrice; // [reader][class]: prices * share
  std::vector<int32_t> askedBy;                 // of each item
  std::vector<double> least;                    // of each reader, with shared prices
  std::vector<double> restLeast, restOwn;       // sums over this reader and those behind it
  std::vector<double> nothing;
  bool hubExact = false;
  std::vector<std::vector<int32_t>> hubs;     // item sets, distinct
  std::vector<std::vector<int32_t>> hubClass; // [reader][hub]: the class with the same items, or -1
  std::vector<double> hubPrice;
  std::vector<double> withItem;                 // of some of hubCosts' rows: [item][row]
  std::vector<char> isAsked;                    // of each item
  std::vector<std::vector<int32_t>> candidates; // of each reader: classes that may be in a better answer
  std::vector<int32_t> current, best;
  double bestCost = 0;
  int64_t branches = 0, mostBranches = 0;
};

} // namespace msc::search
