#include "passes/sharding/cost/MovePrices.h"

#include <algorithm>
#include <utility>

namespace msc::passes {

/// What is completed cannot become partial again.
static bool reaches(const Sharding &from, const Sharding &to) { return !to.isPartial() || from.partial == to.partial; }

namespace {
struct Route {
  std::vector<std::vector<dist::ReshardStep>> steps; ///< to each target
  double us = 0;
};
} // namespace

static Sharding completedOf(const Sharding &from) {
  Sharding completed = from;
  completed.partial.clear();
  return completed.canonical();
}

/// Each target from the nearest sharding in which the value is there by then; where some read it as it is completed, that comes first.
static Route routeFromNearest(const Sharding &from, const std::vector<Sharding> &wanted, const std::vector<int64_t> &shape, size_t elementBytes,
                              dist::ReshardPlanner &planner) {
  Route route{.steps = {wanted.size(), std::vector<dist::ReshardStep>()}};
  std::vector<Sharding> there{from};
  auto bring = [&](size_t i) {
    size_t source = 0;
    double best = planner.us(from, wanted[i], shape, elementBytes);
    for (size_t at = 1; at < there.size(); ++at)
      if (reaches(there[at], wanted[i]))
        if (double us = planner.us(there[at], wanted[i], shape, elementBytes); us < best) {
          source = at;
          best = us;
        }
    route.steps[i] = planner.plan(Sharding(there[source]), wanted[i], shape, elementBytes);
    route.us += best;
    for (const dist::ReshardStep &made : route.steps[i])
      there.push_back(made.after);
  };
  const size_t first = from.isPartial() ? std::ranges::find(wanted, completedOf(from)) - wanted.begin() : wanted.size();
  if (first < wanted.size())
    bring(first);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (i != first)
      bring(i);
  return route;
}

/// Completed first, and each target from there.
static Route routeFromCompleted(const Sharding &from, const std::vector<Sharding> &wanted, const std::vector<int64_t> &shape, size_t elementBytes,
                                dist::ReshardPlanner &planner) {
  const Sharding completed = completedOf(from);
  const std::vector<dist::ReshardStep> completion = dist::planCompletion(from, shape);
  Route route{.steps = {}, .us = dist::reshardUs(completion, elementBytes, planner.machine())};
  for (const Sharding &target : wanted) {
    route.steps.push_back(target == completed ? std::vector<dist::ReshardStep>() : planner.plan(completed, target, shape, elementBytes));
    route.us += target == completed ? 0 : planner.us(completed, target, shape, elementBytes);
  }
  route.steps.front().insert(route.steps.front().begin(), completion.begin(), completion.end());
  return route;
}

std::vector<std::vector<dist::ReshardStep>> planRoute(const Sharding &from, const std::vector<Sharding> &wanted,
                                                      const std::vector<int64_t> &shape, size_t elementBytes,
                                                      dist::ReshardPlanner &planner) {
  Route route = routeFromNearest(from, wanted, shape, elementBytes, planner);
  const bool arePartial = std::ranges::any_of(wanted, &Sharding::isPartial);
  if (from.isPartial() && !wanted.empty() && !arePartial)
    if (Route asIs = routeFromCompleted(from, wanted, shape, elementBytes, planner); route.us >= asIs.us * (1 - 1e-9))
      return std::move(asIs.steps);
  return std::move(route.steps);
}

double sumUs(const MachineModel &machine, const std::vector<int64_t> &shape, size_t elementBytes, const Sharding &sharding) {
  const auto count = static_cast<double>(elementCount(sharding.capacity(shape)));
  const auto bytes = static_cast<double>(elementBytes), wide = std::max(4.0, bytes);
  double us = machine.operatorUs(count, 2 * count * wide, count * wide, elementBytes == 8 ? Arithmetic::F64 : Arithmetic::F32);
  if (bytes < wide)
    us += 2 * machine.operatorUs(count, count * bytes, count * wide) + machine.operatorUs(count, count * wide, count * bytes);
  return us;
}

/// What a price holds of sums of gradients; below 0 where they lie whole. Partial ones are added as they were computed.
double MovePrices::sumsUs(const Entry &entry) const {
  const Context &of = contexts[entry.context];
  if (of.addedBytes == 0)
    return 0;
  auto ofSum = [&](int32_t number) {
    const Sharding &sharding = bounds.sharding(number);
    return sumUs(planner.machine(), bounds.shape(of.shape), sharding.isPartial() ? of.elementBytes : of.addedBytes, sharding);
  };
  return ofSum(entry.to) - ofSum(entry.from);
}

int32_t MovePrices::numberOfContext(const Context &context) {
  if (static_cast<size_t>(lastContext) < contexts.size() && contexts[lastContext] == context)
    return lastContext;
  lastContext = static_cast<int32_t>(std::ranges::find(contexts, context) - contexts.begin());
  if (static_cast<size_t>(lastContext) == contexts.size()) {
    contexts.push_back(context);
    known.emplace_back();
  }
  return lastContext;
}

Price MovePrices::add(int32_t from, int32_t to, int32_t context) {
  const Context &of = contexts[context];
  Entry entry{.from = from, .to = to, .context = context, .isExact = false, .mayHide = of.mayHide};
  // What is made for the first one may be the cheapest way to the others.
  entry.us = bounds.us(from, wantedOf(entry).front(), of.shape, of.elementBytes, of.startShare);
  entry.sumsUs = sumsUs(entry);
  prices.push_back(entry);
  ++bounded;
  auto price = static_cast<Price>(prices.size() - 1);
  if (entry.us == 0) // a slice, or nothing is known
    makeExact(price);
  return price;
}

Price MovePrices::of(int32_t from, int32_t to, int32_t shape, size_t elementBytes, double startShare, bool mayHide, size_t addedBytes) {
  if (from == to)
    return nothing;
  const int32_t context = numberOfContext({shape, elementBytes, startShare, mayHide, addedBytes});
  auto [at, isNew] = known[context].try_emplace({from, to});
  if (isNew)
    at->second = add(from, to, context);
  return at->second;
}

Price MovePrices::ofRoute(const Sharding &from, const std::vector<Sharding> &wanted, const std::vector<int64_t> &shape,
                          size_t elementBytes) {
  int32_t start = numberOf(from), tensor = numberOfShape(shape);
  if (wanted.empty())
    return nothing;
  if (wanted.size() == 1)
    return of(start, numberOf(wanted.front()), tensor, elementBytes);
  std::vector<int32_t> &route = routes.emplace_back();
  for (const Sharding &target : wanted)
    route.push_back(numberOf(target));
  return add(start, -static_cast<int32_t>(routes.size()), numberOfContext({.shape = tensor, .elementBytes = elementBytes}));
}

void MovePrices::makeExact(Price price) {
  const Entry &entry = prices[price];
  if (entry.isExact)
    return;
  makeThisExact(price);
  if (!isSpread || entry.to < 0)
    return;
  for (auto &ofContext : known)
    if (auto other = ofContext.find({entry.from, entry.to}); other != ofContext.end() && !prices[other->second].isExact)
      makeThisExact(other->second);
}

void MovePrices::makeThisExact(Price price) {
  Entry &entry = prices[price];
  entry.us = contexts[entry.context].startShare < 1 ? bucketUs(price) : exactUs(entry);
  entry.isExact = true;
  --bounded;
  noteChange(entry.context);
}

void MovePrices::noteChange(int32_t context) {
  isChanged.resize(contexts.size());
  if (!std::exchange(isChanged[context], 1))
    changed.push_back(context);
}

std::vector<int32_t> MovePrices::takeChanged() {
  for (int32_t context : changed)
    isChanged[context] = 0;
  return std::exchange(changed, {});
}

double MovePrices::exactUs(const Entry &entry) const {
  const Context &of = contexts[entry.context];
  if (entry.to >= 0)
    return planner.us(bounds.sharding(entry.from), bounds.sharding(entry.to), bounds.shape(of.shape), of.elementBytes);
  std::vector<Sharding> wanted;
  for (int32_t target : wantedOf(entry))
    wanted.push_back(bounds.sharding(target));
  double us = 0;
  for (const auto &steps : planRoute(bounds.sharding(entry.from), wanted, bounds.shape(of.shape), of.elementBytes, planner))
    us += dist::reshardUs(steps, of.elementBytes, planner.machine());
  return us;
}

/// Of a price to one sharding.
double MovePrices::bucketUs(Price price) {
  Entry &entry = prices[price];
  const Context &of = contexts[entry.context];
  auto &starts = startsOf[price];
  double us = 0;
  const auto route = planRoute(bounds.sharding(entry.from), {bounds.sharding(entry.to)}, bounds.shape(of.shape), of.elementBytes, planner);
  for (const dist::ReshardStep &step : route.front()) {
    GroupShape group = groupShape(step.groupMatrix, step.groupAxes);
    double received = static_cast<double>(step.receivedElements) * static_cast<double>(of.elementBytes);
    us += planner.machine().moveUs(step.kind, group, received);
    if (step.kind == MoveKind::Slice)
      continue;
    const double start = planner.machine().moveUs(step.kind, group, 0);
    us -= (1 - of.startShare) * start;
    entry.startsUs += of.startShare * start;
    const Bucket bucket{step.kind, step.groupMatrix, step.groupAxes, of.elementBytes};
    starts.emplace_back(buckets.try_emplace(bucket, static_cast<int32_t>(buckets.size())).first->second, start);
  }
  return us;
}

} // namespace msc::passes
