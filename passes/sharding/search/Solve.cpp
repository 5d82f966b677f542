// Exact solving: elimination, and where tables grow too large, branching with bounds from tables that are split.
#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Fixing.h"
#include "passes/sharding/search/Sweep.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <ranges>

namespace msc::search {

namespace {

/// What is tried of each of many parts.
EliminationLimits little(const SolveLimits &limits) {
  return {std::min(limits.tableEntries, int64_t(1) << 18), std::min(limits.operations, int64_t(1) << 20), limits.allEntries};
}

/// A part of the assignments: some variables are tied to one option.
struct Node {
  double bound = 0;
  int64_t number = 0;
  std::shared_ptr<const Lowered> network;
  int32_t widest = 0;
};
struct WorstLast {
  bool operator()(const Node &a, const Node &b) const {
    return std::tie(a.bound, a.number) > std::tie(b.bound, b.number);
  }
};

/// Best first: the node with the least bound is split by the options of its widest variable.
class BranchAndBound {
public:
  BranchAndBound(Workspace &workspace, const CostNetwork &network, const SolveLimits &limits)
      : workspace(workspace), network(network), limits(limits) {}

  /// See solveExactly in Workspace.h.
  Solution run(std::optional<std::vector<int32_t>> crowdedGiven, std::optional<Lowered> *near) {
    solution.cost = infinity;
    const auto whole = std::make_shared<Lowered>(lower(workspace, network));
    crowded = crowdedGiven.value_or(std::vector<int32_t>());
    const auto givesUp = [&](double exactly) { return hasEasyBoundsSomehow(workspace, *whole, littleBeside(exactly), solution.operations); };
    bool isExact = !crowdedGiven && look(whole, all(limits), -infinity, givesUp);
    if (!isExact) {
      double bound = open.empty() ? -infinity : open.top().bound;
      workspace.forgetReductions(0);
      offer(sweep(network).choice, false);
      Lowered less = withoutDominated(workspace, *whole); // the same tables may fit
      isExact = lookWithin(less, bound, near);
      open = {};
      const EliminationLimits most = bound > -infinity ? few(limits) : all(limits); // fixing has taken long already
      if (!isExact)
        isExact = look(std::make_shared<Lowered>(std::move(less)), most, bound);
      if (!isExact)
        search();
    }
    solution.optimal = isExact || solution.bound >= solution.cost;
    if (solution.optimal)
      solution.bound = solution.cost;
    return std::move(solution);
  }

private:
  void search() {
    // Nodes are many: their tables are smaller.
    const int64_t entries = std::min(limits.tableEntries, int64_t(1) << 18);
    const int64_t most = std::min(limits.operations, solution.operations + limits.branching);
    while (!open.empty() && open.top().bound < solution.cost && solution.operations < most) {
      Node node = open.top();
      open.pop();
      unfinished = node.bound;
      for (int32_t option = 0; option < node.network->options[node.widest]; ++option) {
        ++solution.branches;
        look(std::make_shared<Lowered>(restricted(workspace, *node.network, node.widest, {option})),
             {entries, limits.operations, limits.allEntries}, node.bound);
        if (solution.operations >= most)
          return conclude(unfinished);
      }
    }
    conclude(open.empty() ? infinity : open.top().bound);
  }

  void conclude(double least) {
    if (!open.empty())
      least = std::min(least, open.top().bound);
    solution.bound = std::min(least, solution.cost);
  }

  /// Options are left out of the network that no assignment has which costs little. True: what is left has the cheapest assignment of
  /// all. Else `less` becomes what is left of it by what is known, and `bound` what nothing costs less than.
  bool lookWithin(Lowered &less, double &bound, std::optional<Lowered> *near) {
    if (crowded.empty() || !(solution.cost < infinity))
      return false;
    if (!hasEasyBounds(workspace, less, operationsLeft(), solution.operations))
      return hasEasyBoundsTied(workspace, less, operationsLeft(), solution.operations) && lookTied(less, bound, near);
    Fixing fixing = fixed(less);
    bound = std::max(bound, boundWithin(fixing, &less));
    if (bound < solution.cost)
      return false;
    keepNear(fixing, near);
    return true;
  }

