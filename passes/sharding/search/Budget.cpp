#include "passes/sharding/search/Budget.h"
#include "passes/sharding/search/Descent.h"
#include "passes/sharding/search/TermsMap.h"
#include "passes/sharding/search/Workspace.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace msc::search {

double amountOf(const Budget &budget, const Choice &choice) {
  double sum = 0;
  for (size_t variable = 0; variable < choice.size(); ++variable)
    if (!budget.amounts[variable].empty())
      sum += budget.amounts[variable][choice[variable]];
  return sum;
}

double amountOf(const Budget &budget, const RepeatedNetwork &network, const RepeatedChoice &choice) {
  Choice counted = choice.choice;
  double sum = amountOf(budget, counted);
  for (size_t s = 0; s < network.sections.size(); ++s) {
    const std::vector<int32_t> &variables = network.sections[s].variables;
    for (size_t r = 0; r < choice.runs[s].size(); ++r) {
      const Run &run = choice.runs[s][r];
      for (size_t i = 0; i < variables.size(); ++i)
        if (const std::vector<double> &amounts = budget.amounts[variables[i]]; !amounts.empty())
          sum += double(run.rounds - (r == 0)) * amounts[run.options[i]]; // the first round is in `choice`
    }
  }
  return sum;
}

namespace {

/// Sums of amounts are rounded.
bool isWithin(double amount, double limit) {
  return amount <= limit * (1 + 1e-12);
}

/// An assignment as the search over multipliers sees it.
template <typename Assignment> struct Point {
  Assignment choice;
  double cost = 0, amount = 0;
};

/// What a network with multiplied amounts is solved to.
template <typename Assignment> struct Priced {
  Point<Assignment> point;
  double bound = 0; ///< of cost + multiplier * amount
};

/// The two lines through the cheapest assignment that is too large and the cheapest one that fits meet at the next
/// multiplier, until no assignment lies below both.
template <typename Problem> class MultiplierSearch {
public:
  using Assignment = typename Problem::Assignment;
  MultiplierSearch(Problem &problem, const BudgetLimits &limits) : problem(problem), limits(limits) {}

  /// Looks at the cheapest assignment and at the one that takes least. False: one of these is the answer.
  bool start() {
    Priced<Assignment> free = problem.solve(0);
    bound = free.bound;
    large = free.point;
    if (isWithin(large.amount, problem.limit()) || large.cost == infinity) {
      small = large;
      least = problem.leastPoint().bound;
      return false;
    }
    Priced<Assignment> smallest = problem.leastPoint();
    small = smallest.point;
    least = smallest.bound;
    if (!isWithin(small.amount, problem.limit()))
      return false;
    best = small;
    return true;
  }

  /// True: it is worth looking closer at `small` and `large`, which tie at `multiplier`.
  bool run() {
    if (!start())
      return false;
    for (int step = 0; step < limits.steps && gap() > limits.gap; ++step) {
      multiplier = (small.cost - large.cost) / (large.amount - small.amount);
      if (!(multiplier > 0) || !(multiplier < infinity))
        break;
      Priced<Assignment> next = problem.solve(multiplier);
      bound = std::max(bound, next.bound - multiplier * problem.limit());
      const double value = next.point.cost + multiplier * next.point.amount;
      const double line = large.cost + multiplier * large.amount;
      const bool isBelow = value < line - 1e-12 * std::abs(line);
      if (isWithin(next.point.amount, problem.limit())) {
        if (next.point.cost < best.cost)
          best = next.point;
        if (isBelow)
          small = std::move(next.point);
      } else if (isBelow) {
        large = std::move(next.point);
      }
      if (!isBelow)
        break;
    }
    return gap() > limits.gap;
  }

  double gap() const { return best.cost > bound ? (best.cost - bound) / std::abs(best.cost) : 0; }

  Problem &problem;
  const BudgetLimits &limits;
  Point<Assignment> large, small, best;
  double bound = -infinity, least = 0, multiplier = 0;
};

/// Costs that only say what is allowed; without those that allow everything.
Terms onlyAllowed(Terms terms) {
  auto drop = [](double &cost) { cost = cost < infinity ? 0 : infinity; };
  auto allowsAll = [](const std::vector<double> &costs) { return std::ranges::all_of(costs, [](double cost) { return cost < infinity; }); };
  std::erase_if(terms.tables, [&](const Table &table) { return allowsAll(table.costs); });
  std::erase_if(terms.shared, [&](const SharedCost &shared) { return std::ranges::all_of(shared.costs, allowsAll); });
  for (Table &table : terms.tables)
    std::ranges::for_each(table.costs, drop);
  for (SharedCost &shared : terms.shared)
    for (std::vector<double> &row : shared.costs)
      std::ranges::for_each(row, drop);
  return terms;
}

Table multiplied(const Budget &budget, size_t variable, double multiplier) {
  Table table{{static_cast<int32_t>(variable)}, budget.amounts[variable]};
  for (double &cost : table.costs)
    cost *= multiplier;
  return table;
}

class FlatProblem {
public:
  using Assignment = Choice;
  FlatProblem(const CostNetwork &network, const Budget &budget, const SolveLimits &limits)
      : network(network), priced(network), budget(budget), limits(limits) {}

