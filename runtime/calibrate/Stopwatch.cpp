#include "runtime/calibrate/Stopwatch.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace msc {

double steadyMicroseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<double> Stopwatch::batch(const std::function<Status()> &run, int64_t times) {
  if (Status status = everybody.barrier(label); !status)
    return status.error();
  double start = clock();
  for (int64_t i = 0; i < times; ++i)
    if (Status status = run(); !status)
      return status.error();
  // Where ranks share a core, one that runs alone until its end would not see the others.
  if (Status status = everybody.barrier(label); !status)
    return status.error();
  double own = clock() - start, slowest = 0;
  if (Status status = everybody.allReduce(&own, &slowest, 1, comm::ElementType::F64, ReduceKind::Max, label); !status)
    return status.error();
  leftUs -= slowest;
  return slowest / static_cast<double>(times);
}

Result<double> Stopwatch::median(const std::function<Status()> &run, double shareUs) {
  // Short runs are timed as a whole for about this long: single ones drown in the jitter of the clock.
  constexpr double batchUs = 200, mostInBatch = 64;
  constexpr int warmUps = 2, fewest = fewestRuns - warmUps, most = 200;
  Result<double> warm = batch(run, warmUps);
  if (!warm)
    return warm;
  auto times = static_cast<int64_t>(std::clamp(batchUs / *warm, 1.0, mostInBatch));
  double perBatch = std::max(*warm * static_cast<double>(times), 1.0);
  int repetitions = static_cast<int>(std::clamp<double>(shareUs / perBatch, fewest, most));
  std::vector<double> list;
  for (int i = 0; i < repetitions; ++i) {
    Result<double> us = batch(run, times);
    if (!us)
      return us;
    list.push_back(*us);
  }
  std::sort(list.begin(), list.end());
  const double median = list[list.size() / 2];
  spreadList.push_back((list[list.size() * 3 / 4] - list[list.size() / 4]) / median);
  return median;
}

} // namespace msc
