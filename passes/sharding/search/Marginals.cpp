// What every option of every variable costs, from one elimination: once more over its buckets, against their order.
#include "passes/sharding/search/Elimination.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace msc::search {

/// Factors over one variable become one for each variable.
static std::vector<Factor> withUnariesMerged(Workspace &workspace, std::vector<Factor> list, const std::vector<int32_t> &options) {
  std::map<int32_t, std::vector<const Factor *>> unaries;
  for (const Factor &factor : list)
    if (factor.scope.size() == 1)
      unaries[factor.scope[0]].push_back(&factor);
  std::vector<Factor> merged;
  for (const auto &[variable, same] : unaries) {
    if (same.size() == 1) {
      merged.push_back(*same.front());
      continue;
    }
    std::vector<double> sums(options[variable]);
    for (const Factor *factor : same)
      for (size_t option = 0; option < sums.size(); ++option)
        sums[option] += factor->costs->values[factor->parts[0]->classOf[option]];
    merged.push_back(unary(workspace, variable, sums));
  }
  for (Factor &factor : list)
    if (factor.scope.size() > 1)
      merged.push_back(std::move(factor));
  return merged;
}

/// Factors over these variables alone: all others are minimised over, the one with the smallest table first.
std::optional<std::vector<Factor>> Elimination::minimisedTo(std::vector<Factor> list, const std::vector<int32_t> &left) {
  while (true) {
    list = withUnariesMerged(workspace, std::move(list), options);
    std::map<int32_t, FactorRefs> around; // what is left to be minimised over
    for (const Factor &factor : list)
      for (int32_t variable : factor.scope)
        if (std::find(left.begin(), left.end(), variable) == left.end())
          around[variable].push_back(&factor);
    if (around.empty())
      return list;
    std::tuple<double, double, int32_t> least{infinity, infinity, -1}; // entries, operations
    for (const auto &[variable, bucket] : around) {
      const double entries = contextSize(bucket, {variable});
      least = std::min(least, {entries, entries * finest(workspace, bucket, variable, options[variable])->classes(), variable});
    }
    const auto [entries, work, next] = least;
    if (entries > double(limits.tableEntries) || entries + double(allEntries) > double(limits.allEntries) ||
        work + double(operations) > double(limits.operations))
      return std::nullopt;
    Factor made = reduceOnce(around[next], next);
    std::erase_if(list, [&, next = next](const Factor &factor) { return factor.axisOf(next) < factor.scope.size(); });
    if (!made.scope.empty())
      list.push_back(std::move(made));
  }
}

std::optional<std::vector<std::vector<double>>> Elimination::costsOfAll(const std::vector<int32_t> &variables) {
  assert(isExact() && kept.empty() && std::ranges::all_of(buckets, [](const Bucket &bucket) { return bucket.value < 0; }));
  std::vector<int32_t> bucketOf(options.size()), ofFactor(factors.size(), -1), above(buckets.size(), -1);
  for (size_t b = 0; b < buckets.size(); ++b) {
    bucketOf[buckets[b].variables[0]] = static_cast<int32_t>(b);
    for (int32_t number : buckets[b].factors)
      ofFactor[number] = static_cast<int32_t>(b);
  }
  for (size_t b = 0; b < buckets.size(); ++b)
    if (buckets[b].result >= 0)
      above[b] = ofFactor[buckets[b].result];
  std::vector<char> isAsked(buckets.size());
  for (int32_t variable : variables)
    for (int32_t b = bucketOf[variable]; b >= 0 && !isAsked[b]; b = above[b])
      isAsked[b] = 1;

  // Of each bucket: what all costs that it is not made of, over the variables of its result.
  std::vector<std::vector<Factor>> outside(buckets.size());
  for (size_t b = buckets.size(); b-- > 0;) {
    if (!isAsked[b] || above[b] < 0)
      continue;
    std::vector<Factor> others = outside[above[b]];
    for (int32_t number : buckets[above[b]].factors)
      if (number != buckets[b].result)
        others.push_back(factors[number]);
    std::optional<std::vector<Factor>> left = minimisedTo(std::move(others), factors[buckets[b].result].scope);
    if (!left)
      return std::nullopt;
    outside[b] = std::move(*left);
  }
  std::vector<std::vector<double>> costs;
  for (int32_t variable : variables) {
    const Bucket &bucket = buckets[bucketOf[variable]];
    std::vector<Factor> all = outside[bucketOf[variable]];
    for (int32_t number : bucket.factors)
      all.push_back(factors[number]);
    const std::optional<std::vector<Factor>> left = minimisedTo(std::move(all), {variable});
    if (!left)
      return std::nullopt;
    std::vector<double> &ofOptions = costs.emplace_back(options[variable]);
    for (const Factor &factor : *left)
      for (size_t option = 0; option < ofOptions.size(); ++option)
        ofOptions[option] += factor.costs->values[factor.parts[0]->classOf[option]];
    // What is not connected with the variable is in the constant alone.
    const double least = *std::min_element(ofOptions.begin(), ofOptions.end());
    for (double &cost : ofOptions)
      cost = least < infinity ? constant + (cost - least) : infinity;
  }
  return costs;
}

} // namespace msc::search
