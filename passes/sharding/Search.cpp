#include "passes/sharding/Search.h"

#include "passes/sharding/SearchParts.h"
#include "passes/sharding/search/Workspace.h"

#include <algorithm>
#include <cmath>

namespace msc::passes {

SearchResult resultOf(const Problem &problem, const StepModel &model, const search::Solution &found) {
  SearchResult result{.us = found.cost, .boundUs = found.bound, .isOptimal = found.optimal};
  for (size_t i = 0; i < problem.operators.size(); ++i)
    result.choices.push_back({model.options(i).pieces[found.choice[i]],
                              problem.operators[i].configured ? "user" : searchedOrigin});
  return result;
}

StepEvents eventsOf(const Problem &problem, const StepModel &model, const SearchResult &result, dist::ReshardPlanner &planner) {
  // [operator]: where its rounds are apart, and which of the operators there it is.
  std::vector<std::pair<const RoundsTaken *, size_t>> apart(problem.operators.size());
  for (const RoundsTaken &taken : result.rounds)
    for (size_t i = 0; i < taken.operators.size(); ++i)
      apart[taken.operators[i]] = {&taken, i};
  auto pieces = [&](size_t op, int64_t round) -> const Pieces & {
    const auto [taken, at] = apart[op];
    if (!taken)
      return result.choices[op].pieces;
    auto run = taken->runs.begin();
    for (; run + 1 != taken->runs.end() && round >= run->rounds; ++run)
      round -= run->rounds;
    return run->pieces[at];
  };
  return eventsOf(problem, model, pieces, planner);
}

SearchResult resultOf(const Problem &problem, const StepModel &model, const RoundsModel &rounds, const search::RepeatedSolution &found) {
  search::Solution first = found.summary;
  first.choice.resize(model.network().options.size());
  SearchResult result = resultOf(problem, model, first);
  for (size_t section = 0; section < found.choice.runs.size(); ++section) {
    const std::vector<search::Run> &runs = found.choice.runs[section];
    const std::vector<int32_t> &variables = rounds.variablesOf(section);
    if (runs.size() == 1)
      continue;
    const std::vector<int32_t> operators(variables.begin(), std::ranges::lower_bound(variables, static_cast<int32_t>(problem.operators.size())));
    RoundsTaken &taken = result.rounds.emplace_back(RoundsTaken{rounds.repeatOf(section), operators, {}});
    for (const search::Run &run : runs) {
      auto &[count, pieces] = taken.runs.emplace_back(RoundsTaken::Run{run.rounds, {}});
      for (size_t i = 0; i < operators.size(); ++i)
        pieces.push_back(model.options(operators[i]).pieces[run.options[i]]);
    }
  }
  return result;
}

namespace {

/// What a search may spend in all its rounds of pricing. Few networks come near: those in which many values wait for readers far behind them.
class Effort {
public:
  Effort(StepModel &model, int64_t mostOperations) : model(model), mostOperations(mostOperations) {}

  search::SolveLimits limits() {
    search::SolveLimits limits;
    limits.left = &left;
    limits.branching = mostOperations / 64;
    if (mayPriceAll())
      limits.operations = std::min(limits.operations, std::max(mostBeforePricing() - spent, leastOperations));
    else if (isHard) // tables are split, whatever their size: many small parts say more in that time
      limits.tableEntries = int64_t(1) << 20;
    return limits;
  }
  /// Prices everything once searches have taken long beside that. True: it did.
  bool spend(const search::Solution &found) {
    const bool takesLong = !found.optimal || spent + found.operations >= mostBeforePricing(), pricesAll = takesLong && mayPriceAll();
    spent += found.operations;
    boundUs = std::max(boundUs, found.bound);
    if (pricesAll) {
      left -= model.operationsOfPricing();
      model.makeAllExact();
    } else if (!found.optimal && !isHard) {
      left = std::min(left, mostOperations / 4);
      isHard = true;
    }
    return pricesAll;
  }
  bool isSpent() const { return left < mostOperations / 64; }
  bool areTablesSplit() const { return isHard; }
  double bound() const { return boundUs; }

private:
  static constexpr int64_t leastOperations = int64_t(1) << 26; ///< of a search
  StepModel &model;
  int64_t mostOperations;
  int64_t left = mostOperations, spent = 0;
  bool isHard = false;
  double boundUs = 0;

