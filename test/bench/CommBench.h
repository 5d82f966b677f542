// What the communicator benchmarks share.
#pragma once

#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <vector>

namespace msc::bench {

using Clock = std::chrono::steady_clock;

inline double microseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

/// Best and median of a list of times.
struct Times {
  double best = 0, median = 0;
};
inline Times timesOf(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return {list.front(), list[list.size() / 2]};
}

/// Runs with less than half a second in total, but at least five times.
inline int repetitions(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>((int64_t{128} << 20) / std::max<int64_t>(bytes, 1), 5, 400));
}

/// Ties the calling thread to one core: the kernel of a small virtual machine packs threads onto one otherwise.
inline void pinTo(int64_t index) {
  cpu_set_t allowed, one;
  pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed);
  int64_t wanted = index % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
      return;
    }
}

/// Times `run` between barriers; the result is the slowest member's time of every repetition.
template <typename Run> Times timeTogether(comm::Group &group, int64_t bytes, Run run) {
  const comm::OperationLabel label{"bench", ""};
  std::vector<double> times;
  for (int i = 0, count = repetitions(bytes) + 3; i < count; ++i) {
    (void)group.barrier(label);
    Clock::time_point start = Clock::now();
    run();
    double own = microseconds(start), slowest = 0;
    (void)group.allReduce(&own, &slowest, 1, comm::ElementType::F64, ReduceKind::Max, label);
    if (i >= 3)
      times.push_back(slowest);
  }
  return timesOf(times);
}

constexpr int64_t kSizes[] = {8, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};

inline std::string sizeText(int64_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : bytes >= 1024 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes) + " B";
}

} // namespace msc::bench
