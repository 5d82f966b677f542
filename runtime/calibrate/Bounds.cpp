#include "runtime/calibrate/Bounds.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

namespace msc {
namespace {

using Costs = std::array<LinkCost, moveKinds>;

const LinkCost &costOf(const Costs &costs, MoveKind kind) { return costs[static_cast<size_t>(kind)]; }
LinkCost &costOf(Costs &costs, MoveKind kind) { return costs[static_cast<size_t>(kind)]; }

/// Bytes that a collective receives with a tensor of which an AllGather among `members` receives one byte.
double receivedOf(MoveKind kind, int64_t members) {
  return kind == MoveKind::AllReduce ? 2 : kind == MoveKind::AlltoAll ? 1 / static_cast<double>(members) : 1;
}

/// Time of the bytes alone, with a tensor of which an AllGather receives `gathered` bytes.
double bytesUs(const Costs &costs, MoveKind kind, int64_t members, double gathered) {
  LinkCost cost = costOf(costs, kind);
  cost.alphaUs = cost.hopUs = 0;
  return cost.us(members, gathered * receivedOf(kind, members));
}

/// The least time of the bytes of `bounds` as a share of those of `kind`, over groups and sizes. Between the sizes at which a
/// cache is full all times are linear, so their ratio is least at one of these, or at the ends.
double leastRatio(const Costs &costs, std::initializer_list<MoveKind> bounds, MoveKind kind) {
  constexpr int64_t mostMembers = 1024;
  constexpr double smallest = 1, largest = 1e18;
  std::vector<MoveKind> all(bounds);
  all.push_back(kind);
  double least = INFINITY;
  for (int64_t members = 2; members <= mostMembers; ++members) {
    std::vector<double> sizes{smallest, largest};
    for (MoveKind filling : all) {
      const LinkCost &cost = costOf(costs, filling);
      sizes.push_back(cost.cacheBytes / receivedOf(filling, members) /
                      (1 + cost.ownShare / static_cast<double>(members - 1)));
    }
    for (double size : sizes) {
      double us = bytesUs(costs, kind, members, size), bound = 0;
      for (MoveKind part : bounds)
        bound += bytesUs(costs, part, members, size);
      if (us > 0)
        least = std::min(least, bound / us);
    }
  }
  return least;
}

/// Six significant digits, not more than `value`.
double roundedDown(double value) {
  if (value == 0)
    return 0;
  double digits = std::pow(10, 5 - std::floor(std::log10(value)));
  return std::floor(value * digits) / digits;
}

void limit(LinkCost &cost, double alphaUs, double hopUs, double ratio) {
  cost.alphaUs = std::min(cost.alphaUs, alphaUs);
  cost.hopUs = std::min(cost.hopUs, hopUs);
  for (double *term : {&cost.betaUsPerByte, &cost.beyondCacheUsPerByte})
    if (ratio < 1)
      *term = roundedDown(*term * ratio);
}

} // namespace

void keepBounds(Costs &costs) {
  LinkCost &reduce = costOf(costs, MoveKind::AllReduce), &scatter = costOf(costs, MoveKind::ReduceScatter);
  const LinkCost &gather = costOf(costs, MoveKind::AllGather);
  static constexpr std::initializer_list<MoveKind> scatterAndGather = {MoveKind::ReduceScatter, MoveKind::AllGather};
  limit(costOf(costs, MoveKind::AlltoAll), gather.alphaUs, gather.hopUs,
        leastRatio(costs, {MoveKind::AllGather}, MoveKind::AlltoAll));
  limit(reduce, scatter.alphaUs + gather.alphaUs, scatter.hopUs + gather.hopUs,
        leastRatio(costs, scatterAndGather, MoveKind::AllReduce));
  limit(scatter, reduce.alphaUs, reduce.hopUs, leastRatio(costs, {MoveKind::AllReduce}, MoveKind::ReduceScatter));
  // A cheaper ReduceScatter may leave an AllReduce too dear at other sizes: then both take the time of the AllReduce.
  constexpr double rounding = 1e-12;
  if (leastRatio(costs, scatterAndGather, MoveKind::AllReduce) >= 1 - rounding)
    return;
  scatter.betaUsPerByte = 2 * reduce.betaUsPerByte;
  scatter.ownShare = reduce.ownShare;
  scatter.cacheBytes = reduce.cacheBytes / 2;
  scatter.beyondCacheUsPerByte = 2 * reduce.beyondCacheUsPerByte;
}

} // namespace msc