  bool mayPriceAll() const {
    const int64_t pricing = model.operationsOfPricing();
    return pricing > 0 && pricing <= left / 2;
  }
  /// A search that takes a quarter of it is hard, and would be so again and again.
  int64_t mostBeforePricing() const { return model.operationsOfPricing() / 4; }
};

} // namespace

/// Of a search: another one like it is one too many.
static constexpr int64_t manyOperations = int64_t(1) << 30;

/// All rounds of a repeat alike. `isAll`: they cannot differ. What is nearly as good is with it where it took long.
static search::Nearest searchAlike(int64_t operations, StepModel &model, const SearchWatch &watch, bool isAll) {
  search::Solution best{.cost = search::infinity};
  Effort effort(model, operations);
  search::Workspace workspace;
  double below = search::infinity; // what costs as much as something that is known need not be priced
  bool tookLong = false;
  for (PricedAtOnce many(model.network().options.size());;) {
    search::Nearest found = effort.areTablesSplit() ? search::Nearest{search::solveExactly(model.network(), effort.limits()), {}}
                                                    : search::nearestChanges(workspace, model.network(), many.next(), effort.limits(), below);
    search::Solution &now = found.best;
    bool changes = model.makeExact(now.choice);
    tookLong |= now.operations >= manyOperations; // what is near is told then
    if (!changes && now.optimal) {
      if (!tookLong)
        found.others.clear();
      return found;
    }
    changes |= effort.spend(now);
    const double us = changes ? search::costOf(model.network(), now.choice) : now.cost;
    if (us < best.cost) {
      best = now;
      best.cost = us;
    }
    if (!changes || effort.isSpent()) {
      best.bound = std::min(effort.bound(), best.cost);
      best.optimal = false;
      return {best, {}};
    }
    if (watch)
      watch(isAll ? effort.bound() : 0, best.cost);
    model.priceNear(found, us);
    below = tookLong ? search::infinity : best.cost;
  }
}

void priceEnds(RoundsModel &rounds, const search::RepeatedChoice &known, size_t count, const RoundsModel::Amounts &added,
               const search::SolveLimits &limits) {
  const search::RepeatedNetwork network = rounds.network(added);
  const double us = search::costOf(network, known);
  const search::EndsApart apart(network);
  std::vector<search::RepeatedChoice> choices;
  for (const search::Solution &solution : search::nearestAssignments(apart.network(), count, limits))
    if (solution.cost < us)
      choices.push_back(apart.rolled(solution.choice));
  rounds.makeExact(choices);
}

/// The cheapest assignment under prices as they are, made exact. `watch` hears of bounds.
static search::RepeatedSolution cheapest(StepModel &model, RoundsModel &rounds, int64_t mostOperations,
                                         const std::function<void(double leastUs)> &watch) {
  search::RepeatedSolution best;
  best.summary.cost = search::infinity;
  Effort effort(model, mostOperations);
  for (PricedAtOnce many;;) {
    search::RepeatedSolution found = search::solveExactly(rounds.network(), effort.limits());
    search::Solution &now = found.summary;
    bool changes = rounds.makeExact(found.choice);
    if (!changes && now.optimal)
      return found;
    changes |= effort.spend(now);
    if (const double us = changes ? search::costOf(rounds.network(), found.choice) : now.cost; us < best.summary.cost) {
      best = found;
      best.summary.cost = us;
    }
    if (!changes || effort.isSpent()) {
      best.summary.bound = std::min(effort.bound(), best.summary.cost);
      best.summary.optimal = false;
      return best;
    }
    watch(effort.bound());
    if (!effort.areTablesSplit() && model.operationsOfPricing() > 0)
      priceEnds(rounds, found.choice, many.next(), {}, effort.limits());
  }
}

SearchResult searchOptimal(const Problem &problem, StepModel &model, const SearchWatch &watch, std::optional<int64_t> most) {
  RoundsModel rounds(problem, model);
  const int64_t operations = most.value_or(problem.searchOperations);
  const search::Nearest alike = searchAlike(operations, model, watch, /*isAll=*/!rounds.hasSections());
  if (!rounds.hasSections()) {
    SearchResult result = resultOf(problem, model, alike.best);
    if (!alike.others.empty())
      for (const search::Solution &solution : search::allOf(model.network(), alike))
        result.near.push_back({solution.choice, {}});
    return result;
  }
  return resultOf(problem, model, rounds, cheapest(model, rounds, operations, [&](double leastUs) {
                    if (watch)
                      watch(leastUs, alike.best.cost);
                  }));
}

std::vector<search::RepeatedChoice> nearestChoices(const search::RepeatedNetwork &network, size_t count, const search::SolveLimits &limits) {
  constexpr size_t mostVariables = 2000;
  size_t variables = network.network.options.size();
  for (const search::Section &section : network.sections)
    variables += section.variables.size() * static_cast<size_t>(section.rounds - 1);
  std::vector<search::RepeatedChoice> choices;
  if (variables <= mostVariables) {
    const search::Unrolled unrolled = search::unroll(network);
    for (const search::Solution &solution : search::nearestAssignments(unrolled.network, count, limits))
      choices.push_back(search::rolled(network, unrolled, solution.choice));
  } else {
    const search::EndsApart apart(network);
    for (const search::Solution &solution : search::nearestAssignments(apart.network(), count, limits))
      choices.push_back(apart.rolled(solution.choice));
  }
  return choices;
}

/// Those that are nearest once what gradients share of starting collectives is counted and not guessed: the first of more, by that.
/// `choices`: the nearest, if they are known already.
static std::vector<search::RepeatedChoice> nearestWithStarts(StepModel &model, RoundsModel &rounds, size_t count, const search::SolveLimits &limits,
                                                             std::vector<search::RepeatedChoice> choices) {
  constexpr size_t lookedAt = 16; // for each that is taken
  constexpr int mostLists = 4;    // what is near by bounds on prices may not be, once they are exact
  if (choices.empty())
    choices = nearestChoices(rounds.network(), lookedAt * count, limits);
  for (int list = 1; rounds.makeExact(choices) && list < mostLists; ++list)
    choices = nearestChoices(rounds.network(), lookedAt * count, limits);
  model.shareStarts(false);
  const search::RepeatedNetwork network = rounds.network();
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < choices.size(); ++i)
    order.emplace_back(search::costOf(network, choices[i]) + rounds.startsUs(choices[i]), i);
  model.shareStarts(true);
  std::ranges::sort(order);
  std::vector<search::RepeatedChoice> taken;
  for (auto [us, i] : order)
    if (taken.size() < count)
      taken.push_back(std::move(choices[i]));
  return taken;
}

