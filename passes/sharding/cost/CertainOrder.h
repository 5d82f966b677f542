// What has run when an event of a step begins, whatever kernels become one and whatever moves there are. A kernel that takes up a later
// operator waits for all that this one reads (StepUnits.h), and so does what reads the kernel. A sum that may make its terms itself needs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msc::passes {

/// An event of the steps of all strategies; it need not be in each. Moves are in none of them.
struct OrderedEvent {
  enum class Kind {
    Kernel,  ///< may join others
    Product, ///< may take up its epilogue
    Step,    ///< is one of its own
  };
  struct Read {
    int32_t value = 0;
    int32_t since = 0; ///< the event in front of which a move may stand that brings it to where it is read: itself, or one before it
    bool operator==(const Read &) const = default;
  };
  Kind kind = Kind::Step;
  bool isEpilogue = false;
  int32_t group = 0; ///< only kernels of one group join
  std::vector<Read> reads;     ///< the first: what it is an epilogue of
  std::vector<int32_t> writes; ///< values; where several events write one, only one of these is there
  bool isCheap = false;        ///< as net::isCheap
  bool addsOnly = false;       ///< it sums what it reads, which is one value: it may make that itself, where that is cheap
  bool operator==(const OrderedEvent &) const = default;
};

/// Sets of values that kernels make, one for each event.
class ValueSets {
public:
  ValueSets() = default;
  ValueSets(size_t events, size_t values) : words((values + 63) / 64), bits(events * words) {}

  std::span<uint64_t> of(size_t event) { return std::span(bits).subspan(event * words, words); }
  std::span<const uint64_t> of(size_t event) const { return std::span(bits).subspan(event * words, words); }
  size_t wordCount() const { return words; }

private:
  size_t words = 0;
  std::vector<uint64_t> bits;
};

/// Who may join whom.
class JoinableEvents {
public:
  /// `events`: in an order in which values are written before they are read. `values`: how many there are.
  JoinableEvents(std::vector<OrderedEvent> events, size_t values);

  const std::vector<OrderedEvent> &events() const { return list; }
  /// Those that write a value, ascending; none: it is there when the step begins.
  const std::vector<int32_t> &makersOf(int32_t value) const { return makers[value]; }
  /// The event and all that it might be one with, by way of others; ascending.
  const std::vector<int32_t> &partOf(size_t event) const { return members[parts[event]]; }
  /// Nothing that the event reads needs the other one first.
  bool mayBeOne(size_t event, size_t other) const;
  /// Values by whose makers the event may be taken up.
  const std::vector<int32_t> &takenBy(size_t event) const { return taken[event]; }
  /// Of values that kernels may make, a number; -1: of others.
  int32_t numberOf(int32_t value) const { return numbers[value]; }
  /// Which of these values it needs if it is there.
  std::span<const uint64_t> neededBy(size_t event) const { return needed.of(event); }

private:
  std::vector<OrderedEvent> list;
  std::vector<std::vector<int32_t>> makers, taken;
  std::vector<int32_t> parts, numbers;
  std::vector<std::vector<int32_t>> members; ///< of parts
  ValueSets needed;
  ValueSets apart; ///< of what is needed: through something that is no kernel; who reads that cannot join who makes it

  bool isKernel(int32_t event) const { return list[event].kind == OrderedEvent::Kind::Kernel; }
  void findNeeded();
  bool mayMakeItself(const OrderedEvent &event) const;
  void addCommon(int32_t value, bool throughOthers, std::vector<uint64_t> &common) const;
  bool isApart(int32_t value, int32_t kernels) const;
  bool mayTake(const OrderedEvent &event, int32_t maker, int32_t value) const;
};

/// At one event that is a step or a product. Keeps nothing of the list.
class CertainOrder {
public:
  CertainOrder(const JoinableEvents &joinable, size_t at);

  /// It has run when the event begins, if it is there. Of the events before it in the list.
  bool isDone(size_t event) const { return event < done.size() && done[event] != 0; }
  /// It runs with the event or later, if it is there. Of it and the events behind it in the list.
  bool isLeft(size_t event) const { return left[event] != 0; }

private:
  std::vector<char> done, left;
};

} // namespace msc::passes