  double limit() const { return budget.limit; }

  Priced<Choice> solve(double multiplier) {
    priced.tables.resize(network.tables.size());
    price(priced, multiplier);
    Solution solution = solveExactly(workspace, priced, limits);
    operations += solution.operations;
    return {point(solution.choice), solution.bound};
  }

  /// What takes least, and the bound of what anything takes.
  Priced<Choice> leastPoint() {
    Terms allowed = onlyAllowed({network.tables, network.shared});
    CostNetwork amounts{network.options, std::move(allowed.tables), std::move(allowed.shared), 0};
    price(amounts, 1);
    Solution solution = solveExactly(amounts, limits);
    operations += solution.operations;
    Point<Choice> least = point(solution.choice);
    return {least, solution.optimal ? least.amount : solution.bound};
  }

  Point<Choice> point(Choice choice) const {
    const double cost = costOf(network, choice), amount = amountOf(budget, choice);
    return {std::move(choice), cost, amount};
  }

  /// After solve(): the best under the last multiplier.
  std::vector<Solution> best(size_t k) const { return bestAssignments(priced, k, limits); }

  int64_t operations = 0; ///< spent so far

private:
  void price(CostNetwork &to, double multiplier) const {
    if (multiplier > 0)
      for (size_t variable = 0; variable < budget.amounts.size(); ++variable)
        if (!budget.amounts[variable].empty())
          to.tables.push_back(multiplied(budget, variable, multiplier));
  }

  Workspace workspace;
  const CostNetwork &network;
  CostNetwork priced;
  const Budget &budget;
  const SolveLimits &limits;
};

class RepeatedProblem {
public:
  using Assignment = RepeatedChoice;
  RepeatedProblem(const RepeatedNetwork &network, const Budget &budget, const SolveLimits &limits)
      : network(network), budget(budget), limits(limits) {}

  double limit() const { return budget.limit; }

  Priced<RepeatedChoice> solve(double multiplier) const {
    RepeatedNetwork priced = network;
    price(priced, multiplier);
    RepeatedSolution solution = solveExactly(priced, limits);
    return {point(solution.choice), solution.summary.bound};
  }

  Priced<RepeatedChoice> leastPoint() const {
    RepeatedNetwork amounts = network;
    Terms outside = onlyAllowed({network.network.tables, network.network.shared});
    amounts.network.tables = std::move(outside.tables);
    amounts.network.shared = std::move(outside.shared);
    amounts.network.constant = 0;
    for (Section &section : amounts.sections)
      for (Terms *terms : {&section.within, &section.carried, &section.entry, &section.exit})
        *terms = onlyAllowed(std::move(*terms));
    price(amounts, 1);
    const RepeatedSolution solution = solveExactly(amounts, limits);
    Point<RepeatedChoice> least = point(solution.choice);
    return {least, solution.summary.optimal ? least.amount : solution.summary.bound};
  }

  Point<RepeatedChoice> point(RepeatedChoice choice) const {
    const double cost = costOf(network, choice), amount = amountOf(budget, network, choice);
    return {std::move(choice), cost, amount};
  }

private:
  void price(RepeatedNetwork &to, double multiplier) const {
    if (!(multiplier > 0))
      return;
    std::vector<Terms *> place(budget.amounts.size());
    for (Section &section : to.sections)
      for (int32_t variable : section.variables)
        place[variable] = &section.within;
    for (size_t variable = 0; variable < place.size(); ++variable)
      if (!budget.amounts[variable].empty())
        (place[variable] ? place[variable]->tables : to.network.tables)
            .push_back(multiplied(budget, variable, multiplier));
  }

