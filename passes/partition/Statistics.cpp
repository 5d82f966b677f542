#include "passes/partition/Statistics.h"

#include <algorithm>

namespace msc::passes {

bool isStatistic(int64_t elements, std::span<const ComputedFrom> operands) {
  constexpr int64_t least = 4; // times more
  return std::ranges::any_of(operands, [&](const ComputedFrom &from) { return from.elements > 1 && from.elements >= least * elements; }) ||
         (!operands.empty() && std::ranges::all_of(operands, [](const ComputedFrom &from) { return from.elements == 1 || from.isStatistic; }));
}

} // namespace msc::passes
