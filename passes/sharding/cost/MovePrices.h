// What moves of values between shardings cost. A price is a lower bound at first, found in a few microseconds; it is made exact,
// by the reshard planner, when somebody needs it: a search looks at all pairs of shardings and takes few.
#pragma once

#include "dialects/dist/Reshard.h"
#include "dialects/dist/reshard/LowerBounds.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace msc::passes {

/// The steps that bring a value to all who want it, in this order, of each of them: it comes from the nearest sharding in which the value is
/// there by then, unless completing the value first is as fast, as `msc-plan-moves` does.
std::vector<std::vector<dist::ReshardStep>> planRoute(const Sharding &from, const std::vector<Sharding> &wanted,
                                                      const std::vector<int64_t> &shape, size_t elementBytes,
                                                      dist::ReshardPlanner &planner);

/// Of two gradients of a tensor; narrow ones are added in f32.
double sumUs(const MachineModel &machine, const std::vector<int64_t> &shape, size_t elementBytes, const Sharding &sharding);

/// The number of a price in its list.
using Price = int32_t;

class MovePrices {
public:
  /// Holds a reference.
  explicit MovePrices(dist::ReshardPlanner &planner) : planner(planner), bounds(planner.machine()) {}

  /// Of a value that stays where it is.
  static constexpr Price nothing = 0;

  int32_t numberOf(const Sharding &sharding) { return bounds.numberOf(sharding); }
  int32_t numberOfShape(const std::vector<int64_t> &shape) { return bounds.numberOfShape(shape); }

  /// Of a value on its way from one sharding to the other, by their numbers. `startShare`: of the time of starting collectives,
  /// what it pays: gradients that run in buckets share it. `mayHide`: it may run beside computation. `addedBytes`, of an element: of a sum of
  /// gradients, each of which pays a sum as it lies; one of them is not needed there, but where the sum comes to.
  Price of(int32_t from, int32_t to, int32_t shape, size_t elementBytes, double startShare = 1, bool mayHide = false, size_t addedBytes = 0);
  /// Of a value that several want, by planRoute.
  Price ofRoute(const Sharding &from, const std::vector<Sharding> &wanted, const std::vector<int64_t> &shape, size_t elementBytes);

  double us(Price price) const {
    const Entry &entry = prices[price];
    double us = sharesStarts ? entry.us : entry.us - entry.startsUs;
    us = entry.mayHide ? us * (1 - hidden) : us;
    return entry.sumsUs == 0 ? us : std::max(0.0, us + entry.sumsUs);
  }
  /// Which share of the time of what may run beside computation costs nothing, from 0 to 1; 0 at first.
  void hide(double share) { hidden = share; }
  /// Whether prices hold their share of what starting collectives takes, as they do at first; else nothing of it.
  void shareStarts(bool shares) { sharesStarts = shares; }
  /// The time of starting each collective in which something of a price runs that shares it, by the bucket in which all run that may
  /// start together. The price is exact.
  const std::vector<std::pair<int32_t, double>> &starts(Price price) const {
    static const std::vector<std::pair<int32_t, double>> none;
    const auto known = startsOf.find(price);
    return known == startsOf.end() ? none : known->second;
  }
  bool isExact(Price price) const { return prices[price].isExact; }
  /// How many are not.
  int64_t inexact() const { return bounded; }
  void makeExact(Price price);
  /// From now on the same move of all values becomes exact with it: of a large network a look at bounds takes longer than that.
  void spread() { isSpread = true; }

  /// Prices asked for the same value, in the same way, are of one context.
  int32_t contextOf(Price price) const { return prices[price].context; }
  size_t contextCount() const { return contexts.size(); }
  /// In which prices became exact since the last call.
  std::vector<int32_t> takeChanged();

private:
  /// What all prices have in common that are asked for the same value.
  struct Context {
    int32_t shape = 0;
    size_t elementBytes = 4;
    double startShare = 1;
    bool mayHide = false;
    size_t addedBytes = 0;
    bool operator==(const Context &) const = default;
  };
  /// There are many of them, and every look at a network reads them all: small.
  struct Entry {
    double us = 0;
    double startsUs = 0; ///< its share of what starting takes, once the price is exact
    double sumsUs = 0;   ///< of gradients, what their sums take here beyond what each of them pays; below 0, but no price is
    int32_t from = 0;
    int32_t to = 0;      ///< below 0: several, routes[-1 - to]
    int32_t context = 0;
    bool isExact = true, mayHide = false;
  };
  using Bucket = std::tuple<MoveKind, std::vector<int64_t>, std::vector<int32_t>, size_t>; ///< a group, and bytes of an element

  int32_t numberOfContext(const Context &context);
  void noteChange(int32_t context);
  void makeThisExact(Price price);
  double sumsUs(const Entry &entry) const;
  std::span<const int32_t> wantedOf(const Entry &entry) const {
    return entry.to < 0 ? std::span<const int32_t>(routes[-1 - entry.to]) : std::span(&entry.to, 1);
  }
  double exactUs(const Entry &entry) const;
  double bucketUs(Price price);
  Price add(int32_t from, int32_t to, int32_t context);

  dist::ReshardPlanner &planner;
  dist::LowerBounds bounds;
  std::vector<Entry> prices{{}};
  int64_t bounded = 0; ///< of these, bounds
  std::vector<std::vector<int32_t>> routes;
  std::unordered_map<Price, std::vector<std::pair<int32_t, double>>> startsOf; ///< of those that share some
  double hidden = 0;
  bool sharesStarts = true;
  bool isSpread = false;
  std::map<Bucket, int32_t> buckets;
  std::vector<Context> contexts;
  std::vector<char> isChanged; ///< of each
  std::vector<int32_t> changed; ///< of these
  int32_t lastContext = 0; ///< the one that was asked for last
  std::vector<llvm::DenseMap<std::pair<int32_t, int32_t>, Price>> known; ///< of each context: by from and to
};

} // namespace msc::passes
