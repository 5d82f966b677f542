// What the searches of Search.h share.
//
// Prices are bounds at first: what is found is priced exactly, and found anew, until it does not change any more.
#pragma once

#include "passes/sharding/Search.h"

namespace msc::passes {

/// What a solution says of rounds, in words of the problem.
SearchResult resultOf(const Problem &problem, const StepModel &model, const RoundsModel &rounds, const search::RepeatedSolution &found);

/// Whether they say the same.
bool isSame(const SearchResult &a, const SearchResult &b);

/// With what is found, so many that are nearly as good, and twice as many each time: solving a network with many options takes longer
/// than pricing them. Few at first would leave bounds among assignments that cost the same: which of them is found then depends on
/// what was priced, so that a dump and its network may differ.
class PricedAtOnce {
public:
  /// `variables`: of the network.
  explicit PricedAtOnce(size_t variables = 0) : most(std::max<size_t>(1024, 4 * variables)) {}

  size_t next() { return std::min(count *= 2, most); }

private:
  size_t count = 32, most;
};

/// Prices so much that is near the least and costs less than what is known, with the first and the last rounds apart. `added` as in
/// RoundsModel::network.
void priceEnds(RoundsModel &rounds, const search::RepeatedChoice &known, size_t count, const RoundsModel::Amounts &added = {},
               const search::SolveLimits &limits = {});

/// The cheapest ones, with rounds one after the other, or, of a network that is large then, with rounds between the first and the last
/// alike.
std::vector<search::RepeatedChoice> nearestChoices(const search::RepeatedNetwork &network, size_t count, const search::SolveLimits &limits = {});

} // namespace msc::passes
