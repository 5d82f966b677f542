// Exact solving: elimination, and where tables grow too large, branching with bounds from tables that are split.
#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/Elimination.h"
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

  Solution run(bool isTooLarge) {
    solution.cost = infinity;
    bool isExact = !isTooLarge && look(std::make_shared<Lowered>(lower(workspace, network)), limits.tableEntries);
    if (!isExact) {
      workspace.forgetReductions(0);
      offer(sweep(network).choice, false);
      // With fewer options the same tables may fit.
      const double firstBound = isTooLarge ? -infinity : open.empty() ? solution.cost : open.top().bound;
      open = {};
      isExact = look(std::make_shared<Lowered>(withoutDominated(workspace, lower(workspace, network))),
                     limits.tableEntries, firstBound);
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
        look(std::make_shared<Lowered>(restricted(workspace, *node.network, node.widest, {option})), entries,
             node.bound);
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
  bool look(std::shared_ptr<const Lowered> part, int64_t entries, double boundAbove = -infinity) {
    workspace.forgetReductions(limits.allEntries / 2);
    Elimination elimination(workspace, *part, {entries, limits.operations - solution.operations, limits.allEntries});
    solution.operations += elimination.operations + operationsOfFactor * static_cast<int64_t>(part->factors.size());
    solution.eliminations += elimination.eliminations;
    solution.repeated += elimination.repeated;
    solution.largestTable = std::max(solution.largestTable, elimination.largestTable);
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
  double unfinished = 0;
  int64_t count = 0;
};

} // namespace

Solution solveExactly(const CostNetwork &network, const SolveLimits &limits) {
  Workspace workspace;
  return solveExactly(workspace, network, limits);
}

Solution solveExactly(Workspace &workspace, const CostNetwork &network, const SolveLimits &limits, bool isTooLarge) {
  return BranchAndBound(workspace, network, limits).run(isTooLarge);
}

std::vector<double> costsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits) {
  Workspace workspace;
  const Lowered lowered = withoutDominated(workspace, lower(workspace, network), variable);
  const Elimination elimination(workspace, lowered, {limits.tableEntries, limits.operations, limits.allEntries}, {variable});
  if (elimination.isExact())
    return elimination.table();
  std::vector<double> costs;
  SolveLimits left = limits;
  left.operations -= elimination.operations;
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

} // namespace msc::search