  /// The same where bounds are easy with one option of the hub at a time. First some options together are one that costs in each factor
  /// what the cheapest of them does; where such a bound is too low they are halved.
  bool lookTied(const Lowered &less, double &bound, std::optional<Lowered> *near) {
    struct Options {
      double bound = 0;
      std::vector<int32_t> options;
      bool operator<(const Options &other) const { return std::tie(other.bound, other.options) < std::tie(bound, options); } // the least on top
    };
    const int32_t hub = *hubOf(less);
    const std::vector<double> least = leastOfOptions(less, hub);
    std::vector<int32_t> alike(less.options[hub]);
    std::iota(alike.begin(), alike.end(), 0);
    std::ranges::stable_sort(alike, {}, [&](int32_t option) { return least[option]; });
    std::priority_queue<Options> groups;
    groups.push({-infinity, std::move(alike)});
    double unproven = infinity;
    while (!groups.empty() && groups.top().bound < std::min(solution.cost, unproven) && operationsLeft() > 0) {
      const Options next = groups.top();
      groups.pop();
      if (next.options.size() == 1) {
        Fixing fixing = fixed(restricted(workspace, less, hub, next.options));
        if (const double ofOption = std::max(next.bound, boundWithin(fixing, nullptr)); ofOption < solution.cost)
          unproven = std::min(unproven, ofOption);
        const int32_t origin = less.origin[hub].empty() ? next.options[0] : less.origin[hub][next.options[0]];
        if (solution.choice[hub] == origin)
          keepNear(fixing, near);
        continue;
      }
      const auto middle = next.options.begin() + std::ssize(next.options) / 2;
      for (std::vector<int32_t> half : {std::vector(next.options.begin(), middle), std::vector(middle, next.options.end())}) {
        workspace.forgetReductions(limits.allEntries / 2);
        std::vector<int32_t> ascending = half;
        std::ranges::sort(ascending);
        const std::optional<double> ofHalf = easyBound(workspace, leastOf(workspace, less, hub, ascending), operationsLeft(), solution.operations);
        groups.push({std::max(next.bound, ofHalf.value_or(-infinity)), std::move(half)});
        ++solution.branches;
      }
    }
    if (!groups.empty())
      unproven = std::min(unproven, groups.top().bound);
    bound = std::max(bound, std::min(unproven, solution.cost));
    if (near && bound < solution.cost)
      near->reset();
    return bound >= solution.cost;
  }

  Fixing fixed(const Lowered &part) {
    constexpr size_t mostFixed = 256;
    crowded.resize(std::min(crowded.size(), mostFixed));
    return Fixing(workspace, network, part, crowded, solution.choice, limits, solution.operations, nearby);
  }

  /// What costs hardly more than the solution.
  void keepNear(Fixing &fixing, std::optional<Lowered> *near) {
    if (!near)
      return;
    if (std::optional<Fixing::Part> cheap = fixing.within(solution.cost + nearby * std::abs(solution.cost)))
      *near = std::move(cheap->network);
  }

  /// What nothing in a network of bounds costs less than that is cheaper than the solution. How much an assignment may cost is guessed, low
  /// at first. `left`, if given, becomes what is left of it.
  double boundWithin(Fixing &fixing, Lowered *left) {
    offer(fixing.choice(), true);
    const double least = fixing.bound();
    double bound = least;
    bool isSmall = least > -infinity;
    for (double share : {1.0 / 16, 1.0 / 4, 1.0}) {
      if (!isSmall || bound >= solution.cost)
        break;
      const double most = least + share * (solution.cost - least);
      const std::optional<Fixing::Part> cheap = fixing.within(most);
      isSmall = !cheap || eliminated(cheap->network, few(limits)).isExact(); // else nothing costs so little
      if (isSmall)
        bound = std::max(bound, std::min(most, solution.cost));
    }
    if (bound >= solution.cost)
      return bound;
    std::optional<Fixing::Part> rest = fixing.within(solution.cost);
    if (!rest) // all of it costs more
      return solution.cost;
    if (left)
      *left = rest->network;
    return std::max(bound, lookInHalves(fixing, std::move(*rest)));
  }

  /// Halves what is left of a part until it is small. Returns what nothing in it costs less than, at most the cost of the solution.
  double lookInHalves(Fixing &fixing, Fixing::Part part) {
    double bound = infinity;
    for (std::vector<Fixing::Part> parts{std::move(part)}; !parts.empty();) {
      Fixing::Part next = std::move(parts.back());
      parts.pop_back();
      const std::optional<Fixing::Part> left = fixing.within(std::move(next), solution.cost);
      if (!left || eliminated(left->network, little(limits)).isExact())
        continue;
      std::vector<Fixing::Part> halves = fixing.hasOperations() ? fixing.halves(*left) : std::vector<Fixing::Part>{};
      if (halves.empty())
        bound = std::min(bound, left->bound());
      std::ranges::move(std::views::reverse(halves), std::back_inserter(parts));
      solution.branches += static_cast<int64_t>(halves.size());
    }
    return std::min(bound, solution.cost);
  }

