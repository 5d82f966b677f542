// Assignments between two others.
#pragma once

#include "passes/sharding/search/Descent.h"

#include <span>

namespace msc::search {

/// The first variables of a list take what they have in one assignment, the rest what they have in the other; variables that are not in
/// the list take what is cheapest beside those. Where a price makes all layers of a network change at once, some of them do here.
class Crossings {
public:
  /// Holds a reference to the network.
  Crossings(const CostNetwork &network, std::span<const int32_t> list, const Choice &first, const Choice &rest);

  /// At how many variables of the list the two assignments differ.
  size_t size() const { return differing.size(); }
  /// So many of these, from 0 to size(), are as in the first assignment. Valid until the next call.
  const Choice &at(size_t count);

private:
  std::vector<int32_t> differing, others;
  const Choice first, rest;
  Neighbourhood neighbourhood;
};

} // namespace msc::search
