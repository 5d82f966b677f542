#include "passes/sharding/cost/StepMemory.h"

#include "passes/plan/MemoryPacking.h"
#include "passes/sharding/cost/StepUnits.h"

#include <algorithm>
#include <numeric>

namespace msc::passes {

StepLives::StepLives(const StepEvents &step) : step(step), times(step.events.size()), ranges(step.buffers.size()) {
  const StepUnits units(step);
  end = units.count() + 1;
  for (size_t i = 0; i < step.buffers.size(); ++i)
    roots.push_back(step.rootOf(static_cast<int32_t>(i)));
  auto touch = [&](int32_t buffer, int64_t time) {
    Range &range = ranges[roots[buffer]];
    range.first = range.first < 0 ? time : std::min(range.first, time);
    range.last = std::max(range.last, time);
  };
  for (size_t i = 0; i < step.events.size(); ++i) {
    times[i] = units.stepOf(i) + 1;
    for (const std::vector<int32_t> *list : {&units.readsOf(step, i), &step.events[i].writes})
      for (int32_t buffer : *list)
        touch(buffer, times[i]);
  }
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    if (step.buffers[i].isInput)
      touch(static_cast<int32_t>(i), 0);
    if (step.buffers[i].isFetched)
      touch(static_cast<int32_t>(i), end);
  }
}

/// Beside parameters; nobody outside of a kernel reads what is touched at one time alone.
bool StepLives::hasMemory(size_t buffer) const {
  const Range &range = ranges[buffer];
  return !step.buffers[buffer].forRun && step.buffers[buffer].viewOf < 0 && range.first >= 0 && range.first != range.last;
}

StepMemory StepLives::memory(std::optional<double> limit) const {
  constexpr int64_t alignment = 64;
  StepMemory memory;
  std::vector<MemoryBlock> blocks;
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    const StepBuffer &buffer = step.buffers[i];
    if (buffer.forRun && buffer.viewOf < 0)
      memory.forRun += (buffer.bytes + alignment - 1) / alignment * alignment;
    if (hasMemory(i))
      blocks.push_back({buffer.bytes, ranges[i].first, ranges[i].last});
  }
  // Packing takes longer than the search itself then; what is live is within some percent of it.
  constexpr size_t mostPacked = 2000;
  const int64_t least = memoryLowerBound(blocks, alignment);
  if (blocks.size() > mostPacked) {
    memory.packed = least;
    return memory;
  }
  memory.packed = packMemory(blocks, alignment).bytes;
  const int64_t enough = limit ? static_cast<int64_t>(*limit) - memory.forRun : least;
  memory.isTight = least <= enough && enough < memory.packed;
  if (memory.isTight)
    memory.packed = packTightly(blocks, enough).bytes;
  return memory;
}

/// Bytes at each time.
std::vector<int64_t> StepLives::liveAt() const {
  std::vector<int64_t> live(end + 2);
  for (size_t i = 0; i < step.buffers.size(); ++i)
    if (hasMemory(i)) {
      live[ranges[i].first] += step.buffers[i].bytes;
      live[ranges[i].last + 1] -= step.buffers[i].bytes;
    }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

/// The first time at which most is live.
int64_t StepLives::busiest() const {
  const std::vector<int64_t> live = liveAt();
  return std::ranges::max_element(live) - live.begin();
}

size_t StepLives::busiestEvent() const {
  const int64_t time = busiest();
  return std::ranges::find_if(times, [&](int64_t other) { return other >= time; }) - times.begin();
}

size_t StepLives::busiestStep() const {
  constexpr double nearly = 0.98;
  const size_t busiest = busiestEvent();
  auto isStep = [](const StepEvent &event) { return event.op >= 0 && event.kind != StepKind::Kernel; };
  if (busiest == step.events.size() || isStep(step.events[busiest]) || std::none_of(step.events.begin() + busiest, step.events.end(), isStep))
    return busiest;
  const std::vector<int64_t> live = liveAt();
  auto most = static_cast<int64_t>(nearly * static_cast<double>(live[times[busiest]]));
  size_t found = busiest;
  for (size_t i = 0; i < step.events.size(); ++i)
    if (isStep(step.events[i]) && live[times[i]] > most) {
      most = live[times[i]];
      found = i;
    }
  return found;
}

std::vector<StepLives::Live> StepLives::mostLive() const {
  const int64_t time = busiest();
  std::vector<Live> of(step.buffers.size());
  for (size_t i = step.events.size(); i-- > 0;) {
    const StepEvent &event = step.events[i];
    for (size_t r = event.reads.size(); r-- > 0 && times[i] >= time;) {
      of[roots[event.reads[r]]].read = static_cast<int32_t>(i);
      of[roots[event.reads[r]]].readAs = static_cast<int32_t>(r);
    }
    for (int32_t buffer : event.writes)
      of[roots[buffer]].made = static_cast<int32_t>(i);
  }
  std::vector<Live> live;
  for (size_t i = 0; i < step.buffers.size(); ++i)
    if (hasMemory(i) && ranges[i].first <= time && time <= ranges[i].last) {
      of[i].buffer = static_cast<int32_t>(i);
      live.push_back(of[i]);
    }
  return live;
}

} // namespace msc::passes
