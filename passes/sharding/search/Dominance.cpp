// Options that another one makes superfluous.
#include "passes/sharding/search/Workspace.h"

#include <algorithm>

namespace msc::search {

namespace {

/// How much more one option costs than another at least: minus infinity if the other may be impossible where it is not.
double atLeast(double a, double b) {
  return a == infinity ? infinity : a - b;
}

/// The least of `count` differences that lie `step` apart. Several at a time: one minimum would wait for the other.
double leastDifference(const double *a, const double *b, size_t count, size_t step) {
  constexpr size_t lanes = 8;
  double least[lanes];
  std::fill_n(least, lanes, infinity);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      least[lane] = std::min(least[lane], atLeast(a[(i + lane) * step], b[(i + lane) * step]));
  for (; i < count; ++i)
    least[0] = std::min(least[0], atLeast(a[i * step], b[i * step]));
  return *std::min_element(least, least + lanes);
}

/// Over all classes of the other variables, the least of cost(a) - cost(b).
double leastDifference(const Factor &factor, size_t axis, int32_t a, int32_t b) {
  const AxisView view = factor.along(axis);
  const double *ofA = factor.costs->values.data() + a * view.behind, *ofB = factor.costs->values.data() + b * view.behind;
  if (view.behind == 1)
    return leastDifference(ofA, ofB, view.before, view.size);
  double least = infinity;
  for (size_t outer = 0; outer < view.before; ++outer)
    least = std::min(least, leastDifference(ofA + outer * view.size * view.behind, ofB + outer * view.size * view.behind, view.behind, 1));
  return least;
}

/// Where a few of the costs of the first option of a variable stand, each with other classes of the other variables.
std::vector<size_t> samplesOf(const AxisView &view) {
  constexpr size_t samples = 8;
  const size_t count = view.before * view.behind, step = std::max<size_t>(1, count / samples);
  std::vector<size_t> places;
  for (size_t i = 0; i < count; i += step)
    places.push_back(i / view.behind * view.size * view.behind + i % view.behind);
  return places;
}

/// A reader pays at most for the items that only the other option asks for.
double leastDifferenceOfReader(const SharedForm &form, size_t reader, int32_t a, int32_t b) {
  const std::vector<int32_t> &own = form.itemsOf[reader][a], &other = form.itemsOf[reader][b];
  double least = 0;
  for (int32_t item : other)
    if (!std::binary_search(own.begin(), own.end(), item)) {
      double dearest = 0;
      for (const std::vector<double> &prices : form.prices)
        dearest = std::max(dearest, prices[item]);
      least -= dearest;
    }
  return least;
}

/// So many items do the readers ask for at most.
size_t mostAsked(const SharedForm &form) {
  size_t most = 0;
  for (const std::vector<std::vector<int32_t>> &classes : form.itemsOf) {
    size_t ofReader = 0;
    for (const std::vector<int32_t> &items : classes)
      ofReader = std::max(ofReader, items.size());
    most += ofReader;
  }
  return most;
}

/// The readers ask for so many items at most, and those may be where a producer's option loses most.
double leastDifferenceOfProducer(const SharedForm &form, size_t most, int32_t a, int32_t b) {
  std::vector<double> differences;
  differences.reserve(form.prices[a].size());
  for (size_t item = 0; item < form.prices[a].size(); ++item)
    differences.push_back(std::min(0.0, atLeast(form.prices[a][item], form.prices[b][item])));
  most = std::min(most, differences.size());
  std::partial_sort(differences.begin(), differences.begin() + most, differences.end());
  double least = 0;
  for (size_t i = 0; i < most; ++i)
    least += differences[i];
  return least;
}

/// `asked`: of a value that the variable produces, mostAsked.
double leastDifference(const Factor &factor, int32_t variable, size_t asked, int32_t a, int32_t b) {
  const size_t axis = factor.axisOf(variable);
  const int32_t ofA = factor.parts[axis]->classOf[a], ofB = factor.parts[axis]->classOf[b];
  if (ofA == ofB)
    return 0;
  if (!factor.shared)
    return leastDifference(factor, axis, ofA, ofB);
  return axis == 0 ? leastDifferenceOfProducer(*factor.shared, asked, ofA, ofB)
                   : leastDifferenceOfReader(*factor.shared, axis - 1, ofA, ofB);
}

class Dominance {
public:
  Dominance(Workspace &workspace, Lowered network) : workspace(workspace), network(std::move(network)) {
    factorsOf.resize(this->network.options.size());
    for (size_t i = 0; i < this->network.factors.size(); ++i)
      for (int32_t variable : this->network.factors[i].scope)
        factorsOf[variable].push_back(i);
  }

