// The memory that a rank needs for a step, before there is a plan: by live ranges of what its events touch.
#pragma once

#include "passes/sharding/cost/StepEvents.h"

#include <optional>

namespace msc::passes {

struct StepMemory {
  int64_t forRun = 0; ///< bytes of parameters and states
  int64_t packed = 0; ///< bytes beside them, as packMemory or packTightly place them; of many, the most that is live at once
  bool isTight = false; ///< packTightly tried to place them

  int64_t arena() const { return forRun + packed; }
};

/// When the buffers of a step are live: values between operators of one kernel have no memory, collectives are complete where they
/// start. Keeps a reference.
class StepLives {
public:
  explicit StepLives(const StepEvents &step);

  /// What msc-assign-memory will find, about. Nothing of events that are empty. With a limit, blocks are packed tightly only where that
  /// decides whether they fit.
  StepMemory memory(std::optional<double> limit = {}) const;

  /// A buffer with memory of its own that is live at some time; numbers are indices of events, -1: none.
  struct Live {
    int32_t buffer = 0;
    int32_t made = -1; ///< the first that writes it
    int32_t read = -1; ///< the first, then or later, that reads it
    int32_t readAs = -1; ///< which of its reads
  };
  /// What is live beside parameters and states when most is; in the order of the buffers.
  std::vector<Live> mostLive() const;
  /// The first event then; their number: what is fetched alone.
  size_t busiestEvent() const;
  /// The same; where that is a move or a kernel, and nearly as much is live while an operator runs that is a step of its own, that one.
  size_t busiestStep() const;

private:
  struct Range {
    int64_t first = -1, last = -1;
  };

  bool hasMemory(size_t buffer) const;
  std::vector<int64_t> liveAt() const;
  int64_t busiest() const;

  const StepEvents &step;
  std::vector<int32_t> roots;  ///< of each buffer: whose memory it shows
  std::vector<int64_t> times;  ///< of each event
  int64_t end = 0;             ///< behind all of them
  std::vector<Range> ranges;   ///< of each buffer, where it has memory of its own
};

} // namespace msc::passes
