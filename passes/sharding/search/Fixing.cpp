#include "passes/sharding/search/Fixing.h"

#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Sweep.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace msc::search {

namespace {

/// A network without values of several readers, which costs no more, whatever is chosen: each reader pays a share of what it asks for.
class Relaxation {
public:
  /// `known`: to begin with.
  Relaxation(Workspace &workspace, const Lowered &network, Shares known = {}) : workspace(workspace), network(network), shares(std::move(known)) {
    const bool areKnown = !shares.empty();
    for (const Factor &factor : network.factors)
      if (factor.shared) {
        values.push_back(&factor);
        if (!areKnown)
          shares.push_back(firstShares(*factor.shared));
      }
    calls = areKnown ? callsBehindKnown : 0;
  }

  Lowered easy() const {
    Lowered result{network.options, network.origin, {}, network.constant};
    for (const Factor &factor : network.factors)
      if (!factor.shared)
        result.factors.push_back(factor);
    for (size_t i = 0; i < values.size(); ++i)
      addShares(*values[i], shares[i], result.factors);
    return result;
  }
  Shares taken() && { return std::move(shares); }

  /// Readers that ask for an item in the cheapest assignment pay more of it, as the average over all calls. Where no shares help any
  /// more, that is as good as the linear relaxation.
  /// Returns the bound before that; nothing: it is not known.
  std::optional<double> improve(const EliminationLimits &limits, int64_t &operations) {
    ++calls;
    const Lowered before = easy();
    const Elimination elimination(workspace, before, limits);
    operations += workOf(elimination, before);
    if (!elimination.isFinished())
      return std::nullopt;
    if (!(elimination.bound() < infinity))
      return elimination.bound();
    Choice choice(network.options.size());
    elimination.decode(choice);
    for (size_t i = 0; i < values.size(); ++i)
      shift(*values[i], choice, shares[i]);
    return elimination.bound();
  }

private:
  using Share = Shares::value_type; ///< [reader][item]; those of an item add up to 1
  static constexpr int callsBehindKnown = 3;

  /// Readers that ask for an item whatever they take pay it; where there is none, all that may ask do.
  static Share firstShares(const SharedForm &form) {
    const size_t items = form.prices[0].size();
    Share shares;
    std::vector<double> may(items), must(items); // how many readers
    for (const std::vector<std::vector<int32_t>> &sets : form.itemsOf) {
      std::vector<double> &asking = shares.emplace_back(items); // item sets
      for (const std::vector<int32_t> &set : sets)
        for (int32_t item : set)
          ++asking[item];
      for (size_t item = 0; item < items; ++item) {
        may[item] += asking[item] > 0;
        must[item] += asking[item] == static_cast<double>(sets.size());
      }
    }
    for (size_t r = 0; r < shares.size(); ++r)
      for (size_t item = 0; item < items; ++item) {
        double &share = shares[r][item];
        const bool pays = must[item] > 0 ? share == static_cast<double>(form.itemsOf[r].size()) : share > 0;
        share = pays ? 1 / (must[item] > 0 ? must[item] : may[item]) : 0;
      }
    return shares;
  }

  void addShares(const Factor &value, const Share &shares, std::vector<Factor> &factors) const {
    const SharedForm &form = *value.shared;
    for (size_t r = 0; r < form.itemsOf.size(); ++r) {
      std::vector<double> costs;
      for (size_t c = 0; c < form.prices.size(); ++c)
        for (const std::vector<int32_t> &set : form.itemsOf[r]) {
          double sum = 0;
          for (int32_t item : set)
            if (shares[r][item] > 0)
              sum += form.prices[c][item] * shares[r][item];
          costs.push_back(sum);
        }
      factors.push_back({.scope = {value.scope[0], value.scope[r + 1]}, .parts = {value.parts[0], value.parts[r + 1]},
                         .costs = workspace.costs(std::move(costs)), .shared = nullptr});
    }
  }

