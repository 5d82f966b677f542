#include "passes/sharding/cost/CertainOrder.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>

namespace msc::passes {

using Kind = OrderedEvent::Kind;

JoinableEvents::JoinableEvents(std::vector<OrderedEvent> events, size_t values)
    : list(std::move(events)), makers(values), taken(list.size()), parts(list.size()), numbers(values, -1) {
  for (size_t i = 0; i < list.size(); ++i)
    for (int32_t value : list[i].writes)
      makers[value].push_back(static_cast<int32_t>(i));
  findNeeded();
  std::iota(parts.begin(), parts.end(), 0);
  auto find = [&](int32_t event) {
    while (parts[event] != event)
      event = parts[event] = parts[parts[event]];
    return event;
  };
  for (size_t i = 0; i < list.size(); ++i)
    for (const OrderedEvent::Read &read : list[i].reads)
      for (int32_t maker : makers[read.value])
        if (mayTake(list[i], maker, read.value)) {
          if (taken[i].empty() || taken[i].back() != read.value)
            taken[i].push_back(read.value);
          parts[find(static_cast<int32_t>(i))] = find(maker);
        }
  members.resize(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    members[parts[i] = find(static_cast<int32_t>(i))].push_back(static_cast<int32_t>(i));
}

void JoinableEvents::findNeeded() {
  int32_t count = 0;
  for (size_t value = 0; value < makers.size(); ++value)
    if (std::ranges::any_of(makers[value], [&](int32_t event) { return isKernel(event); }))
      numbers[value] = count++;
  needed = apart = ValueSets(list.size(), count);
  std::vector<uint64_t> common(needed.wordCount());
  auto add = [](std::span<uint64_t> to, std::span<const uint64_t> from) {
    for (size_t word = 0; word < to.size(); ++word)
      to[word] |= from[word];
  };
  for (size_t i = 0; i < list.size(); ++i)
    for (const OrderedEvent::Read &read : list[i].reads) {
      if (mayMakeItself(list[i]))
        continue;
      addCommon(read.value, false, common);
      add(needed.of(i), common);
      addCommon(read.value, true, common);
      add(apart.of(i), common);
      if (const int32_t number = numbers[read.value]; number >= 0)
        needed.of(i)[number / 64] |= uint64_t(1) << (number % 64);
    }
}

bool JoinableEvents::mayMakeItself(const OrderedEvent &event) const {
  return event.addsOnly && std::ranges::any_of(makers[event.reads.front().value], [&](int32_t maker) { return list[maker].isCheap; });
}

/// What all makers of a value need.
void JoinableEvents::addCommon(int32_t value, bool throughOthers, std::vector<uint64_t> &common) const {
  std::ranges::fill(common, makers[value].empty() ? 0 : ~uint64_t(0));
  for (int32_t maker : makers[value]) {
    const std::span<const uint64_t> own = (throughOthers && isKernel(maker) ? apart : needed).of(maker);
    for (size_t word = 0; word < common.size(); ++word)
      common[word] &= own[word];
  }
}

/// Whoever makes the value needs `kernels`, and not only as a part of the same kernel.
bool JoinableEvents::isApart(int32_t value, int32_t kernels) const {
  const int32_t number = numbers[kernels];
  return !makers[value].empty() && std::ranges::all_of(makers[value], [&](int32_t maker) {
    return ((isKernel(maker) ? apart : needed).of(maker)[number / 64] >> (number % 64) & 1) != 0;
  });
}

/// `maker`: of a value that the event reads.
bool JoinableEvents::mayTake(const OrderedEvent &event, int32_t maker, int32_t value) const {
  const OrderedEvent &by = list[maker];
  if (event.kind != Kind::Kernel)
    return false;
  if (by.kind == Kind::Product)
    return event.isEpilogue && !event.reads.empty() && value == event.reads.front().value;
  return by.kind == Kind::Kernel && by.group == event.group && std::ranges::none_of(event.reads, [&](const OrderedEvent::Read &other) {
           return other.value != value && isApart(other.value, value);
         });
}

bool JoinableEvents::mayBeOne(size_t event, size_t other) const {
  return std::ranges::none_of(list[other].writes, [&](int32_t value) {
    return numbers[value] >= 0 && std::ranges::any_of(list[event].reads, [&](const OrderedEvent::Read &read) {
             return read.value != value && isApart(read.value, value);
           });
  });
}

namespace {

/// At one event: kernels before it, or it, that may wait for it or for something behind it, and who may wait for these.
class Held {
public:
  Held(const JoinableEvents &joinable, size_t at) : joinable(joinable), events(joinable.events()), at(at), numbers(at + 1, -1) {
    for (size_t i = at + 1; i < events.size(); ++i)
      if (isPulled(i))
        for (int32_t member : beforeOrAt(joinable.partOf(i)))
          if (numbers[member] < 0 && joinable.mayBeOne(i, member)) {
            numbers[member] = static_cast<int32_t>(kernels.size());
            kernels.push_back(member);
          }
    if (!kernels.empty())
      spread();
  }

  bool isHeld(size_t event) const { return numbers[event] >= 0; }
  /// Nothing that the event may wait for is held up.
  bool isFree(size_t event) const { return kernels.empty() || (!isHeld(event) && isFreeSoFar(event)); }
  /// `other` needs all that may hold the event up: then they run in their order.
  bool isReleasedBefore(size_t event, size_t other) const {
    for (size_t i = 0; i < kernels.size(); ++i)
      if ((waits.of(event)[i / 64] >> (i % 64) & 1) != 0 && !isNeeded(kernels[i], other))
        return false;
    return true;
  }

private:
  const JoinableEvents &joinable;
  const std::vector<OrderedEvent> &events;
  size_t at;
  std::vector<int32_t> kernels, numbers; ///< those that are held up; of each event before and at the moment: which of them, -1: none
  ValueSets waits;                       ///< of each of these events: the held ones that it may wait for

  std::span<const int32_t> beforeOrAt(const std::vector<int32_t> &part) const {
    return {part.begin(), std::ranges::upper_bound(part, static_cast<int32_t>(at))};
  }

  bool isNeeded(int32_t kernel, size_t by) const {
    return std::ranges::any_of(events[kernel].writes, [&](int32_t value) {
      const int32_t number = joinable.numberOf(value);
      return number >= 0 && (joinable.neededBy(by)[number / 64] >> (number % 64) & 1) != 0;
    });
  }

  /// Beside what takes it up it reads something that is made, or brought to where it is read, by the event or behind it.
  bool isPulled(size_t event) const {
    auto isBehind = [&](const OrderedEvent::Read &read) {
      return read.since > static_cast<int32_t>(at) ||
             std::ranges::any_of(joinable.makersOf(read.value), [&](int32_t maker) { return maker >= static_cast<int32_t>(at); });
    };
    return std::ranges::any_of(joinable.takenBy(event), [&](int32_t by) {
      return std::ranges::any_of(events[event].reads, [&](const OrderedEvent::Read &read) { return read.value != by && isBehind(read); });
    });
  }

  /// Who reads a kernel waits for it, and so does a kernel that may take up who reads it.
  void spread() {
    waits = ValueSets(at + 1, kernels.size());
    bool isNew = true;
    auto add = [&](size_t to, size_t from) {
      const std::span<uint64_t> own = waits.of(to);
      const std::span<const uint64_t> more = waits.of(from);
      for (size_t word = 0; word < own.size(); ++word) {
        isNew |= (more[word] & ~own[word]) != 0;
        own[word] |= more[word];
      }
    };
    for (size_t i = 0; i <= at; ++i)
      if (isHeld(i))
        waits.of(i)[numbers[i] / 64] |= uint64_t(1) << (numbers[i] % 64);
    while (isNew) {
      isNew = false;
      for (size_t i = 0; i < events.size(); ++i) {
        const bool mayBeTaken = !joinable.takenBy(i).empty();
        for (const OrderedEvent::Read &read : events[i].reads)
          for (int32_t maker : joinable.makersOf(read.value)) {
            if (maker > static_cast<int32_t>(at) || isFreeSoFar(maker))
              continue;
            if (i <= at)
              add(i, maker);
            for (int32_t member : mayBeTaken ? beforeOrAt(joinable.partOf(i)) : std::span<const int32_t>())
              if (member != maker && joinable.mayBeOne(i, member))
                add(member, maker);
          }
      }
    }
  }

  bool isFreeSoFar(size_t event) const { return std::ranges::none_of(waits.of(event), std::identity()); }
};

} // namespace

CertainOrder::CertainOrder(const JoinableEvents &joinable, size_t at) : done(at, 1), left(joinable.events().size(), 0) {
  const std::vector<OrderedEvent> &events = joinable.events();
  std::vector<char> isNeeded(at + 1), isThere(at + 1); // by the event; under all strategies
  isNeeded[at] = isThere[at] = 1;
  for (size_t i = at + 1; i-- > 0;)
    if (isThere[i])
      for (const OrderedEvent::Read &read : events[i].reads)
        for (int32_t maker : joinable.makersOf(read.value)) {
          isNeeded[maker] = 1;
          isThere[maker] |= joinable.makersOf(read.value).size() == 1;
        }
  const Held held(joinable, at);
  for (size_t i = 0; i < at; ++i)
    done[i] = isNeeded[i] || held.isFree(i) || (!held.isHeld(i) && held.isReleasedBefore(i, at));
  std::vector<char> needsIt(events.size()), begins(events.size()); // behind the event: no kernel before it may take this one up
  for (size_t i = at; i < events.size(); ++i) {
    auto makesBehind = [&](int32_t maker) { return begins[maker] != 0; };
    auto isMadeBehind = [&](int32_t value) { return std::ranges::all_of(joinable.makersOf(value), makesBehind); };
    needsIt[i] = i == at || std::ranges::any_of(events[i].reads, [&](const OrderedEvent::Read &read) {
                   const std::vector<int32_t> &makers = joinable.makersOf(read.value);
                   return !makers.empty() && std::ranges::all_of(makers, [&](int32_t maker) { return needsIt[maker] != 0; });
                 });
    begins[i] = i > at && std::ranges::all_of(joinable.takenBy(i), isMadeBehind);
    left[i] = needsIt[i] || (begins[i] && held.isReleasedBefore(at, i));
  }
}

} // namespace msc::passes
