// Costs with other variables.
#pragma once

#include "passes/sharding/search/Repeat.h"

#include <functional>

namespace msc::search {

using VariableMap = std::function<int32_t(int32_t)>;

/// Appends terms with their variables renamed; every cost counts `times`, which is > 0. The new variables may coincide.
void append(CostNetwork &to, const Terms &terms, const VariableMap &rename, double times = 1);

/// Representatives of the options of a variable, by its new number; null: it keeps all.
using OptionMap = std::function<const std::vector<int32_t> *(int32_t)>;

/// Terms with fewer options of some variables, still in the old numbering.
Terms projected(const Terms &terms, const std::vector<int32_t> &options, const OptionMap &kept);

/// The number of a variable of section terms, of whatever sign.
inline int32_t variableOf(int32_t reference) {
  return reference < 0 ? ~reference : reference;
}

} // namespace msc::search