  const RepeatedNetwork &network;
  const Budget &budget;
  const SolveLimits &limits;
};

/// The first `count` variables of one assignment, the rest of another.
Choice crossed(const Choice &a, const Choice &b, size_t count) {
  Choice choice = b;
  std::copy(a.begin(), a.begin() + count, choice.begin());
  return choice;
}

/// The first `count` rounds of each section as in one assignment, the rest as in another.
RepeatedChoice crossed(const RepeatedChoice &a, const RepeatedChoice &b, int64_t count) {
  RepeatedChoice choice = count > 0 ? a : b;
  for (size_t s = 0; s < choice.runs.size(); ++s) {
    std::vector<Run> runs;
    auto take = [&](const std::vector<Run> &from, int64_t first, int64_t last) {
      int64_t at = 0;
      for (const Run &run : from) {
        const int64_t rounds = std::min(last, at + run.rounds) - std::max(first, at);
        at += run.rounds;
        if (rounds <= 0)
          continue;
        if (runs.empty() || runs.back().options != run.options)
          runs.push_back({0, run.options});
        runs.back().rounds += rounds;
      }
    };
    take(a.runs[s], 0, count);
    take(b.runs[s], count, std::numeric_limits<int64_t>::max());
    choice.runs[s] = std::move(runs);
  }
  return choice;
}

/// Of the crossings of a small and a large assignment, the one with the fewest of the small that fits, by bisection.
template <typename Problem, typename Assignment>
Point<Assignment> leastCrossing(const Problem &problem, const Assignment &small, const Assignment &large,
                                int64_t count) {
  int64_t fits = count, tooLarge = 0;
  Point<Assignment> best = problem.point(small);
  while (fits - tooLarge > 1) {
    const int64_t middle = (fits + tooLarge) / 2;
    Point<Assignment> point = problem.point(crossed(small, large, middle));
    if (!isWithin(point.amount, problem.limit())) {
      tooLarge = middle;
      continue;
    }
    fits = middle;
    if (point.cost < best.cost)
      best = std::move(point);
  }
  return best;
}

/// Exchanges of single options: until it fits, those that cost least for what they save; then those that make it
/// cheaper and keep it within.
class Exchanges {
public:
  Exchanges(const FlatProblem &problem, const CostNetwork &network, const Budget &budget, Choice choice)
      : problem(problem), budget(budget), neighbourhood(network, std::move(choice)) {}

  Point<Choice> run() {
    amount = amountOf(budget, neighbourhood.choice());
    const size_t variables = neighbourhood.choice().size();
    for (size_t step = 0; step < variables && !isWithin(amount, budget.limit); ++step)
      if (!save())
        break;
    if (isWithin(amount, budget.limit))
      for (int round = 0; round < 10 && improve(); ++round) {
      }
    return problem.point(neighbourhood.choice());
  }

private:
  double amountAt(size_t variable, int32_t option) const {
    return budget.amounts[variable].empty() ? 0 : budget.amounts[variable][option];
  }

  void take(size_t variable, int32_t option) {
    amount += amountAt(variable, option) - amountAt(variable, neighbourhood.choice()[variable]);
    neighbourhood.set(static_cast<int32_t>(variable), option);
  }

  bool save() {
    double least = infinity;
    size_t bestVariable = 0;
    int32_t bestOption = -1;
    for (size_t v = 0; v < budget.amounts.size(); ++v) {
      if (budget.amounts[v].empty())
        continue;
      const std::vector<double> &costs = neighbourhood.costsOf(static_cast<int32_t>(v));
      const int32_t now = neighbourhood.choice()[v];
      for (int32_t option = 0; option < static_cast<int32_t>(costs.size()); ++option) {
        const double saved = std::min(amountAt(v, now) - amountAt(v, option), amount - budget.limit);
        if (saved > 0)
          if (double price = (costs[option] - costs[now]) / saved; price < least) {
            least = price;
            bestVariable = v;
            bestOption = option;
          }
      }
    }
    if (bestOption < 0)
      return false;
    take(bestVariable, bestOption);
    return true;
  }

  bool improve() {
    bool changed = false;
    for (size_t v = 0; v < budget.amounts.size(); ++v) {
      const std::vector<double> &costs = neighbourhood.costsOf(static_cast<int32_t>(v));
      const int32_t now = neighbourhood.choice()[v];
      int32_t best = now;
      for (int32_t option = 0; option < static_cast<int32_t>(costs.size()); ++option)
        if (costs[option] < costs[best] && isWithin(amount - amountAt(v, now) + amountAt(v, option), budget.limit))
          best = option;
      if (best != now) {
        take(v, best);
        changed = true;
      }
    }
    return changed;
  }