  void shift(const Factor &value, const Choice &choice, Share &shares) const {
    const SharedForm &form = *value.shared;
    std::vector<std::vector<size_t>> asking(form.prices[0].size()); // readers, of each item
    for (size_t r = 0; r < form.itemsOf.size(); ++r)
      for (int32_t item : form.itemsOf[r][value.parts[r + 1]->classOf[choice[value.scope[r + 1]]]])
        asking[item].push_back(r);
    const double step = 1 / (1.0 + static_cast<double>(calls));
    for (size_t item = 0; item < asking.size(); ++item) {
      if (asking[item].empty())
        continue;
      for (std::vector<double> &ofReader : shares)
        ofReader[item] *= 1 - step;
      for (size_t r : asking[item])
        shares[r][item] += step / static_cast<double>(asking[item].size());
    }
  }

  Workspace &workspace;
  const Lowered &network;
  std::vector<const Factor *> values;
  Shares shares; ///< the same whatever the producer takes
  int calls = 0;
};

/// Logarithm of their number.
double assignmentsOf(const Lowered &network) {
  double log = 0;
  for (int32_t options : network.options)
    log += std::log2(options);
  return log;
}

} // namespace

/// What the network of bounds may take.
static constexpr EliminationLimits mostOfBound{int64_t(1) << 20, int64_t(1) << 30, int64_t(1) << 24};

/// With so many operations at most.
static EliminationLimits ofBound(int64_t most) {
  return {mostOfBound.tableEntries, std::min(most, mostOfBound.operations), mostOfBound.allEntries};
}

bool hasEasyBounds(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations) {
  return easyBound(workspace, network, most, operations).has_value();
}

std::optional<int32_t> hubOf(const Lowered &network) {
  constexpr int32_t many = 8;
  std::vector<int32_t> factors(network.options.size());
  for (const Factor &factor : network.factors)
    for (size_t axis = 0; axis < factor.scope.size(); ++axis)
      factors[factor.scope[axis]] += factor.shared && axis == 0 ? static_cast<int32_t>(factor.scope.size()) - 1 : 1;
  int32_t hub = -1;
  for (int32_t variable = 0; variable < static_cast<int32_t>(factors.size()); ++variable)
    if (network.options[variable] > 1 && factors[variable] >= many && (hub < 0 || factors[variable] > factors[hub]))
      hub = variable;
  return hub < 0 ? std::nullopt : std::optional(hub);
}

bool hasEasyBoundsTied(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations) {
  const std::optional<int32_t> hub = hubOf(network);
  return hub && hasEasyBounds(workspace, restricted(workspace, network, *hub, {0}), most, operations);
}

bool hasEasyBoundsSomehow(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations) {
  return hasEasyBounds(workspace, network, most, operations) || hasEasyBoundsTied(workspace, network, most, operations);
}

int64_t littleBeside(double exactly) {
  constexpr double share = 1.0 / 512, least = 1 << 22;
  return static_cast<int64_t>(std::clamp(share * exactly, least, static_cast<double>(mostOfBound.operations)));
}

std::optional<double> easyBound(Workspace &workspace, const Lowered &network, int64_t most, int64_t &operations, const Shares &known) {
  const Lowered easy = Relaxation(workspace, network, known).easy();
  const Elimination elimination(workspace, easy, ofBound(most));
  operations += workOf(elimination, easy);
  return elimination.isExact() ? std::optional(elimination.bound()) : std::nullopt;
}

std::optional<std::vector<std::vector<double>>> easyBounds(Workspace &workspace, const Lowered &network, const std::vector<int32_t> &variables,
                                                           int64_t most, int64_t &operations, const Shares &known) {
  const Lowered easy = Relaxation(workspace, network, known).easy();
  Elimination elimination(workspace, easy, ofBound(most));
  std::optional<std::vector<std::vector<double>>> bounds;
  if (elimination.isExact())
    bounds = elimination.costsOfAll(variables);
  operations += workOf(elimination, easy);
  return bounds;
}

