#include "passes/sharding/search/Within.h"

#include "passes/sharding/search/Fixing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <queue>
#include <ranges>
#include <utility>

namespace msc::search {

namespace {

/// What is tried of each of many parts.
EliminationLimits little(const SolveLimits &limits) {
  return {std::min(limits.tableEntries, int64_t(1) << 18), std::min(limits.operations, int64_t(1) << 20), limits.allEntries};
}

/// One network of bounds at a time.
class Within {
public:
  explicit Within(Progress &progress) : progress(progress), solution(progress.solution) {}

  Fixing fixed(const Lowered &part, const Shares &shares = {}) {
    constexpr size_t mostFixed = 256;
    progress.crowded.resize(std::min(progress.crowded.size(), mostFixed));
    return Fixing(progress.workspace, progress.network, part, progress.crowded, solution.choice, progress.limits, solution.operations, nearby, shares);
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
    progress.offer(fixing.choice(), true);
    const double least = fixing.bound();
    double bound = least;
    bool isSmall = least > -infinity;
    for (double share : {1.0 / 16, 1.0 / 4, 1.0}) {
      if (!isSmall || bound >= solution.cost)
        break;
      const double most = least + share * (solution.cost - least);
      const std::optional<Fixing::Part> cheap = fixing.within(most);
      isSmall = !cheap || progress.eliminated(cheap->network, few(progress.limits)).isExact(); // else nothing costs so little
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

private:
  /// Halves what is left of a part until it is small. Returns what nothing in it costs less than, at most the cost of the solution.
  double lookInHalves(Fixing &fixing, Fixing::Part part) {
    double bound = infinity;
    for (std::vector<Fixing::Part> parts{std::move(part)}; !parts.empty();) {
      Fixing::Part next = std::move(parts.back());
      parts.pop_back();
      const std::optional<Fixing::Part> left = fixing.within(std::move(next), solution.cost);
      if (!left || progress.eliminated(left->network, little(progress.limits)).isExact())
        continue;
      std::vector<Fixing::Part> halves = fixing.hasOperations() ? fixing.halves(*left) : std::vector<Fixing::Part>{};
      if (halves.empty())
        bound = std::min(bound, left->bound());
      std::ranges::move(std::views::reverse(halves), std::back_inserter(parts));
      solution.branches += static_cast<int64_t>(halves.size());
    }
    return std::min(bound, solution.cost);
  }

  Progress &progress;
  Solution &solution;
  static constexpr double nearby = 0.01;
};

/// Where bounds are easy with one option of a variable, the hub, at a time: best-first over sets of its options. A set stands for the
/// network in which one option costs in each factor what the cheapest of them does. Its bounds leave options of other variables out, so that
/// sets in it take less and less time; where its own bound is too low it is halved.
class Tied {
public:
  Tied(Progress &progress, Within &within, const Lowered &network)
      : progress(progress), solution(progress.solution), within(within), network(network), hub(*hubOf(network)) {}

  /// What nothing costs less than that is cheaper than the solution.
  double bound() {
    std::priority_queue<Set> sets;
    sets.push({.options = inOrder(), .left = std::make_shared<Left>(network.options.size())});
    bool dives = true; // to one option first: to a good assignment, and shares that are good for others
    while (!sets.empty() && sets.top().bound < std::min(solution.cost, unproven) && progress.operationsLeft() > 0) {
      Set next = sets.top();
      sets.pop();
      const double before = next.bound;
      if (next.improvements < improvements)
        boundAgain(next);
      if (next.bound > before) { // others may cost less
        sets.push(std::move(next));
        continue;
      }
      while (dives && next.options.size() > 1) {
        auto [cheaper, other] = halves(next);
        sets.push(std::move(other));
        next = std::move(cheaper);
      }
      dives = false;
      if (next.options.size() == 1)
        lookAt(next);
      else if (leaveOut(next))
        for (Set &half : halves(next))
          sets.push(std::move(half));
    }
    return std::min({unproven, solution.cost, sets.empty() ? infinity : sets.top().bound});
  }

  /// Of the option that the solution takes.
  void keepNear(std::optional<Lowered> *near) {
    const std::vector<int32_t> &origin = network.origin[hub];
    const auto option = static_cast<int32_t>(origin.empty() ? solution.choice[hub] : std::ranges::find(origin, solution.choice[hub]) - origin.begin());
    const bool isThere = option < network.options[hub]; // else dropped for one that costs the same
    if (!near || !isThere || progress.operationsLeft() <= 0)
      return;
    Fixing fixing = within.fixed(restricted(progress.workspace, network, hub, {option}), shares);
    within.keepNear(fixing, near);
  }

private:
  using Left = std::vector<std::vector<int32_t>>; ///< of each variable: options, ascending; none: all
  struct Set {
    double bound = -infinity;
    std::vector<int32_t> options; ///< of the hub
    int32_t improvements = 0;     ///< of the shares with which it was bounded
    std::shared_ptr<const Left> left;
    bool operator<(const Set &other) const { return std::tie(other.bound, other.options) < std::tie(bound, options); } // the least on top
  };

  /// What costs least first.
  std::vector<int32_t> inOrder() const {
    const std::vector<double> least = leastOfOptions(network, hub);
    std::vector<int32_t> options(least.size());
    std::iota(options.begin(), options.end(), 0);
    std::ranges::stable_sort(options, {}, [&](int32_t option) { return least[option]; });
    return options;
  }

  Lowered networkOf(const Set &set) const {
    progress.workspace.forgetReductions(progress.limits.allEntries / 2);
    std::vector<int32_t> options = set.options;
    std::ranges::sort(options);
    return restricted(progress.workspace, leastOf(progress.workspace, network, hub, options), *set.left);
  }

  void boundAgain(Set &set) {
    const std::optional<double> bound = easyBound(progress.workspace, networkOf(set), progress.operationsLeft(), solution.operations, shares);
    set.bound = std::max(set.bound, bound.value_or(-infinity));
    set.improvements = improvements;
  }

  /// The one with the lower bound first.
  std::array<Set, 2> halves(const Set &set) {
    const auto middle = set.options.begin() + std::ssize(set.options) / 2;
    Set first{set.bound, {set.options.begin(), middle}, 0, set.left}, second{set.bound, {middle, set.options.end()}, 0, set.left};
    boundAgain(first);
    boundAgain(second);
    solution.branches += 2;
    if (first < second)
      std::swap(first, second);
    return {std::move(first), std::move(second)};
  }

  /// Options of other variables whose bounds are above the solution. False: nothing in the set costs less.
  bool leaveOut(Set &set) {
    const Lowered tied = networkOf(set);
    std::vector<int32_t> wide;
    std::ranges::copy_if(progress.crowded, std::back_inserter(wide), [&](int32_t variable) { return tied.options[variable] > 1; });
    const std::optional<std::vector<std::vector<double>>> bounds =
        easyBounds(progress.workspace, tied, wide, progress.operationsLeft(), solution.operations, shares);
    if (!bounds)
      return true;
    const double dearest = solution.cost + 1e-9 * std::abs(solution.cost); // by more than rounding
    auto left = std::make_shared<Left>(*set.left);
    for (size_t i = 0; i < wide.size(); ++i) {
      const std::vector<int32_t> before = std::exchange((*left)[wide[i]], {});
      for (int32_t option = 0; option < tied.options[wide[i]]; ++option)
        if ((*bounds)[i][option] <= dearest)
          (*left)[wide[i]].push_back(before.empty() ? option : before[option]);
      if ((*left)[wide[i]].empty())
        return false;
    }
    set.left = std::move(left);
    return true;
  }

  /// A set of one option.
  void lookAt(const Set &one) {
    const Lowered tied = networkOf(one);
    double bound = std::max(one.bound, improvedBound(progress.workspace, tied, solution.cost, progress.operationsLeft(), solution.operations, shares));
    ++improvements;
    if (bound >= solution.cost)
      return;
    Fixing fixing = within.fixed(tied, shares);
    bound = std::max(bound, within.boundWithin(fixing, nullptr));
    if (bound < solution.cost)
      unproven = std::min(unproven, bound);
  }

  Progress &progress;
  Solution &solution;
  Within &within;
  const Lowered &network;
  const int32_t hub;
  Shares shares;              ///< those of the option that was looked at last
  int32_t improvements = 0;   ///< how often they changed
  double unproven = infinity; ///< what nothing costs less than in sets that were looked at in vain
};

} // namespace

bool isProvenWithin(Progress &progress, Lowered &less, double &bound, std::optional<Lowered> *near) {
  Solution &solution = progress.solution;
  if (progress.crowded.empty() || !(solution.cost < infinity))
    return false;
  Within within(progress);
  if (hasEasyBounds(progress.workspace, less, progress.operationsLeft(), solution.operations)) {
    Fixing fixing = within.fixed(less);
    bound = std::max(bound, within.boundWithin(fixing, &less));
    if (bound >= solution.cost)
      within.keepNear(fixing, near);
  } else if (hasEasyBoundsTied(progress.workspace, less, progress.operationsLeft(), solution.operations)) {
    Tied tied(progress, within, less);
    bound = std::max(bound, tied.bound());
    if (bound >= solution.cost)
      tied.keepNear(near);
  }
  return bound >= solution.cost;
}

} // namespace msc::search