  Lowered run(std::optional<int32_t> asItIs) {
    for (size_t variable = 0; variable < factorsOf.size(); ++variable)
      if (asItIs != static_cast<int32_t>(variable))
        prune(static_cast<int32_t>(variable));
    return std::move(network);
  }

private:
  /// Costs where everything else is as cheap as it can be: options that may dominate are among the lowest.
  std::vector<int32_t> champions(int32_t variable) const {
    constexpr size_t most = 6;
    std::vector<std::pair<double, int32_t>> order;
    for (int32_t option = 0; option < network.options[variable]; ++option) {
      double sum = 0;
      for (size_t i : factorsOf[variable])
        if (const Factor &factor = network.factors[i]; factor.costs)
          sum += least(factor, variable, option);
      order.emplace_back(sum, option);
    }
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), most));
    std::vector<int32_t> result;
    for (auto [cost, option] : order)
      result.push_back(option);
    return result;
  }

  double least(const Factor &factor, int32_t variable, int32_t option) const {
    const size_t axis = factor.axisOf(variable);
    const AxisView view = factor.along(axis);
    const size_t behind = view.behind, own = factor.parts[axis]->classOf[option];
    double lowest = infinity;
    for (size_t base = own * behind; base < factor.costs->values.size(); base += view.size * behind)
      lowest = std::min(
          lowest, *std::min_element(factor.costs->values.begin() + base, factor.costs->values.begin() + base + behind));
    return lowest;
  }

  /// Most pairs are told apart by a few entries of the tables; no value of readers makes up for that. Sums in the order of
  /// isDominated, so that rounding cannot make them differ.
  bool isCheaperSomewhere(int32_t option, int32_t by) const {
    double difference = 0;
    for (const Sampled &table : sampled)
      if (const int32_t a = (*table.classOf)[option], b = (*table.classOf)[by]; a != b) {
        const double *ofA = table.values + a * table.stride, *ofB = table.values + b * table.stride;
        double least = infinity;
        for (size_t place : table.places)
          least = std::min(least, atLeast(ofA[place], ofB[place]));
        difference += least;
      }
    return difference < 0;
  }

  bool isDominated(int32_t variable, int32_t option, int32_t by) const {
    if (isCheaperSomewhere(option, by))
      return false;
    double difference = 0;
    for (size_t i = 0; i < factorsOf[variable].size(); ++i) {
      difference += leastDifference(network.factors[factorsOf[variable][i]], variable, asked[i], option, by);
      if (!(difference > -infinity))
        return false;
    }
    return difference > 0 || (difference == 0 && by < option);
  }

  void prune(int32_t variable) {
    std::vector<int32_t> kept = notDominated(variable);
    if (static_cast<int32_t>(kept.size()) == network.options[variable] || kept.empty())
      return;
    for (size_t i : factorsOf[variable])
      network.factors[i] = leftOver(network.factors[i], variable, kept);
    std::vector<int32_t> &origin = network.origin[variable];
    for (int32_t &option : kept)
      option = origin.empty() ? option : origin[option];
    origin = kept;
    network.options[variable] = static_cast<int32_t>(kept.size());
  }

  /// Equal factors around a variable have been looked at before, in this network or in one before it.
  std::vector<int32_t> notDominated(int32_t variable) {
    Workspace::Key key{network.options[variable]};
    for (size_t i : factorsOf[variable]) {
      const Factor &factor = network.factors[i];
      const size_t axis = factor.axisOf(variable);
      key.insert(key.end(), {factor.id(), static_cast<int64_t>(axis), factor.parts[axis]->id});
    }
    auto [known, isNew] = workspace.notDominated.try_emplace(std::move(key));
    if (isNew)
      known->second.options = findNotDominated(variable);
    known->second.lookedAt = workspace.networks;
    return known->second.options;
  }

  Factor leftOver(const Factor &factor, int32_t variable, const std::vector<int32_t> &options) {
    const size_t axis = factor.axisOf(variable);
    Workspace::Key key{factor.id(), static_cast<int64_t>(axis), factor.parts[axis]->id};
    key.insert(key.end(), options.begin(), options.end());
    auto [known, isNew] = workspace.leftOver.try_emplace(std::move(key));
    if (isNew)
      known->second.factor = restrictedAxis(workspace, factor, axis, options);
    known->second.lookedAt = workspace.networks;
    Factor left = factor;
    left.parts[axis] = known->second.factor.parts[axis];
    left.costs = known->second.factor.costs;
    left.shared = known->second.factor.shared;
    return left;
  }

  std::vector<int32_t> findNotDominated(int32_t variable) {
    std::vector<int32_t> kept;
    std::vector<char> isOut(network.options[variable]); // rounded differences may go round in a circle: these dominate no more
    const std::vector<int32_t> strong = champions(variable);
    asked.clear();
    sampled.clear();
    for (size_t i : factorsOf[variable]) {
      const Factor &factor = network.factors[i];
      const size_t axis = factor.axisOf(variable);
      asked.push_back(factor.shared && axis == 0 ? mostAsked(*factor.shared) : 0);
      if (factor.costs)
        sampled.push_back({factor.costs->values.data(), factor.along(axis).behind, &factor.parts[axis]->classOf, samplesOf(factor.along(axis))});
    }
    for (int32_t option = 0; option < network.options[variable]; ++option) {
      isOut[option] = std::ranges::any_of(strong, [&](int32_t by) { return by != option && !isOut[by] && isDominated(variable, option, by); });
      if (!isOut[option])
        kept.push_back(option);
    }
    return kept;
  }

  /// A few costs of a table of the variable being pruned.
  struct Sampled {
    const double *values;
    size_t stride; ///< from one class of the variable to the next
    const std::vector<int32_t> *classOf;
    std::vector<size_t> places; ///< of the first class
  };

  Workspace &workspace;
  Lowered network;
  std::vector<std::vector<size_t>> factorsOf;
  std::vector<size_t> asked; ///< of the variable being pruned: mostAsked of each of its factors
  std::vector<Sampled> sampled;
};

} // namespace

Lowered withoutDominated(Workspace &workspace, Lowered network, std::optional<int32_t> asItIs) {
  return Dominance(workspace, std::move(network)).run(asItIs);
}

} // namespace msc::search
