#include "passes/sharding/cost/MovePrices.h"

#include <algorithm>
#include <bit>

namespace msc::passes {

/// What is completed cannot become partial again.
static bool reaches(const Sharding &from, const Sharding &to) { return !to.isPartial() || from.partial == to.partial; }

std::vector<std::vector<dist::ReshardStep>> planRoute(const Sharding &from, const std::vector<Sharding> &wanted,
                                                      const std::vector<int64_t> &shape, size_t elementBytes,
                                                      dist::ReshardPlanner &planner) {
  std::vector<std::vector<dist::ReshardStep>> route;
  std::vector<Sharding> there{from};
  for (const Sharding &target : wanted) {
    size_t source = 0;
    double best = planner.us(from, target, shape, elementBytes);
    for (size_t i = 1; i < there.size(); ++i)
      if (reaches(there[i], target))
        if (double us = planner.us(there[i], target, shape, elementBytes); us < best) {
          source = i;
          best = us;
        }
    route.push_back(planner.plan(Sharding(there[source]), target, shape, elementBytes));
    for (const dist::ReshardStep &made : route.back())
      there.push_back(made.after);
  }
  return route;
}

size_t MovePrices::Hash::operator()(const Question &question) const {
  uint64_t hash = static_cast<uint64_t>(question.from) << 32 | static_cast<uint32_t>(question.to);
  hash = (hash ^ hash >> 31) * 0x9E3779B97F4A7C15ull;
  hash ^= static_cast<uint64_t>(question.shape) << 8 ^ static_cast<uint64_t>(question.bytes) ^ std::bit_cast<uint64_t>(question.startShare) ^ question.mayHide;
  hash *= 0xBF58476D1CE4E5B9ull;
  return hash ^ hash >> 29;
}

Price MovePrices::add(Entry entry) {
  for (int32_t to : entry.wanted)
    entry.us = std::max(entry.us, bounds.us(entry.from, to, entry.shape, entry.elementBytes, entry.startShare));
  entry.isExact = false;
  prices.push_back(std::move(entry));
  auto price = static_cast<Price>(prices.size() - 1);
  if (prices[price].us == 0) // a slice, or nothing is known
    makeExact(price);
  return price;
}

Price MovePrices::of(int32_t from, int32_t to, int32_t shape, size_t elementBytes, double startShare, bool mayHide) {
  if (from == to)
    return nothing;
  auto [at, isNew] = known.try_emplace({from, to, shape, static_cast<int32_t>(elementBytes), startShare, mayHide});
  if (isNew)
    at->second = add({.shape = shape, .from = from, .wanted = {to}, .elementBytes = elementBytes, .startShare = startShare, .mayHide = mayHide});
  return at->second;
}

Price MovePrices::ofRoute(const Sharding &from, const std::vector<Sharding> &wanted, const std::vector<int64_t> &shape,
                          size_t elementBytes) {
  int32_t start = numberOf(from), tensor = numberOfShape(shape);
  if (wanted.empty())
    return nothing;
  if (wanted.size() == 1)
    return of(start, numberOf(wanted.front()), tensor, elementBytes);
  Entry entry{.shape = tensor, .from = start, .elementBytes = elementBytes};
  for (const Sharding &target : wanted)
    entry.wanted.push_back(numberOf(target));
  return add(std::move(entry));
}

void MovePrices::makeExact(Price price) {
  if (prices[price].isExact)
    return;
  prices[price].us = exactUs(prices[price]);
  prices[price].isExact = true;
}

double MovePrices::exactUs(Entry &entry) {
  if (entry.startShare < 1)
    return bucketUs(entry);
  std::vector<Sharding> wanted;
  for (int32_t target : entry.wanted)
    wanted.push_back(bounds.sharding(target));
  double us = 0;
  for (const auto &steps : planRoute(bounds.sharding(entry.from), wanted, bounds.shape(entry.shape), entry.elementBytes, planner))
    us += dist::reshardUs(steps, entry.elementBytes, planner.machine());
  return us;
}

double MovePrices::bucketUs(Entry &entry) {
  double us = 0;
  for (const dist::ReshardStep &step : planner.plan(bounds.sharding(entry.from), bounds.sharding(entry.wanted.front()),
                                                    bounds.shape(entry.shape), entry.elementBytes)) {
    GroupShape group = groupShape(step.groupMatrix, step.groupAxes);
    double received = static_cast<double>(step.receivedElements) * static_cast<double>(entry.elementBytes);
    us += planner.machine().moveUs(step.kind, group, received);
    if (step.kind == MoveKind::Slice)
      continue;
    const double start = planner.machine().moveUs(step.kind, group, 0);
    us -= (1 - entry.startShare) * start;
    entry.startsUs += entry.startShare * start;
    const Bucket bucket{step.kind, step.groupMatrix, step.groupAxes, entry.elementBytes};
    entry.starts.emplace_back(buckets.try_emplace(bucket, static_cast<int32_t>(buckets.size())).first->second, start);
  }
  return us;
}

} // namespace msc::passes