  const FlatProblem &problem;
  const Budget &budget;
  Neighbourhood neighbourhood;
  double amount = 0;
};

/// Halves what a variable may take, by what that takes of the budget, where the assignments on both sides of the best multiplier differ;
/// every part has a better multiplier of its own. The part with the least bound first.
class Branching {
public:
  Branching(const CostNetwork &network, const Budget &budget, const BudgetLimits &limits)
      : network(network), budget(budget), limits(limits) {}

  void run(MultiplierSearch<FlatProblem> &root) {
    best = root.best;
    add(root.bound, partOf(root, {}));
    while (!parts.empty() && operations < limits.branchOperations && !isGood(parts.begin()->first)) {
      auto node = parts.extract(parts.begin());
      for (bool isLarge : {false, true})
        look(node.mapped(), isLarge, node.key());
    }
    root.best = best;
    root.bound = std::max(root.bound, std::min({parts.empty() ? infinity : parts.begin()->first, left, best.cost}));
  }

private:
  /// What variables may not take, and the variable to be halved next.
  struct Part {
    std::vector<std::pair<int32_t, double>> atMost, above; ///< variable, amount
    int32_t variable = -1;
    double amount = 0;
    double multiplier = 0;
  };

  bool isGood(double bound) const { return best.cost <= bound * (1 + limits.gap) || bound >= best.cost; }

  Part partOf(const MultiplierSearch<FlatProblem> &search, Part part) const {
    double most = 0;
    part.variable = -1;
    part.multiplier = search.multiplier;
    const Choice &small = search.small.choice, &large = search.large.choice;
    for (size_t v = 0; v < budget.amounts.size() && !small.empty() && !large.empty(); ++v)
      if (const std::vector<double> &amounts = budget.amounts[v]; !amounts.empty())
        if (const double saved = std::abs(amounts[large[v]] - amounts[small[v]]); saved > most) {
          most = saved;
          part.variable = static_cast<int32_t>(v);
          part.amount = std::min(amounts[large[v]], amounts[small[v]]) + saved / 2;
        }
    return part;
  }

  CostNetwork restricted(const Part &part) const {
    CostNetwork result = network;
    auto forbid = [&](int32_t variable, auto &&isForbidden) {
      Table table{{variable}, std::vector<double>(budget.amounts[variable].size())};
      for (size_t option = 0; option < table.costs.size(); ++option)
        if (isForbidden(budget.amounts[variable][option]))
          table.costs[option] = infinity;
      result.tables.push_back(std::move(table));
    };
    for (auto [variable, amount] : part.atMost)
      forbid(variable, [&](double taken) { return taken > amount; });
    for (auto [variable, amount] : part.above)
      forbid(variable, [&](double taken) { return taken <= amount; });
    return result;
  }

  void look(Part part, bool isLarge, double bound) {
    (isLarge ? part.above : part.atMost).emplace_back(part.variable, part.amount);
    const CostNetwork inPart = restricted(part);
    FlatProblem problem(inPart, budget, limits.solve);
    Priced<Choice> first = problem.solve(part.multiplier);
    if (first.bound < infinity) {
      bound = std::max(bound, first.bound - part.multiplier * budget.limit);
      offer(first.point);
      if (isGood(bound))
        add(bound, {});
      else
        lookCloser(problem, std::move(part), bound);
    }
    operations += problem.operations;
  }

  void lookCloser(FlatProblem &problem, Part part, double bound) {
    BudgetLimits few = limits;
    few.steps = 8;
    MultiplierSearch search(problem, few);
    search.best.cost = infinity;
    search.run();
    if (!isWithin(search.least, budget.limit) || search.bound == infinity)
      return; // nothing fits
    if (!(search.small.cost < infinity) || !isWithin(search.small.amount, budget.limit))
      return add(std::max(bound, search.bound), {});
    offer(search.small);
    offer(search.best);
    if (isWithin(search.large.amount, budget.limit))
      add(std::max(bound, search.bound), {});
    else
      add(std::max(bound, search.bound), partOf(search, std::move(part)));
  }

  void offer(const Point<Choice> &point) {
    if (isWithin(point.amount, budget.limit) && point.cost < best.cost)
      best = point;
  }

  /// Where there is nothing to halve, the bound is what is known.
  void add(double bound, Part part) {
    if (part.variable < 0)
      left = std::min(left, bound);
    else
      parts.emplace(bound, std::move(part));
  }

