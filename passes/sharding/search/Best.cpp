// The k best assignments: deviations from better ones, in the order in which an elimination is decoded.
#include "passes/sharding/search/Fixing.h"

#include <algorithm>
#include <cmath>
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

class BestAssignments {
public:
  /// `once`: only those that deviate from the cheapest one at one step and are best behind it.
  BestAssignments(const CostNetwork &network, const Lowered &lowered, const Elimination &elimination, size_t k, bool once)
      : network(network), lowered(lowered), elimination(elimination), k(k), once(once) {}

  std::vector<Solution> run(double least) {
    if (!(least < infinity))
      return {};
    take(Choice(network.options.size()), 0, least);
    while (found.size() < k && !open.empty()) {
      Deviation next = *open.begin();
      open.erase(open.begin());
      Choice choice = found[next.from].choice;
      choice[elimination.decodeOrder()[next.step]] = next.option;
      take(std::move(choice), next.step + 1, next.cost);
    }
    for (Solution &solution : found) {
      lowered.toOrigin(solution.choice);
      solution.cost = solution.bound = costOf(network, solution.choice);
    }
    std::sort(found.begin() + once, found.end(), [](const Solution &a, const Solution &b) {
      return std::tie(a.cost, a.choice) < std::tie(b.cost, b.choice);
    });
    return std::move(found);
  }

private:
  /// Completes the choice from a step on as cheaply as possible; keeps what deviates from it there.
  void take(Choice choice, size_t from, double cost) {
    if (once && !found.empty())
      elimination.decodeFrom(from, found.front().choice, choice);
    else
      deviate(choice, from, cost);
    found.emplace_back().choice = std::move(choice);
  }

  void deviate(Choice &choice, size_t from, double cost) {
    const std::vector<int32_t> &order = elimination.decodeOrder();
    for (size_t step = from; step < order.size(); ++step) {
      std::vector<double> costs = elimination.costsAt(step, choice);
      const int32_t best = static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
      choice[order[step]] = best;
      for (int32_t option = 0; option < static_cast<int32_t>(costs.size()); ++option)
        if (option != best && costs[option] < infinity)
          keep({cost + (costs[option] - costs[best]), ++count, found.size(), step, option});
    }
  }

  void keep(Deviation deviation) {
    const size_t room = k - std::min(k, found.size() + 1);
    if (open.size() >= room && (open.empty() || !(deviation < *open.rbegin())))
      return;
    open.insert(deviation);
    if (open.size() > room)
      open.erase(std::prev(open.end()));
  }

  const CostNetwork &network;
  const Lowered &lowered;
  const Elimination &elimination;
  const size_t k;
  const bool once;
  std::vector<Solution> found;
  std::set<Deviation> open;
  int64_t count = 0;
};

} // namespace

std::vector<Solution> bestAssignments(const CostNetwork &network, size_t k, const SolveLimits &limits) {
  if (k == 0)
    return {};
  Workspace workspace;
  Lowered lowered = lower(workspace, network);
  Elimination elimination(workspace, lowered, exactly(all(limits)));
  if (elimination.isExact())
    return BestAssignments(network, lowered, elimination, k, false).run(elimination.bound());
  SolveLimits rest = limits;
  rest.operations -= workOf(elimination, lowered);
  Solution best = solveExactly(network, rest);
  best.operations += workOf(elimination, lowered);
  return best.cost < infinity ? std::vector<Solution>{best} : std::vector<Solution>{};
}

std::vector<Solution> nearestAssignments(const CostNetwork &network, size_t k, const SolveLimits &limits) {
  int64_t operations = 0;
  std::vector<int32_t> crowded;
  auto nearestOf = [&](Workspace &workspace, const Lowered &lowered, const EliminationLimits &most, std::function<bool(double)> givesUp) {
    const Elimination elimination(workspace, lowered, exactly(most), {}, std::move(givesUp));
    operations += workOf(elimination, lowered);
    crowded = elimination.crowdedFirst();
    const bool isFound = elimination.isExact() && elimination.bound() < infinity;
    return isFound ? BestAssignments(network, lowered, elimination, k, true).run(elimination.bound()) : std::vector<Solution>{};
  };
  std::vector<Solution> found;
  {
    Workspace workspace; // its tables are gone before others are made
    const Lowered lowered = withoutDominated(workspace, lower(workspace, network));
    found = nearestOf(workspace, lowered, all(limits), [&](double exactly) { return hasEasyBoundsSomehow(workspace, lowered, littleBeside(exactly), operations); });
  }
  if (found.empty()) {
    Workspace workspace;
    std::optional<Lowered> near;
    SolveLimits rest = limits;
    rest.operations -= operations;
    const Solution best = solveExactly(workspace, network, rest, crowded, &near);
    operations += best.operations;
    if (near && best.optimal)
      found = nearestOf(workspace, *near, few(limits), nullptr);
    if (found.empty() || found.front().cost > best.cost + 1e-12 * std::abs(best.cost))
      found = {best};
  }
  found.front().operations = operations;
  return found;
}

} // namespace msc::search
