#include "passes/sharding/cost/StepSums.h"

#include "passes/plan/EarlySums.h"

#include <algorithm>
#include <span>

namespace msc::passes {

static constexpr int32_t none = -1;

void hoistSums(StepEvents &step, int32_t sums) {
  std::vector<std::vector<size_t>> ofSum(sums); // events
  for (size_t i = 0; i < step.events.size(); ++i)
    if (step.events[i].sum != none)
      ofSum[step.events[i].sum].push_back(i);
  std::vector<int64_t> made(step.buffers.size(), none); // of each root: behind which event it is there
  for (size_t i = 0; i < step.events.size(); ++i)
    for (int32_t buffer : step.events[i].writes)
      made[step.rootOf(buffer)] = static_cast<int64_t>(i);
  std::vector<std::vector<size_t>> behind(step.events.size());
  std::vector<char> isMoved(step.events.size());
  auto hoist = [&](std::span<const size_t> some) {
    int64_t last = none;
    for (size_t i = 0; i < some.size(); ++i)
      for (int32_t read : step.events[some[i]].reads)
        if (i == 0 || read != step.events[some[i - 1]].writes.front())
          last = std::max(last, made[step.rootOf(read)]);
    for (size_t event : some)
      if (last != none) {
        behind[last].push_back(event);
        isMoved[event] = 1;
        made[step.rootOf(step.events[event].writes.front())] = last;
      }
  };
  for (const std::vector<size_t> &events : ofSum)
    for (size_t at = 0, end; at < events.size(); at = end) {
      end = at + 1;
      const auto isBehind = [&](size_t next) { // adds to what the event before it made
        const StepEvent &event = step.events[events[next]], &before = step.events[events[next - 1]];
        return event.kind == StepKind::Kernel && std::ranges::find(event.reads, before.writes.front()) != event.reads.end();
      };
      const bool isAddition = step.events[events[at]].kind == StepKind::Kernel;
      while (isAddition && end < events.size() && isBehind(end))
        ++end;
      const std::span<const size_t> chain = std::span(events).subspan(at, end - at);
      if (isAddition && chain.size() < termsAtOnce)
        continue;
      for (size_t first = 0; first < chain.size(); first += termsAtOnce - 1)
        hoist(chain.subspan(first, std::min(termsAtOnce - 1, chain.size() - first)));
    }
  std::vector<StepEvent> events;
  for (size_t i = 0; i < behind.size(); ++i) {
    if (!isMoved[i])
      events.push_back(std::move(step.events[i]));
    for (size_t event : behind[i])
      events.push_back(std::move(step.events[event]));
  }
  step.events = std::move(events);
}

void sumInPlace(StepEvents &step) {
  std::vector<int32_t> readers(step.buffers.size());
  for (const StepBuffer &buffer : step.buffers)
    if (buffer.viewOf != none)
      ++readers[buffer.viewOf];
  for (const StepEvent &event : step.events)
    for (int32_t buffer : event.reads)
      ++readers[buffer];
  auto isReadOnce = [&](int32_t buffer) {
    for (;; buffer = step.buffers[buffer].viewOf) {
      const StepBuffer &shown = step.buffers[buffer];
      if (readers[buffer] != 1 || shown.forRun || shown.isInput || shown.isFetched)
        return false;
      if (shown.viewOf == none)
        return true;
    }
  };
  for (const StepEvent &event : step.events)
    if (event.isAllReduce)
      for (size_t i = 0; i < event.reads.size(); ++i)
        if (StepBuffer &sum = step.buffers[event.writes[i]]; step.buffers[event.reads[i]].bytes == sum.bytes && isReadOnce(event.reads[i]))
          sum.viewOf = event.reads[i];
}

} // namespace msc::passes