  const CostNetwork &network;
  const Budget &budget;
  const BudgetLimits &limits;
  std::multimap<double, Part> parts; ///< by their bounds
  double left = infinity;            ///< the least bound of parts that are not looked at any more
  Point<Choice> best;
  int64_t operations = 0;
};

template <typename Search> BudgetSolution summaryOf(const Search &search) {
  BudgetSolution summary;
  summary.least = search.least;
  summary.fits = isWithin(search.small.amount, search.problem.limit()) && search.small.cost < infinity;
  summary.solution.cost = search.best.cost;
  summary.solution.bound = std::min(search.bound, search.best.cost);
  summary.solution.optimal = summary.fits && summary.solution.bound >= search.best.cost;
  summary.amount = search.best.amount;
  summary.multiplier = search.multiplier;
  return summary;
}

} // namespace

BudgetSolution solveWithin(const CostNetwork &network, const Budget &budget, const BudgetLimits &limits) {
  FlatProblem problem(network, budget, limits.solve);
  MultiplierSearch search(problem, limits);
  search.best.cost = infinity;
  const bool hasGap = search.run();
  if (!(search.best.cost < infinity))
    search.best = search.small;
  auto offer = [&](Point<Choice> point) {
    if (isWithin(point.amount, budget.limit) && point.cost < search.best.cost)
      search.best = std::move(point);
  };
  if (hasGap) {
    const int64_t count = static_cast<int64_t>(network.options.size());
    offer(leastCrossing(problem, search.small.choice, search.large.choice, count));
    offer(leastCrossing(problem, search.best.choice, search.large.choice, count));
    for (const Choice &start : {search.large.choice, search.small.choice, search.best.choice})
      offer(Exchanges(problem, network, budget, start).run());
  }
  if (hasGap && search.gap() > limits.gap && limits.best > 0) {
    problem.solve(search.multiplier);
    std::vector<Solution> list = problem.best(limits.best);
    for (const Solution &next : list)
      offer(problem.point(next.choice));
    // What is not in the list is no cheaper than its end.
    if (list.size() == limits.best && list.size() > 1) // a single one may be all that the limits allow
      search.bound =
          std::max(search.bound, std::min(list.back().cost - search.multiplier * budget.limit, search.best.cost));
    else if (!list.empty() && list.size() > 1)
      search.bound = std::max(search.bound, search.best.cost);
  }
  if (hasGap && search.gap() > limits.gap && limits.branchOperations > 0)
    Branching(network, budget, limits).run(search);
  BudgetSolution solution = summaryOf(search);
  solution.solution.choice = search.best.choice;
  return solution;
}

/// Every round on its own.
static RepeatedBudgetSolution solveUnrolled(const RepeatedNetwork &network, const Budget &budget, const BudgetLimits &limits) {
  Unrolled unrolled = unroll(network);
  Budget unrolledBudget = budget;
  for (const Section &section : network.sections)
    for (int64_t round = 1; round < section.rounds; ++round)
      for (int32_t variable : section.variables)
        unrolledBudget.amounts.push_back(budget.amounts[variable]);
  RepeatedBudgetSolution result{solveWithin(unrolled.network, unrolledBudget, limits), {}};
  result.choice = rolled(network, unrolled, result.summary.solution.choice);
  result.summary.solution.choice = result.choice.choice;
  return result;
}

RepeatedBudgetSolution solveWithin(const RepeatedNetwork &network, const Budget &budget, const BudgetLimits &limits) {
  int64_t variables = 0, rounds = 0;
  for (const Section &section : network.sections) {
    variables += section.rounds * static_cast<int64_t>(section.variables.size());
    rounds = std::max(rounds, section.rounds);
  }
  RepeatedProblem problem(network, budget, limits.solve);
  MultiplierSearch search(problem, limits);
  search.best.cost = infinity;
  if (variables <= limits.unrolled && search.start())
    return solveUnrolled(network, budget, limits);
  const bool hasGap = variables > limits.unrolled && search.run();
  if (!(search.best.cost < infinity))
    search.best = search.small;
  if (hasGap)
    if (Point<RepeatedChoice> point = leastCrossing(problem, search.small.choice, search.large.choice, rounds);
        isWithin(point.amount, budget.limit) && point.cost < search.best.cost)
      search.best = std::move(point);
  RepeatedBudgetSolution result{summaryOf(search), search.best.choice};
  result.summary.solution.choice = result.choice.choice;
  return result;
}

} // namespace msc::search
