// What has run when an event of a step begins, whatever kernels become one and whatever moves there are. A kernel that takes up a later
// operator waits for all that this one reads (StepUnits.h), and so does what reads the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msc::passes {

/// An event that runs under all strategies, or may be others under some.
struct OrderedEvent {
  enum class Kind {
    Kernel,  ///< may join others
    Product, ///< may take up its epilogue
    Step,    ///< is one of its own
    Move,    ///< comes and goes
  };
  Kind kind = Kind::Step;
  bool isAlways = true;   ///< false: it may be several, of any kind, under some strategies
  bool isEpilogue = false;
  int32_t group = 0;      ///< only events of one group join
  int64_t values = 0;     ///< how many different ones it reads
  std::vector<int32_t> needs; ///< the events that make them, ascending; all before it
};

/// At one event that is a step or a product. Keeps nothing of the list.
class CertainOrder {
public:
  CertainOrder(const std::vector<OrderedEvent> &events, size_t at);

  /// It certainly has run when the event begins. Of the events before it in the list.
  bool isDone(size_t event) const { return isDone_[event] != 0; }
  /// It certainly runs with the event or later. Of it and the events behind it in the list that are no kernels.
  bool isLeft(size_t event) const { return isLeft_[event] != 0; }
  /// It may itself be held up, so that others behind it in the list run first.
  bool mayWait() const { return mayWait_; }

private:
  std::vector<char> isDone_, isLeft_;
  bool mayWait_ = false;
};

/// Of how many events steps are known to wait for each other; in longer lists nothing waits (StepUnits.h).
inline constexpr size_t mostEventsOrdered = 20'000;

} // namespace msc::passes
