// Options that another one makes superfluous.
#include "passes/sharding/search/Workspace.h"

#include <algorithm>

namespace msc::search {

namespace {

/// How much more one option costs than another at least: minus infinity if the other may be impossible where it is not.
double atLeast(double a, double b) {
  return a == infinity ? infinity : a - b;
}

/// Over all classes of the other variables, the least of cost(a) - cost(b).
double leastDifference(const Factor &factor, size_t axis, int32_t a, int32_t b) {
  const AxisView view = factor.along(axis);
  double least = infinity;
  for (size_t outer = 0; outer < view.before; ++outer) {
    const double *base = factor.costs->values.data() + outer * view.size * view.behind;
    for (size_t i = 0; i < view.behind; ++i)
      least = std::min(least, atLeast(base[a * view.behind + i], base[b * view.behind + i]));
  }
  return least;
}

/// No less than leastDifference: that over a few of the classes of the other variables. Costs little.
double differenceSomewhere(const Factor &factor, size_t axis, int32_t a, int32_t b) {
  constexpr size_t samples = 8;
  const AxisView view = factor.along(axis);
  const size_t size = view.size, behind = view.behind;
  const double *values = factor.costs->values.data();
  const size_t count = factor.costs->values.size() / size, step = std::max<size_t>(1, count / samples);
  double least = infinity;
  for (size_t i = 0; i < count; i += step) {
    const double *base = values + i / behind * size * behind + i % behind;
    least = std::min(least, atLeast(base[a * behind], base[b * behind]));
  }
  return least;
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
  bool isCheaperSomewhere(int32_t variable, int32_t option, int32_t by) const {
    double difference = 0;
    for (size_t i : factorsOf[variable])
      if (const Factor &factor = network.factors[i]; factor.costs) {
        const size_t axis = factor.axisOf(variable);
        const std::vector<int32_t> &classOf = factor.parts[axis]->classOf;
        if (classOf[option] != classOf[by])
          difference += differenceSomewhere(factor, axis, classOf[option], classOf[by]);
      }
    return difference < 0;
  }

  bool isDominated(int32_t variable, int32_t option, int32_t by) const {
    if (isCheaperSomewhere(variable, option, by))
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
    std::vector<int32_t> kept;
    std::vector<char> isOut(network.options[variable]); // rounded differences may go round in a circle: these dominate no more
    const std::vector<int32_t> strong = champions(variable);
    asked.clear();
    for (size_t i : factorsOf[variable]) {
      const Factor &factor = network.factors[i];
      asked.push_back(factor.shared && factor.axisOf(variable) == 0 ? mostAsked(*factor.shared) : 0);
    }
    for (int32_t option = 0; option < network.options[variable]; ++option) {
      isOut[option] = std::ranges::any_of(strong, [&](int32_t by) { return by != option && !isOut[by] && isDominated(variable, option, by); });
      if (!isOut[option])
        kept.push_back(option);
    }
    if (static_cast<int32_t>(kept.size()) == network.options[variable] || kept.empty())
      return;
    for (size_t i : factorsOf[variable]) {
      Factor &factor = network.factors[i];
      factor = restrictedAxis(workspace, factor, factor.axisOf(variable), kept);
    }
    std::vector<int32_t> &origin = network.origin[variable];
    for (int32_t &option : kept)
      option = origin.empty() ? option : origin[option];
    origin = kept;
    network.options[variable] = static_cast<int32_t>(kept.size());
  }

  Workspace &workspace;
  Lowered network;
  std::vector<std::vector<size_t>> factorsOf;
  std::vector<size_t> asked; ///< of the variable being pruned: mostAsked of each of its factors
};

} // namespace

Lowered withoutDominated(Workspace &workspace, Lowered network, std::optional<int32_t> asItIs) {
  return Dominance(workspace, std::move(network)).run(asItIs);
}

} // namespace msc::search
