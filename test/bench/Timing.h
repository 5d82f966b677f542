// Measuring: medians of repeated runs, interleaved so that both sides see the same machine.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace msc::bench {

/// Seconds that `work` takes.
template <typename F> double secondsOf(F work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

} // namespace msc::bench
