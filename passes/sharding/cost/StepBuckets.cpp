#include "passes/sharding/cost/StepBuckets.h"

#include <algorithm>
#include <utility>

namespace msc::passes {

/// Collectives of gradients run together up to so many bytes; what a network says instead (`comm_fusion`) is not looked at.
static constexpr int64_t bucketBytes = int64_t(64) << 20;

void StepBuckets::add(const dist::ReshardStep &step, size_t elementBytes, int32_t from, int32_t made, const StepEvents &line) {
  const int64_t bytes = std::max(line.buffers[from].bytes, line.buffers[made].bytes);
  Bucket &bucket = open[{step.kind, step.groupMatrix, step.groupAxes, elementBytes}];
  if (!bucket.event.reads.empty() && bucket.bytes + bytes > bucketBytes)
    closed.push_back(std::exchange(bucket, {}));
  bucket.event.isAllReduce = step.kind == MoveKind::AllReduce;
  bucket.last = line.events.size();
  bucket.bytes += bytes;
  bucket.event.reads.push_back(from);
  bucket.event.writes.push_back(made);
}

void StepBuckets::place(StepEvents &line) {
  for (auto &[key, bucket] : open)
    closed.push_back(std::move(bucket));
  std::ranges::stable_sort(closed, {}, &Bucket::last);
  std::vector<StepEvent> events;
  auto next = closed.begin();
  for (size_t i = 0; i <= line.events.size(); ++i) {
    for (; next != closed.end() && next->last == i; ++next)
      events.push_back(std::move(next->event));
    if (i < line.events.size())
      events.push_back(std::move(line.events[i]));
  }
  line.events = std::move(events);
}

} // namespace msc::passes
