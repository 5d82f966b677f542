#include "passes/sharding/search/Crossings.h"

#include <algorithm>

namespace msc::search {

Crossings::Crossings(const CostNetwork &network, std::span<const int32_t> list, const Choice &first, const Choice &rest)
    : first(first), rest(rest), neighbourhood(network, rest) {
  std::vector<char> isListed(rest.size());
  for (int32_t variable : list) {
    isListed[variable] = 1;
    if (first[variable] != rest[variable])
      differing.push_back(variable);
  }
  for (size_t variable = 0; variable < rest.size(); ++variable)
    if (!isListed[variable])
      others.push_back(static_cast<int32_t>(variable));
}

const Choice &Crossings::at(size_t count) {
  for (size_t i = 0; i < differing.size(); ++i)
    neighbourhood.set(differing[i], (i < count ? first : rest)[differing[i]]);
  for (int32_t variable : others) {
    const std::vector<double> &costs = neighbourhood.costsOf(variable);
    neighbourhood.set(variable, static_cast<int32_t>(std::ranges::min_element(costs) - costs.begin()));
  }
  return neighbourhood.choice();
}

} // namespace msc::search
