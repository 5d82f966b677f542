// One seed, the same choices on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace msc::e2e {

/// Choices of a test case. Not std::uniform_int_distribution: its results differ between libraries.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed * 0x9E3779B97F4A7C15u + 1) {}

  /// A whole number in [0, count).
  int64_t below(int64_t count) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(count)); }
  /// A whole number in [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// True in `percent` of 100 cases.
  bool chance(int64_t percent) { return below(100) < percent; }
  /// In [low, high).
  double real(double low, double high) { return low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53; }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

private:
  std::mt19937_64 engine;
};

} // namespace msc::e2e
