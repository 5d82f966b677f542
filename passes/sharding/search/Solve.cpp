// Exact solving: elimination, and where tables grow too large, branching with bounds from tables that are split.
#include "passes/sharding/search/Fixing.h"
#include "passes/sharding/search/Sweep.h"
#include "passes/sharding/search/Within.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <ranges>

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
  BranchAndBound(Workspace &workspace, const CostNetwork &network, const SolveLimits &limits) : progress(workspace, network, limits) {}

  /// See solveExactly in Workspace.h.
  Solution run(std::optional<std::vector<int32_t>> crowdedGiven, std::optional<Lowered> *near) {
    const auto whole = std::make_shared<Lowered>(lower(workspace, network));
    progress.crowded = crowdedGiven.value_or(std::vector<int32_t>());
    const auto givesUp = [&](double exactly) { return hasEasyBoundsSomehow(workspace, *whole, littleBeside(exactly), solution.operations); };
    bool isExact = !crowdedGiven && look(whole, all(limits), -infinity, givesUp);
    if (!isExact) {
      double bound = open.empty() ? -infinity : open.top().bound;
      workspace.forgetReductions(0);
      progress.offer(sweep(network).choice, false);
      Lowered less = withoutDominated(workspace, *whole); // the same tables may fit
      isExact = isProvenWithin(progress, less, bound, near);
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

  /// Bounds a part; keeps it for later unless it is done. True: it is.
  bool look(std::shared_ptr<const Lowered> part, EliminationLimits most, double boundAbove = -infinity,
            std::function<bool(double)> givesUp = nullptr) {
    const Elimination elimination = progress.eliminated(*part, most, std::move(givesUp));
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

  Progress progress;
  Workspace &workspace = progress.workspace;
  const CostNetwork &network = progress.network;
  const SolveLimits &limits = progress.limits;
  Solution &solution = progress.solution;
  std::priority_queue<Node, std::vector<Node>, WorstLast> open;
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
  const SolveLimits own = limitsOfOne(limits);
  Solution solution = BranchAndBound(workspace, network, own).run(std::move(crowded), near);
  charge(limits, solution.operations);
  return solution;
}

SolveLimits limitsOfOne(SolveLimits limits) {
  constexpr int64_t few = int64_t(1) << 22;
  if (limits.left)
    limits.operations = std::min(limits.operations, std::max(*limits.left, few));
  limits.left = nullptr;
  return limits;
}

void charge(const SolveLimits &limits, int64_t operations) {
  if (limits.left)
    *limits.left -= operations;
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
