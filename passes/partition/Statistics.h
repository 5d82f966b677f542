// What is so small that it is kept instead of computed twice. Plain data, no IR: `msc-reuse-statistics` and the model of the search ask
// the same.
#pragma once

#include <cstdint>
#include <span>

namespace msc::passes {

/// What a value is computed from.
struct ComputedFrom {
  int64_t elements = 1;
  bool isStatistic = false;
};

/// A statistic is so much smaller than what it was computed from that it is kept: made of much more, or of statistics only.
bool isStatistic(int64_t elements, std::span<const ComputedFrom> operands);

} // namespace msc::passes
