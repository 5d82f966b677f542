#include "passes/sharding/cost/OrderedOperator.h"

#include "passes/sharding/cost/KernelLoops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace msc::passes {
namespace {

using Event = OrderedOperator::Event;
using Place = OrderedOperator::Place;

/// Adds the events of one strategy after the other.
class Union {
public:
  OrderedOperator all;

  void add(const OrderedOperator::Strategy &strategy) {
    const bool isFirst = all.ofTraced.empty();
    std::vector<int32_t> shown(2 * strategy.step->values.size());
    std::iota(shown.begin(), shown.end(), 0);
    same = shown;
    had.clear();
    for (const TracedOperator &traced : strategy.trace->operators) {
      const bool isView = traced.kind == StepKind::View;
      if (isView && !traced.reads.empty() && !traced.writes.empty())
        shown[traced.writes.front().value] = shown[traced.reads.front().value];
      if (traced.computes == TracedOperator::brings)
        same[traced.writes.front().value] = same[traced.reads.front().value];
      const Place place = isView || !traced.isThere ? Place{traced.isBackward, -1} : add(traced, strategy.step->values, shown);
      if (isFirst)
        all.ofTraced.push_back(place.event);
    }
    all.isKnown &= isFirst || all.shown == shown;
    all.shown = std::move(shown);
  }

private:
  std::map<std::tuple<bool, int, bool, std::vector<int32_t>, std::vector<int32_t>>, int32_t> known;
  // Of the strategy that is being added:
  std::vector<int32_t> same;                              ///< of each value: another one that has its shape and elements, or itself
  std::vector<std::pair<TracedOperator::Use, Place>> had; ///< in shardings

  Place add(const TracedOperator &traced, const std::vector<StepValue> &values, const std::vector<int32_t> &shown) {
    Event event{.kind = traced.kind == StepKind::Kernel    ? OrderedEvent::Kind::Kernel
                        : traced.kind == StepKind::Product ? OrderedEvent::Kind::Product
                                                           : OrderedEvent::Kind::Step,
                .isEpilogue = traced.isEpilogue, .reads = {}, .writes = {}};
    std::vector<int32_t> read;
    auto isConstant = [&](const TracedOperator::Use &use) { return values[use.value].kind == StepValue::Kind::Constant; };
    for (const TracedOperator::Use &use : traced.reads)
      if (!isConstant(use)) {
        auto before = std::ranges::find_if(had, [&](const auto &other) { return other.first.value == same[use.value] && other.first.sharding == use.sharding; });
        event.reads.push_back({shown[use.value], before == had.end() ? Place() : before->second});
        read.push_back(shown[use.value]);
      }
    std::vector<int32_t> rounded;
    const auto wide = static_cast<int32_t>(values.size()); // of value 0
    for (const TracedOperator::Use &use : traced.writes)
      if (!isConstant(use)) {
        // What is added in f32 is rounded by another kernel where it is partial; where it is not, there is no such kernel to wait for.
        const bool isRounded = traced.op && (traced.op->computesWide || traced.op->addsWide) && values[use.value].elementBytes == narrowBytes;
        event.writes.push_back(isRounded ? wide + shown[use.value] : shown[use.value]);
        if (isRounded)
          rounded.push_back(shown[use.value]);
      }
    event.isCheap = traced.op && traced.op->isCheap;
    event.addsOnly = traced.isBackward && event.kind == OrderedEvent::Kind::Kernel && event.reads.size() == 1 && traced.op && reduces(loopsOf(traced, values));
    const Place place{traced.isBackward, put(traced.isBackward, static_cast<int>(traced.kind), read, std::move(event))};
    for (int32_t value : rounded)
      put(traced.isBackward, static_cast<int>(StepKind::Kernel), {wide + value},
          {.kind = OrderedEvent::Kind::Kernel, .isEpilogue = false, .reads = {{wide + value, Place()}}, .writes = {value}, .isCheap = true});
    for (const std::vector<TracedOperator::Use> *list : {&traced.reads, &traced.writes})
      for (const TracedOperator::Use &use : *list)
        had.push_back({{same[use.value], use.sharding}, place});
    return place;
  }

  /// One that is there already, or the event. Returns its number.
  int32_t put(bool isBackward, int kind, const std::vector<int32_t> &read, Event event) {
    std::vector<Event> &events = all.events[isBackward];
    auto [found, isNew] = known.try_emplace({isBackward, kind, event.isEpilogue, read, event.writes}, static_cast<int32_t>(events.size()));
    if (isNew)
      events.push_back(event);
    else
      keepCertain(events[found->second], event);
    events[found->second].isCheap |= event.isCheap;
    events[found->second].addsOnly |= event.addsOnly;
    return found->second;
  }

  /// Where a value is certainly there under both strategies.
  static void keepCertain(Event &event, const Event &other) {
    for (size_t i = 0; i < event.reads.size(); ++i)
      if (const Place &a = event.reads[i].since, &b = other.reads[i].since; a.isBackward != b.isBackward || a.event != b.event)
        event.reads[i].since = {};
  }
};

/// The events of a pass, those that write a value in front of those that read it. Empty: there is no such order.
std::vector<int32_t> orderOf(const std::vector<Event> &events) {
  std::vector<char> isPlaced(events.size());
  std::vector<int32_t> order;
  auto isWaiting = [&](const Event &event) {
    return std::ranges::any_of(event.reads, [&](const OrderedOperator::Read &read) {
      for (size_t maker = 0; maker < events.size(); ++maker)
        if (!isPlaced[maker] && &events[maker] != &event && std::ranges::find(events[maker].writes, read.value) != events[maker].writes.end())
          return true;
      return false;
    });
  };
  while (order.size() < events.size()) {
    size_t next = 0;
    while (next < events.size() && (isPlaced[next] || isWaiting(events[next])))
      ++next;
    if (next == events.size())
      return {};
    isPlaced[next] = 1;
    order.push_back(static_cast<int32_t>(next));
  }
  return order;
}

void putInOrder(OrderedOperator &all, const OrderedOperator::Strategy &first) {
  std::array<std::vector<int32_t>, 2> places;
  for (bool isBackward : {false, true}) {
    std::vector<Event> &events = all.events[isBackward];
    const std::vector<int32_t> order = orderOf(events);
    all.isKnown &= order.size() == events.size();
    if (!all.isKnown)
      return;
    std::vector<Event> ordered;
    places[isBackward].resize(events.size());
    for (int32_t event : order) {
      places[isBackward][event] = static_cast<int32_t>(ordered.size());
      ordered.push_back(std::move(events[event]));
    }
    events = std::move(ordered);
  }
  for (std::vector<Event> &events : all.events)
    for (Event &event : events)
      for (OrderedOperator::Read &read : event.reads)
        if (read.since.event >= 0)
          read.since.event = places[read.since.isBackward][read.since.event];
  for (size_t i = 0; i < all.ofTraced.size(); ++i)
    if (all.ofTraced[i] >= 0)
      all.ofTraced[i] = places[first.trace->operators[i].isBackward][all.ofTraced[i]];
}

} // namespace

OrderedOperator orderedUnderAll(std::span<const OrderedOperator::Strategy> strategies) {
  Union all;
  for (const OrderedOperator::Strategy &strategy : strategies) {
    all.all.isKnown &= strategy.step == strategies.front().step;
    if (all.all.isKnown)
      all.add(strategy);
  }
  if (all.all.isKnown && !strategies.empty())
    putInOrder(all.all, strategies.front());
  return std::move(all.all);
}

} // namespace msc::passes
