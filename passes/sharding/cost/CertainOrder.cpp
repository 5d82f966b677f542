#include "passes/sharding/cost/CertainOrder.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace msc::passes {
namespace {

using Kind = OrderedEvent::Kind;

/// It, or what it is under some strategies, may become one with others.
bool mayJoin(const OrderedEvent &event) { return event.kind == Kind::Kernel || (!event.isAlways && event.kind != Kind::Move); }

/// Which kernels events need; and which of them through something that is no kernel: who reads that cannot join these.
class NeededKernels {
public:
  explicit NeededKernels(const std::vector<OrderedEvent> &events) : numbers(events.size(), -1) {
    int32_t count = 0;
    for (size_t i = 0; i < events.size(); ++i)
      if (mayJoin(events[i]))
        numbers[i] = count++;
    words = (static_cast<size_t>(count) + 63) / 64;
    all.assign(events.size() * words, 0);
    apart.assign(events.size() * words, 0);
    for (size_t i = 0; i < events.size(); ++i)
      for (int32_t maker : events[i].needs)
        if (events[i].isAlways)
          inherit(i, maker);
  }

  /// What the event makes needs that kernel, and not only as part of one kernel.
  bool isApart(size_t event, size_t kernel) const {
    const std::vector<uint64_t> &bits = numbers[event] >= 0 ? apart : all;
    return (bits[event * words + numbers[kernel] / 64] >> (numbers[kernel] % 64) & 1) != 0;
  }

private:
  std::vector<int32_t> numbers; ///< of kernels; -1: is none
  size_t words = 0;             ///< for each event
  std::vector<uint64_t> all, apart;

  void inherit(size_t event, size_t maker) {
    const bool isKernel = numbers[maker] >= 0;
    for (size_t word = 0; word < words; ++word) {
      all[event * words + word] |= all[maker * words + word];
      apart[event * words + word] |= (isKernel ? apart : all)[maker * words + word];
    }
    if (isKernel)
      all[event * words + numbers[maker] / 64] |= uint64_t(1) << (numbers[maker] % 64);
  }
};

/// Events that may become one.
class Joinable {
public:
  explicit Joinable(const std::vector<OrderedEvent> &events) : events(events), parents(events.size()), joins(events.size()) {
    std::iota(parents.begin(), parents.end(), 0);
    const NeededKernels kernels(events);
    for (size_t i = 0; i < events.size(); ++i)
      for (int32_t maker : events[i].needs)
        if (canJoin(kernels, i, maker)) {
          joins[i] = 1;
          parents[partOf(i)] = partOf(maker);
        }
  }

  /// It may be taken up by something that it reads.
  bool mayBeTaken(size_t event) const { return joins[event] != 0; }
  size_t partOf(size_t event) {
    while (parents[event] != event)
      event = parents[event] = parents[parents[event]];
    return event;
  }

private:
  const std::vector<OrderedEvent> &events;
  std::vector<size_t> parents;
  std::vector<char> joins;

  bool canJoin(const NeededKernels &kernels, size_t event, size_t maker) const {
    const OrderedEvent &taken = events[event], &by = events[maker];
    if (!mayJoin(taken))
      return false;
    if (by.kind == Kind::Product && by.isAlways)
      return taken.isEpilogue || !taken.isAlways;
    if (!mayJoin(by) || (taken.isAlways && by.isAlways && taken.group != by.group))
      return false;
    return !taken.isAlways || std::ranges::none_of(taken.needs, [&](size_t other) { return other != maker && kernels.isApart(other, maker); });
  }
};

} // namespace

CertainOrder::CertainOrder(const std::vector<OrderedEvent> &events, size_t at) : isDone_(at, 1), isLeft_(events.size(), 0) {
  std::vector<char> isNeeded(at + 1); // by the event
  isNeeded[at] = 1;
  for (size_t i = at + 1; i-- > 0;)
    if (isNeeded[i] && events[i].isAlways)
      for (int32_t maker : events[i].needs)
        isNeeded[maker] = 1;

  // What takes up something that reads what is made behind the event may wait until then.
  Joinable joinable(events);
  std::vector<char> waits(events.size()), isLate(at + 1); // parts of kernels; events that these hold up
  for (size_t i = at + 1; i < events.size(); ++i)
    if (joinable.mayBeTaken(i) && (events[i].values > 1 || !events[i].isAlways))
      waits[joinable.partOf(i)] = 1;
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (size_t i = 0; i <= at; ++i) {
      auto late = [&](size_t maker) { return isLate[maker] != 0; };
      const bool isHeldUp = std::ranges::any_of(events[i].needs, late);
      if (!isLate[i] && (isHeldUp || (waits[joinable.partOf(i)] && events[i].kind != Kind::Move))) {
        isLate[i] = 1;
        isNew = true;
      }
      if (isHeldUp && joinable.mayBeTaken(i) && !waits[joinable.partOf(i)]) {
        waits[joinable.partOf(i)] = 1;
        isNew = true;
      }
    }
  }
  for (size_t i = 0; i < at; ++i)
    isDone_[i] = isNeeded[i] || !isLate[i];
  mayWait_ = isLate[at] != 0;

  // Where the event itself may wait, others behind it may run before it.
  std::vector<char> needsIt(events.size());
  for (size_t i = at; i < events.size(); ++i) {
    needsIt[i] = i == at || (events[i].isAlways && std::ranges::any_of(events[i].needs, [&](int32_t maker) { return needsIt[maker] != 0; }));
    isLeft_[i] = needsIt[i] || !mayWait_;
  }
}

} // namespace msc::passes