bool isSame(const SearchResult &a, const SearchResult &b) {
  auto sameRounds = [](const RoundsTaken &a, const RoundsTaken &b) {
    return a.repeat == b.repeat && std::ranges::equal(a.runs, b.runs, [](const RoundsTaken::Run &a, const RoundsTaken::Run &b) {
             return a.rounds == b.rounds && a.pieces == b.pieces;
           });
  };
  return std::ranges::equal(a.choices, b.choices, {}, &Choice::pieces, &Choice::pieces) && std::ranges::equal(a.rounds, b.rounds, sameRounds);
}

std::vector<SearchResult> searchNear(const Problem &problem, StepModel &model, const SearchResult &best, bool hides, size_t most,
                                     const SearchWatch &watch) {
  RoundsModel rounds(problem, model);
  std::vector<search::RepeatedChoice> choices;
  const int64_t operations = best.near.empty() ? problem.searchOperations : std::min(problem.searchOperations, 4 * manyOperations);
  for (double share : {1.0, 0.5})
    if (hides && choices.size() < most) {
      model.hideGradients(share);
      choices.push_back(cheapest(model, rounds, operations, [&](double) {
                          if (watch)
                            watch(best.boundUs, best.us);
                        }).choice);
    }
  model.hideGradients(0);
  search::SolveLimits limits;
  if (!best.isOptimal) // the search has taken long, and would again
    limits = {.tableEntries = int64_t(1) << 20, .operations = int64_t(1) << 30, .branching = int64_t(1) << 26};
  std::vector<search::RepeatedChoice> near;
  if (best.near.size() > most)
    near = best.near;
  std::ranges::move(nearestWithStarts(model, rounds, most + 1, limits, std::move(near)), std::back_inserter(choices));
  std::vector<SearchResult> results;
  for (const search::RepeatedChoice &choice : choices) {
    rounds.makeExact(choice);
    const search::Solution summary{.choice = choice.choice, .cost = search::costOf(rounds.network(), choice), .bound = best.boundUs,
                                   .optimal = best.isOptimal};
    SearchResult result = resultOf(problem, model, rounds, {choice, summary});
    if (results.size() < most && std::isfinite(result.us) && !isSame(result, best) &&
        std::ranges::none_of(results, [&](const SearchResult &other) { return isSame(result, other); }))
      results.push_back(std::move(result));
  }
  return results;
}

} // namespace msc::passes