double improvedBound(Workspace &workspace, const Lowered &network, double enough, int64_t most, int64_t &operations, Shares &shares) {
  constexpr int mostTimes = 16, atLeast = 4;
  Relaxation relaxation(workspace, network, std::move(shares));
  double best = -infinity;
  for (int times = 0; times < mostTimes && best < enough && most > 0; ++times) {
    int64_t spent = 0;
    const std::optional<double> bound = relaxation.improve(ofBound(most), spent);
    operations += spent;
    most -= spent;
    if (!bound)
      break;
    const double gain = *bound - best;
    best = std::max(best, *bound);
    if (times >= atLeast && gain * (mostTimes - times) < enough - best) // it will not be reached
      break;
  }
  shares = std::move(relaxation).taken();
  return best;
}

/// What is known of more assignments holds for some of them, too.
static void raise(std::vector<std::vector<double>> &bounds, const std::vector<std::vector<double>> &others) {
  for (size_t i = 0; i < bounds.size(); ++i)
    for (size_t option = 0; option < bounds[i].size(); ++option)
      bounds[i][option] = std::max(bounds[i][option], others[i][option]);
}

Fixing::Fixing(Workspace &workspace, const CostNetwork &network, Lowered lowered, std::vector<int32_t> variablesGiven, Choice known,
               const SolveLimits &most, int64_t &operations, double margin, Shares sharesKnown)
    : workspace(workspace), network(network), whole{std::move(lowered), {}}, variables(std::move(variablesGiven)),
      limits{std::min(most.tableEntries, mostOfBound.tableEntries), std::min(most.operations, mostOfBound.operations),
             std::min(most.allEntries, mostOfBound.allEntries)},
      operations(operations), mostOperations(std::min(most.operations, operations + (int64_t(1) << 32))), shares(std::move(sharesKnown)) {
  offer(std::move(known));
  for (int32_t variable : variables)
    whole.bounds.emplace_back(whole.network.options[variable], -infinity);
  if (margin < infinity) { // little is left of wide variables, before shares are improved
    whole.bounds = priced(Relaxation(workspace, whole.network, shares).easy(), /*offers=*/true);
    restrict(whole, bestCost + margin * std::abs(bestCost));
  }
  raise(whole.bounds, allBounds(whole.network, /*offers=*/true));
}

void Fixing::offer(Choice choice) {
  choice = descended(network, sweepFrom(network, std::move(choice)).choice);
  ++inVain;
  if (double cost = costOf(network, choice); cost < bestCost || best.empty()) {
    bestCost = cost;
    best = std::move(choice);
    inVain = 0;
  }
}

std::vector<std::vector<double>> Fixing::allBounds(const Lowered &of, bool offers) {
  const int improvements = shares.empty() ? 4 : 2; // more say little more
  Relaxation relaxation(workspace, of, std::move(shares));
  for (int i = 0; i < improvements && hasOperations(); ++i) {
    workspace.forgetReductions(limits.allEntries);
    relaxation.improve(limits, operations);
  }
  const Lowered easy = relaxation.easy();
  shares = std::move(relaxation).taken();
  return priced(easy, offers);
}

/// `offers`: the assignments that the lowest bounds stand for are looked at, too.
std::vector<std::vector<double>> Fixing::priced(const Lowered &easy, bool offers) {
  workspace.forgetReductions(limits.allEntries);
  Elimination elimination(workspace, easy, limits);
  const std::optional<std::vector<std::vector<double>>> known =
      elimination.isExact() && hasOperations() ? elimination.costsOfAll(variables) : std::nullopt;
  operations += workOf(elimination, easy);
  std::vector<std::vector<double>> alone;
  for (int32_t variable : variables) {
    if (known && (!offers || inVain >= mostInVain || elimination.bound() >= bestCost))
      break;
    alone.push_back(easy.options[variable] > 1 ? pricedAlone(easy, variable, offers) : std::vector<double>{-infinity});
  }
  return known ? *known : alone;
}