  /// Bounds a part; keeps it for later unless it is done. True: it is.
  bool look(std::shared_ptr<const Lowered> part, EliminationLimits most, double boundAbove = -infinity,
            std::function<bool(double)> givesUp = nullptr) {
    const Elimination elimination = eliminated(*part, most, std::move(givesUp));
    if (elimination.isExact())
      return true;
    if (!elimination.isFinished()) {
      open.push({boundAbove, ++count, part, openOf(*part, elimination)});
    } else if (double bound = std::max(boundAbove, elimination.bound()); bound < solution.cost) {
      open.push({bound, ++count, part, elimination.widest()});
    }
    return false;
  }

  /// A variable of a part that was not finished.
  static int32_t openOf(const Lowered &part, const Elimination &elimination) {
    for (int32_t variable : elimination.crowdedFirst())
      if (part.options[variable] > 1)
        return variable;
    return static_cast<int32_t>(std::ranges::max_element(part.options) - part.options.begin());
  }

  Elimination eliminated(const Lowered &part, EliminationLimits most, std::function<bool(double)> givesUp = nullptr) {
    workspace.forgetReductions(limits.allEntries / 2);
    most.operations = std::min(most.operations, operationsLeft());
    Elimination elimination(workspace, part, most, {}, std::move(givesUp));
    solution.operations += workOf(elimination, part);
    solution.eliminations += elimination.eliminations;
    solution.repeated += elimination.repeated;
    solution.largestTable = std::max(solution.largestTable, elimination.largestTable);
    if (crowded.empty())
      crowded = elimination.crowdedFirst();
    Choice choice(network.options.size());
    if (elimination.isFinished()) {
      elimination.decode(choice);
      part.toOrigin(choice);
      offer(std::move(choice), elimination.isExact());
    } else if (solution.choice.empty()) {
      offer(std::move(choice), false);
    }
    return elimination;
  }

  int64_t operationsLeft() const { return limits.operations - solution.operations; }

  void offer(Choice choice, bool isExact) {
    if (!isExact)
      choice = descended(network, std::move(choice));
    double cost = costOf(network, choice);
    if (cost < solution.cost || solution.choice.empty()) {
      solution.cost = cost;
      solution.choice = std::move(choice);
    }
  }

  Workspace &workspace;
  const CostNetwork &network;
  const SolveLimits &limits;
  Solution solution;
  std::priority_queue<Node, std::vector<Node>, WorstLast> open;
  static constexpr double nearby = 0.01;
  std::vector<int32_t> crowded; ///< variables in tables that are too large
  double unfinished = 0;
  int64_t count = 0;
};

} // namespace

Solution solveExactly(const CostNetwork &network, const SolveLimits &limits) {
  Workspace workspace;
  return solveExactly(workspace, network, limits);
}

Solution solveExactly(Workspace &workspace, const CostNetwork &network, const SolveLimits &limits, std::optional<std::vector<int32_t>> crowded,
                      std::optional<Lowered> *near) {
  return BranchAndBound(workspace, network, limits).run(std::move(crowded), near);
}

/// Without costs where tables are too large. `lowered` takes the network without dominated options of other variables.
static OptionCosts quickCosts(Workspace &workspace, const CostNetwork &network, int32_t variable, const SolveLimits &limits, Lowered &lowered) {
  lowered = withoutDominated(workspace, lower(workspace, network), variable);
  int64_t operations = 0;
  const Elimination elimination(workspace, lowered, exactly(all(limits)), {variable},
                                [&](double takes) { return hasEasyBounds(workspace, lowered, littleBeside(takes), operations); });
  return {elimination.isExact() ? elimination.table() : std::vector<double>(), operations + workOf(elimination, lowered)};
}

OptionCosts costsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits) {
  OptionCosts result;
  {
    Workspace workspace;
    Lowered lowered;
    result = quickCosts(workspace, network, variable, limits, lowered);
  }
  if (!result.costs.empty())
    return result;
  for (int32_t option = 0; option < network.options[variable]; ++option) {
    CostNetwork tied = network;
    tied.tables.push_back({{variable}, std::vector<double>(network.options[variable], infinity)});
    tied.tables.back().costs[option] = 0;
    SolveLimits left = limits;
    left.operations -= result.operations;
    const Solution found = left.operations > 0 ? solveExactly(tied, left) : Solution{.bound = -infinity};
    result.operations += found.operations;
    result.costs.push_back(found.bound);
  }
  return result;
}

OptionCosts boundsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits) {
  Workspace workspace;
  Lowered lowered;
  OptionCosts result = quickCosts(workspace, network, variable, limits, lowered);
  if (!result.costs.empty())
    return result;
  workspace.forgetReductions(0);
  result.costs = Fixing(workspace, network, std::move(lowered), {variable}, sweep(network).choice, limits, result.operations).boundsOf(0);
  return result;
}

} // namespace msc::search
