// What every option of every variable costs, from one elimination: once more over its buckets, against their order.
#include "passes/sharding/search/Elimination.h"

#include <algorithm>
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

/// Factors over these variables alone: all others are minimised over, the one with the least work first.
std::vector<Factor> Elimination::minimisedTo(std::vector<Factor> list, const std::vector<int32_t> &left) {
  while (true) {
    list = withUnariesMerged(workspace, std::move(list), options);
    int32_t next = -1;
    double least = infinity;
    auto around = [&](int32_t variable) {
      FactorRefs bucket;
      for (const Factor &factor : list)
        if (factor.axisOf(variable) < factor.scope.size())
          bucket.push_back(&factor);
      return bucket;
    };
    for (const Factor &factor : list)
      for (int32_t variable : factor.scope)
        if (variable != next && std::find(left.begin(), left.end(), variable) == left.end()) {
          const FactorRefs bucket = around(variable);
          const double work = contextSize(bucket, {variable}) * finest(workspace, bucket, variable, options[variable])->classes();
          if (work < least) {
            least = work;
            next = variable;
          }
        }
    if (next < 0)
      return list;
    operations += static_cast<int64_t>(least);
    Factor made = reduce(workspace, around(next), next, options[next]);
    std::erase_if(list, [&](const Factor &factor) { return factor.axisOf(next) < factor.scope.size(); });
    if (!made.scope.empty())
      list.push_back(std::move(made));
  }
}

std::vector<std::vector<double>> Elimination::costsOfAll(const std::vector<int32_t> &variables) {
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
    outside[b] = minimisedTo(std::move(others), factors[buckets[b].result].scope);
  }
  std::vector<std::vector<double>> costs;
  for (int32_t variable : variables) {
    const Bucket &bucket = buckets[bucketOf[variable]];
    std::vector<Factor> all = outside[bucketOf[variable]];
    for (int32_t number : bucket.factors)
      all.push_back(factors[number]);
    std::vector<double> &ofOptions = costs.emplace_back(options[variable]);
    for (const Factor &factor : minimisedTo(std::move(all), {variable}))
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
