// The k best assignments: deviations from better ones, in the order in which an elimination is decoded.
#include "passes/sharding/search/Fixing.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace msc::search {

namespace {

/// All assignments that equal `choice` (of number `from`) before a step and take `option` there.
struct Deviation {
  double cost = 0;
  int64_t number = 0;
  size_t from = 0, step = 0;
  int32_t option = 0;
  bool operator<(const Deviation &other) const { return std::tie(cost, number) < std::tie(other.cost, other.number); }
};

/// The cheapest deviations, as many as there is room for.
class Deviations {
public:
  explicit Deviations(const Elimination &elimination) : elimination(elimination) {}

  /// Completes the choice from a step on as cheaply as possible; keeps what deviates from it there.
  void complete(Choice &choice, size_t from, double cost, size_t number, size_t room) {
    const std::vector<int32_t> &order = elimination.decodeOrder();
    for (size_t step = from; step < order.size(); ++step) {
      const double slack = room == 0 ? 0 : open.size() < room ? infinity : std::max(0.0, open.rbegin()->cost - cost);
      std::vector<double> costs = elimination.costsAt(step, choice, slack);
      const int32_t best = static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
      choice[order[step]] = best;
      for (int32_t option = 0; option < static_cast<int32_t>(costs.size()); ++option)
        if (option != best && costs[option] < infinity)
          keep({cost + (costs[option] - costs[best]), ++count, number, step, option}, room);
    }
  }

  std::optional<Deviation> next() {
    if (open.empty())
      return std::nullopt;
    return open.extract(open.begin()).value();
  }

private:
  void keep(Deviation deviation, size_t room) {
    if (open.size() >= room && (open.empty() || !(deviation < *open.rbegin())))
      return;
    open.insert(deviation);
    if (open.size() > room)
      open.erase(std::prev(open.end()));
  }

  const Elimination &elimination;
  std::set<Deviation> open;
  int64_t count = 0;
};

std::vector<Solution> bestOf(const CostNetwork &network, const Lowered &lowered, const Elimination &elimination, size_t k) {
  if (!(elimination.bound() < infinity))
    return {};
  Deviations deviations(elimination);
  std::vector<Solution> found;
  auto take = [&](Choice choice, size_t from, double cost) {
    deviations.complete(choice, from, cost, found.size(), k - found.size() - 1);
    found.emplace_back().choice = std::move(choice);
  };
  take(Choice(network.options.size()), 0, elimination.bound());
  while (found.size() < k)
    if (std::optional<Deviation> next = deviations.next()) {
      Choice choice = found[next->from].choice;
      choice[elimination.decodeOrder()[next->step]] = next->option;
      take(std::move(choice), next->step + 1, next->cost);
    } else {
      break;
    }
  for (Solution &solution : found) {
    lowered.toOrigin(solution.choice);
    solution.cost = solution.bound = costOf(network, solution.choice);
  }
  std::sort(found.begin(), found.end(), [](const Solution &a, const Solution &b) { return std::tie(a.cost, a.choice) < std::tie(b.cost, b.choice); });
  return found;
}

/// Those that deviate from the cheapest one at one step and are best behind it, as far as they cost less than `below`.
Nearest nearestOf(const CostNetwork &network, const Lowered &lowered, const Elimination &elimination, size_t k, double below) {
  Deviations deviations(elimination);
  Choice choice(network.options.size());
  deviations.complete(choice, 0, elimination.bound(), 0, k - 1);
  const Choice best = choice;
  Nearest nearest;
  nearest.best.choice = best;
  lowered.toOrigin(nearest.best.choice);
  nearest.best.cost = nearest.best.bound = costOf(network, nearest.best.choice);
  const std::vector<std::vector<int32_t>> around = elimination.bucketsAround();
  std::vector<int32_t> changed;
  while (std::optional<Deviation> next = deviations.next()) {
    if (nearest.best.cost + (next->cost - elimination.bound()) >= below)
      break;
    choice[elimination.decodeOrder()[next->step]] = next->option;
    changed.clear();
    elimination.decodeBehind(next->step, around, choice, changed);
    NearAssignment &other = nearest.others.emplace_back(NearAssignment{nearest.best.cost + (next->cost - elimination.bound()), {}});
    std::ranges::sort(changed);
    for (int32_t variable : changed)
      if (choice[variable] != best[variable]) {
        const std::vector<int32_t> &origin = lowered.origin[variable];
        other.changes.push_back({variable, origin.empty() ? choice[variable] : origin[choice[variable]]});
        choice[variable] = best[variable];
      }
  }
  return nearest;
}

} // namespace

