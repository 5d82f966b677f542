// Exact solving: elimination, and where tables grow too large, branching with bounds from tables that are split.
#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Fixing.h"
#include "passes/sharding/search/Sweep.h"

#include <algorithm>
#include <memory>

namespace msc::search {

namespace {

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
    bool isExact = !crowdedGiven && look(whole, all(limits), -infinity, [&] { return hasEasyBounds(*whole); });
    if (!isExact) {
      double bound = open.empty() ? -infinity : open.top().bound;
      workspace.forgetReductions(0);
      offer(sweep(network).choice, false);
      Lowered less = withoutDominated(workspace, *whole); // the same tables may fit
      isExact = lookWithin(less, bound, near);
      open = {};
      if (!isExact)
        isExact = look(std::make_shared<Lowered>(std::move(less)), all(limits), bound);
      if (!isExact)
        search();
    }
    solution.optimal = isExact || solution.bound >= solution.cost;
    if (solution.optimal)
      solution.bound = solution.cost;
    return std::move(solution);
  }

private:
  /// What it takes to look at a factor, however small its tables are.
  static constexpr int64_t operationsOfFactor = 20'000;

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

  /// Options are left out of the network that no assignment has which costs little; how much that is, is guessed. True: what is left has
  /// the cheapest assignment of all. Else `less` becomes what is left of it by what is known, and `bound` what nothing costs less than.
  bool lookWithin(Lowered &less, double &bound, std::optional<Lowered> *near) {
    constexpr size_t mostFixed = 256;
    constexpr double nearby = 0.01;
    if (crowded.empty() || !(solution.cost < infinity) || !hasEasyBounds(less))
      return false;
    crowded.resize(std::min(crowded.size(), mostFixed));
    Fixing fixing(workspace, network, less, crowded, solution.choice, limits);
    offer(fixing.choice(), true);
    const double least = fixing.bound();
    bound = std::max(bound, least);
    bool isExact = false, isSmall = least > -infinity;
    for (double share : {1.0 / 16, 1.0 / 4, 1.0}) {
      const double most = least + share * (solution.cost - least);
      std::optional<Lowered> left = isSmall && !isExact ? fixing.within(most) : std::nullopt;
      if (!left)
        continue;
      isSmall = look(std::make_shared<Lowered>(std::move(*left)), few(limits));
      isExact = isSmall && solution.cost <= most;
    }
    if (isExact && near)
      *near = fixing.within((1 + nearby) * solution.cost);
    else if (!isExact)
      less = fixing.within(solution.cost).value_or(std::move(less));
    solution.operations += fixing.operations;
    return isExact;
  }

  /// Bounds a part; keeps it for later unless it is done. True: it is.
  bool look(std::shared_ptr<const Lowered> part, EliminationLimits most, double boundAbove = -infinity,
            std::function<bool()> givesUp = nullptr) {
    workspace.forgetReductions(limits.allEntries / 2);
    most.operations = std::min(most.operations, limits.operations - solution.operations);
    Elimination elimination(workspace, *part, most, {}, std::move(givesUp));
    solution.operations += elimination.operations + operationsOfFactor * static_cast<int64_t>(part->factors.size());
    solution.eliminations += elimination.eliminations;
    solution.repeated += elimination.repeated;
    solution.largestTable = std::max(solution.largestTable, elimination.largestTable);
    if (crowded.empty())
      crowded = elimination.crowdedFirst();
    if (!elimination.isFinished()) {
      open.push({boundAbove, ++count, part, 0});
      if (solution.choice.empty())
        offer(Choice(network.options.size()), false);
      return false;
    }
    Choice choice(network.options.size());
    elimination.decode(choice);
    part->toOrigin(choice);
    offer(std::move(choice), elimination.isExact());
    if (elimination.isExact())
      return true;
    if (double bound = std::max(boundAbove, elimination.bound()); bound < solution.cost)
      open.push({bound, ++count, part, elimination.widest()});
    return false;
  }

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

/// Nothing: tables are too large. `lowered` takes the network without dominated options of other variables.
static std::optional<std::vector<double>> quickCosts(Workspace &workspace, const CostNetwork &network, int32_t variable, const SolveLimits &limits,
                                                     Lowered &lowered) {
  lowered = withoutDominated(workspace, lower(workspace, network), variable);
  const Elimination elimination(workspace, lowered, all(limits), {variable},
                                [&] { return hasEasyBounds(lowered); });
  return elimination.isExact() ? std::optional(elimination.table()) : std::nullopt;
}

std::vector<double> costsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits) {
  {
    Workspace workspace;
    Lowered lowered;
    if (auto costs = quickCosts(workspace, network, variable, limits, lowered))
      return *costs;
  }
  std::vector<double> costs;
  SolveLimits left = limits;
  for (int32_t option = 0; option < network.options[variable]; ++option) {
    CostNetwork tied = network;
    tied.tables.push_back({{variable}, std::vector<double>(network.options[variable], infinity)});
    tied.tables.back().costs[option] = 0;
    const Solution found = left.operations > 0 ? solveExactly(tied, left) : Solution{.bound = -infinity};
    left.operations -= found.operations;
    costs.push_back(found.bound);
  }
  return costs;
}

std::vector<double> boundsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits) {
  Workspace workspace;
  Lowered lowered;
  if (auto costs = quickCosts(workspace, network, variable, limits, lowered))
    return *costs;
  workspace.forgetReductions(0);
  return Fixing(workspace, network, std::move(lowered), {variable}, sweep(network).choice, limits).boundsOf(0);
}

} // namespace msc::search
