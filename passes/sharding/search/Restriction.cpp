// Networks with fewer options.
#include "passes/sharding/search/Workspace.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace msc::search {

Factor restrictedAxis(Workspace &workspace, const Factor &factor, size_t axis, const std::vector<int32_t> &options) {
  std::vector<int32_t> labels;
  for (int32_t option : options)
    labels.push_back(factor.parts[axis]->classOf[option]);
  Factor result = factor;
  result.parts[axis] = workspace.partitions.of(labels);
  Partition kept; // the classes that remain, in their new order
  for (int32_t option : result.parts[axis]->first)
    kept.first.push_back(labels[option]);
  if (factor.shared) {
    auto form = std::make_shared<SharedForm>(*factor.shared);
    auto keep = [&](auto &rows) {
      auto all = std::move(rows);
      rows.clear();
      for (int32_t c : kept.first)
        rows.push_back(all[c]);
    };
    axis == 0 ? keep(form->prices) : keep(form->itemsOf[axis - 1]);
    form->id = workspace.newId();
    result.shared = std::move(form);
    return result;
  }
  result.costs = workspace.costs(keepFirst(factor.costs->values, factor.along(axis), kept));
  return result;
}

namespace {

/// Which items readers ask for that always ask for the same.
std::vector<char> askedAlways(const SharedForm &form) {
  std::vector<char> asked(form.prices.empty() ? 0 : form.prices[0].size());
  for (const std::vector<std::vector<int32_t>> &sets : form.itemsOf)
    if (sets.size() == 1)
      for (int32_t item : sets[0])
        asked[item] = 1;
  return asked;
}

Factor withoutDecidedAxes(Factor table) {
  for (size_t axis = table.scope.size(); axis-- > 0;)
    if (table.parts[axis]->classes() == 1) {
      table.scope.erase(table.scope.begin() + static_cast<std::ptrdiff_t>(axis));
      table.parts.erase(table.parts.begin() + static_cast<std::ptrdiff_t>(axis));
    }
  return table;
}

} // namespace

/// Of a value with such readers.
static std::vector<Factor> withoutDecidedReaders(Workspace &workspace, const Factor &factor) {
  const SharedForm &form = *factor.shared;
  auto left = std::make_shared<SharedForm>();
  left->prices = form.prices;
  const std::vector<char> asked = askedAlways(form);
  std::vector<double> always;
  for (std::vector<double> &prices : left->prices) {
    double sum = 0;
    for (size_t item = 0; item < prices.size(); ++item)
      if (asked[item])
        sum += std::exchange(prices[item], 0.0);
    always.push_back(sum);
  }
  Factor ofProducer{.scope = {factor.scope[0]}, .parts = {factor.parts[0]}, .costs = workspace.costs(std::move(always)), .shared = nullptr};
  Factor ofReaders{.scope = ofProducer.scope, .parts = ofProducer.parts, .costs = nullptr, .shared = nullptr};
  std::vector<Factor> result{withoutDecidedAxes(std::move(ofProducer))};
  for (size_t reader = 0; reader < form.itemsOf.size(); ++reader)
    if (form.itemsOf[reader].size() > 1) {
      ofReaders.scope.push_back(factor.scope[reader + 1]);
      ofReaders.parts.push_back(factor.parts[reader + 1]);
      left->itemsOf.push_back(form.itemsOf[reader]);
    }
  if (left->itemsOf.size() == 1) {
    ofReaders.costs = workspace.costs(tabulated(*left, {0, 1}));
    result.push_back(withoutDecidedAxes(std::move(ofReaders)));
  } else if (!left->itemsOf.empty()) {
    left->id = workspace.newId();
    ofReaders.shared = std::move(left);
    result.push_back(std::move(ofReaders));
  }
  return result;
}

std::vector<Factor> withoutDecided(Workspace &workspace, Factor factor) {
  if (!factor.shared)
    return {withoutDecidedAxes(std::move(factor))};
  if (std::ranges::none_of(factor.shared->itemsOf, [](const auto &sets) { return sets.size() == 1; }))
    return {std::move(factor)};
  Workspace::Key key{factor.shared->id};
  for (PartitionRef part : factor.parts)
    key.push_back(part->id);
  auto [known, isNew] = workspace.undecided.try_emplace(std::move(key));
  const std::vector<int32_t> scope = factor.scope;
  if (isNew) { // equal layers stay equal
    std::iota(factor.scope.begin(), factor.scope.end(), 0);
    known->second = withoutDecidedReaders(workspace, factor);
  }
  std::vector<Factor> result = known->second;
  for (Factor &one : result)
    for (int32_t &variable : one.scope)
      variable = scope[variable];
  return result;
}