std::vector<double> Fixing::pricedAlone(const Lowered &easy, int32_t variable, bool offers) {
  constexpr size_t mostOffers = 3;
  const std::vector<double> unknown(easy.options[variable], -infinity);
  if (!hasOperations())
    return unknown;
  workspace.forgetReductions(limits.allEntries);
  const Elimination elimination(workspace, easy, limits, {variable});
  operations += workOf(elimination, easy);
  if (!elimination.isFinished())
    return unknown;
  std::vector<double> costs = elimination.table();
  if (!offers || inVain >= mostInVain)
    return costs;
  std::vector<int32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int32_t option) { return costs[option]; });
  order.resize(std::min(order.size(), mostOffers));
  for (int32_t option : order)
    if (costs[option] < bestCost) {
      Choice choice(easy.options.size());
      choice[variable] = option;
      elimination.decode(choice);
      easy.toOrigin(choice);
      offer(std::move(choice));
    }
  return costs;
}

/// Leaves out all options of a variable but those that are kept, in ascending order.
static void keep(Workspace &workspace, Fixing::Part &part, int32_t variable, std::vector<double> &bounds, const std::vector<int32_t> &kept) {
  part.network = restricted(workspace, part.network, variable, kept);
  for (size_t i = 0; i < kept.size(); ++i)
    bounds[i] = bounds[kept[i]];
  bounds.resize(kept.size());
}

/// False: a variable has no option left.
bool Fixing::restrict(Part &part, double most) const {
  const double dearest = most + 1e-9 * std::abs(most); // by more than rounding
  for (size_t i = 0; i < variables.size(); ++i) {
    std::vector<double> &ofOptions = part.bounds[i];
    std::vector<int32_t> kept;
    for (size_t option = 0; option < ofOptions.size(); ++option)
      if (ofOptions[option] <= dearest)
        kept.push_back(static_cast<int32_t>(option));
    if (kept.empty())
      return false;
    if (kept.size() < ofOptions.size())
      keep(workspace, part, variables[i], ofOptions, kept);
  }
  return true;
}

std::optional<Fixing::Part> Fixing::within(Part part, double most) {
  double before = assignmentsOf(part.network);
  if (!restrict(part, most))
    return std::nullopt;
  for (double now = assignmentsOf(part.network); now > 0 && now < 0.95 * before && hasOperations(); now = assignmentsOf(part.network)) {
    before = now;
    raise(part.bounds, allBounds(part.network, /*offers=*/false));
    if (!restrict(part, most))
      return std::nullopt;
  }
  return part;
}

std::vector<Fixing::Part> Fixing::halves(const Part &part) {
  auto optionsOf = [&](size_t i) { return part.network.options[variables[i]]; };
  size_t widest = 0;
  for (size_t i = 1; i < variables.size(); ++i)
    if (optionsOf(i) > optionsOf(widest))
      widest = i;
  std::vector<Part> result;
  if (variables.empty() || optionsOf(widest) < 2)
    return {};
  std::vector<int32_t> order(optionsOf(widest));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int32_t option) { return part.bounds[widest][option]; });
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  for (std::vector<int32_t> half : {std::vector(order.begin(), middle), std::vector(middle, order.end())}) {
    std::ranges::sort(half);
    result.push_back(part);
    keep(workspace, result.back(), variables[widest], result.back().bounds[widest], half);
    raise(result.back().bounds, allBounds(result.back().network, /*offers=*/false));
  }
  return result;
}

double Fixing::Part::bound() const {
  double bound = -infinity;
  for (const std::vector<double> &ofVariable : bounds)
    bound = std::max(bound, *std::ranges::min_element(ofVariable));
  return bound;
}

} // namespace msc::search