std::vector<Solution> bestAssignments(const CostNetwork &network, size_t k, const SolveLimits &limits) {
  if (k == 0)
    return {};
  Workspace workspace;
  Lowered lowered = lower(workspace, network);
  SolveLimits rest = limitsOfOne(limits);
  Elimination elimination(workspace, lowered, exactly(all(rest)));
  charge(limits, workOf(elimination, lowered));
  if (elimination.isExact())
    return bestOf(network, lowered, elimination, k);
  rest.operations -= workOf(elimination, lowered);
  Solution best = solveExactly(network, rest);
  charge(limits, best.operations);
  best.operations += workOf(elimination, lowered);
  return best.cost < infinity ? std::vector<Solution>{best} : std::vector<Solution>{};
}

Nearest nearestChanges(const CostNetwork &network, size_t k, const SolveLimits &limits) {
  Workspace workspace;
  return nearestChanges(workspace, network, k, limits, infinity);
}

Nearest nearestChanges(Workspace &workspace, const CostNetwork &network, size_t k, const SolveLimits &limitsOfAll, double below) {
  const SolveLimits limits = limitsOfOne(limitsOfAll);
  int64_t operations = 0;
  std::vector<int32_t> crowded;
  auto search = [&](Workspace &workspace, const Lowered &lowered, const EliminationLimits &most, std::function<bool(double)> givesUp) {
    const Elimination elimination(workspace, lowered, exactly(most), {}, std::move(givesUp));
    operations += workOf(elimination, lowered);
    crowded = elimination.crowdedFirst();
    const bool isFound = elimination.isExact() && elimination.bound() < infinity;
    return isFound ? std::optional(nearestOf(network, lowered, elimination, k, below)) : std::nullopt;
  };
  std::optional<Nearest> found;
  {
    workspace.forgetOld();
    workspace.forgetReductions(limits.allEntries / 4);
    const Lowered lowered = withoutDominated(workspace, lower(workspace, network));
    found = search(workspace, lowered, all(limits), [&](double exactly) { return hasEasyBoundsSomehow(workspace, lowered, littleBeside(exactly), operations); });
  }
  if (!found) {
    workspace = Workspace(); // its tables are gone before others are made, which are of no use to the next network
    Workspace own;
    std::optional<Lowered> near;
    SolveLimits rest = limits;
    rest.operations -= operations;
    const Solution best = solveExactly(own, network, rest, crowded, &near);
    operations += best.operations;
    if (near && best.optimal)
      found = search(own, *near, few(limits), nullptr);
    if (!found || found->best.cost > best.cost + 1e-12 * std::abs(best.cost))
      found = {best, {}};
  }
  found->best.operations = operations;
  charge(limitsOfAll, operations);
  return std::move(*found);
}

std::vector<Solution> nearestAssignments(const CostNetwork &network, size_t k, const SolveLimits &limits) {
  return allOf(network, nearestChanges(network, k, limits));
}

std::vector<Solution> allOf(const CostNetwork &network, const Nearest &nearest) {
  std::vector<Solution> found{nearest.best};
  for (const NearAssignment &other : nearest.others) {
    Solution &solution = found.emplace_back();
    solution.choice = found.front().choice;
    for (auto [variable, option] : other.changes)
      solution.choice[variable] = option;
    solution.cost = solution.bound = costOf(network, solution.choice);
  }
  std::sort(found.begin() + 1, found.end(), [](const Solution &a, const Solution &b) { return std::tie(a.cost, a.choice) < std::tie(b.cost, b.choice); });
  return found;
}

} // namespace msc::search