/// Their numbers and origins alone.
static void keepOptions(Lowered &network, int32_t variable, const std::vector<int32_t> &options) {
  network.options[variable] = static_cast<int32_t>(options.size());
  std::vector<int32_t> origin;
  for (int32_t option : options)
    origin.push_back(network.origin[variable].empty() ? option : network.origin[variable][option]);
  network.origin[variable] = std::move(origin);
}

Lowered restricted(Workspace &workspace, const Lowered &network, int32_t variable,
                   const std::vector<int32_t> &options) {
  Lowered result = network;
  keepOptions(result, variable, options);
  for (Factor &factor : result.factors)
    if (size_t axis = factor.axisOf(variable); axis < factor.scope.size())
      factor = restrictedAxis(workspace, factor, axis, options);
  return result;
}

Lowered restricted(Workspace &workspace, Lowered network, const std::vector<std::vector<int32_t>> &options) {
  for (size_t variable = 0; variable < options.size(); ++variable)
    if (!options[variable].empty())
      keepOptions(network, static_cast<int32_t>(variable), options[variable]);
  for (Factor &factor : network.factors)
    for (size_t axis = 0; axis < factor.scope.size(); ++axis)
      if (const std::vector<int32_t> &left = options[factor.scope[axis]]; !left.empty())
        factor = restrictedAxis(workspace, factor, axis, left);
  return network;
}

namespace {

/// With the least cost of all classes of an axis.
Factor leastAlong(Workspace &workspace, Factor factor, size_t axis) {
  const PartitionRef one = workspace.partitions.identity(1);
  if (factor.shared) {
    auto form = std::make_shared<SharedForm>(*factor.shared);
    if (axis == 0) {
      for (const std::vector<double> &prices : form->prices)
        for (size_t item = 0; item < prices.size(); ++item)
          form->prices[0][item] = std::min(form->prices[0][item], prices[item]);
      form->prices.resize(1);
    } else { // what all of them ask for
      std::vector<std::vector<int32_t>> &sets = form->itemsOf[axis - 1];
      for (const std::vector<int32_t> &set : sets)
        std::erase_if(sets[0], [&, both = set](int32_t item) { return !std::ranges::binary_search(both, item); });
      sets.resize(1);
    }
    form->id = workspace.newId();
    factor.shared = std::move(form);
  } else {
    const AxisView view = factor.along(axis);
    std::vector<double> least(view.before * view.behind, infinity);
    for (size_t outer = 0; outer < view.before; ++outer)
      for (size_t i = 0; i < view.size; ++i)
        for (size_t inner = 0; inner < view.behind; ++inner)
          least[outer * view.behind + inner] =
              std::min(least[outer * view.behind + inner], factor.costs->values[(outer * view.size + i) * view.behind + inner]);
    factor.costs = workspace.costs(std::move(least));
  }
  factor.parts[axis] = one;
  return factor;
}

} // namespace

Lowered leastOf(Workspace &workspace, const Lowered &network, int32_t variable, const std::vector<int32_t> &options) {
  Lowered result = restricted(workspace, network, variable, options);
  result.options[variable] = 1;
  result.origin[variable].resize(1);
  for (Factor &factor : result.factors)
    if (size_t axis = factor.axisOf(variable); axis < factor.scope.size())
      factor = leastAlong(workspace, std::move(factor), axis);
  return result;
}

/// Of each class along an axis of a table.
static std::vector<double> leastOfClasses(const Factor &factor, size_t axis) {
  const AxisView view = factor.along(axis);
  std::vector<double> least(view.size, infinity);
  for (size_t outer = 0; outer < view.before; ++outer)
    for (size_t i = 0; i < view.size; ++i)
      for (size_t inner = 0; inner < view.behind; ++inner)
        least[i] = std::min(least[i], factor.costs->values[(outer * view.size + i) * view.behind + inner]);
  return least;
}

std::vector<double> leastOfOptions(const Lowered &network, int32_t variable) {
  std::vector<double> sums(network.options[variable]);
  for (const Factor &factor : network.factors) {
    const size_t axis = factor.axisOf(variable);
    if (axis == factor.scope.size() || (factor.shared && axis > 0))
      continue;
    std::vector<double> ofClasses;
    if (factor.shared)
      for (const std::vector<double> &prices : factor.shared->prices)
        ofClasses.push_back(prices.empty() ? 0 : *std::ranges::min_element(prices));
    else
      ofClasses = leastOfClasses(factor, axis);
    for (size_t option = 0; option < sums.size(); ++option)
      sums[option] += ofClasses[factor.parts[axis]->classOf[option]];
  }
  return sums;
}

} // namespace msc::search
