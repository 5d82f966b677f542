#include "passes/sharding/LocalMoves.h"
#include "passes/sharding/PricedSolver.h"
#include "passes/sharding/SearchParts.h"
#include "passes/sharding/cost/MemoryMoment.h"
#include "passes/sharding/search/Crossings.h"
#include "passes/sharding/search/Mixture.h"
#include "passes/sharding/search/Splices.h"
#include "passes/sharding/search/Workspace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

namespace msc::passes {
namespace {

/// What a step needs is the most of its moments. No assignment that fits into the limit takes more than that in a mean of moments, and
/// the cheapest one of these is known (Budget.h): a bound. Which ones fit is simulated: those that are cheapest for a price of the
/// bytes in a mean, and what is near them. Where one that does not fit needs most, there is another moment; what a moment counts in
/// the mean goes by how much it is above the limit.
class LimitedSearch {
public:
  LimitedSearch(const Problem &problem, StepModel &model, double most, dist::ReshardPlanner &planner, const search::BudgetLimits &limits,
                const SearchWatch &watch, const PlannedBytes &planned)
      : problem(problem), model(model), most(most), planner(planner), limits(limits), watch(watch), planned(planned), plansBeyond(planned.plans), rounds(problem, model),
        solver(model, rounds, problem.searchOperations), shape(rounds.network()), inRounds(search::variablesInRounds(shape)), moments(problem, model, rounds.hasSections()) {
    for (const std::vector<int32_t> &variables : inRounds)
      unrolledSize += variables.size();
  }

  std::vector<SearchResult> run() {
    constexpr int64_t shareOfTrials = 8;
    const SearchResult free = searchOptimal(problem, model, nullptr, problem.searchOperations / (closesGap() ? 1 : shareOfTrials));
    solver.begin();
    if (!free.isOptimal) // the tables are too large: what is asked here many times is bounded, and no more is spent on it than shows something
      limits = {.solve = {.tableEntries = int64_t(1) << 18, .operations = int64_t(1) << 28, .branching = int64_t(1) << 25}, .steps = 16,
                .best = 0, .branchOperations = 0, .unrolled = 0};
    limits.solve.left = solver.operationsLeft();
    boundUs = free.boundUs;
    Point large = solver.at({}, 0, limits.solve);
    look(large);
    double smallestBefore = search::infinity;
    for (int step = 0; step < mostMeans && !isGood() && (step == 0 || !solver.isSpent()); ++step) {
      const double us = fitting.empty() ? search::infinity : fitting.front().us;
      const bool isTighter = leastBytes <= most && bound(step);
      approach(large, step);
      if (leastBytes > most ? step >= mostShrunk : !isTighter && !fitting.empty() && fitting.front().us >= us)
        break;
      if (const double before = std::exchange(smallestBefore, smallest.arenaBytes); !closesGap() && fitting.empty() && smallest.arenaBytes > before * shrinks)
        break;
    }
    if (leastBytes <= most && fitting.empty())
      oscillate();
    if (leastBytes <= most && !fitting.empty() && !isGood() && closesGap() && unrolledSize <= mostUnrolled)
      raiseBound();
    if (leastBytes <= most && !fitting.empty() && fitting.front().us > boundUs * (1 + estimatedGap))
      oscillate();
    if (leastBytes <= most && !isGood() && closesGap())
      close();
    limits.branchOperations = std::min(limits.branchOperations, mostBranched);
    if (leastBytes <= most && !isGood() && !fitting.empty() && closesGap())
      boundUs = std::max(boundUs, solveLeast(limits).summary.solution.bound);
    checkFastest();
    std::vector<SearchResult> found(fitting.begin(), fitting.end());
    if (found.empty())
      found.push_back(smallest);
    // What takes much longer is no candidate where the plan of the first turns out too large: less is asked for then.
    std::erase_if(found, [&](const SearchResult &other) { return other.us > found.front().us * (1 + largeGap); });
    for (SearchResult &result : found) {
      const bool fits = result.arenaBytes <= most;
      result.boundUs = fits ? std::min(boundUs, result.us) : leastBytes <= most ? boundUs : 0; // also of what a search for less will find
      result.leastBytes = leastBytes;
      result.isOptimal = fits && result.us <= boundUs * (1 + 1e-12);
    }
    return found;
  }

  /// Of all that run() simulated, what needs least.
  const SearchResult &leastFound() const { return smallest; }
  bool isWorthAnother() const { return closesGap() && unrolledSize <= fewVariables; }

private:
  /// A mean of moments.
  struct Mean {
    bool isLeast = false;        ///< of what is there at least; else of what there is about
    std::vector<double> weights; ///< logarithms, of each moment
  };
  /// Whether a simulated step says which moment needs most.
  enum class Learns {
    Never,
    FromLarge, ///< where it does not fit
    More,      ///< where that has more at least, each round a variable of its own, than all that are known
  };
  using Point = SimulatedChoice;
  struct Fitting : SearchResult {
    search::RepeatedChoice choice;
  };

  /// Of which the cheapest mixture gives prices.
  struct Mixed {
    std::vector<Point> points; ///< as in the mixture
    search::Mixture mixture;
  };

  const Problem &problem;
  StepModel &model;
  double most;
  dist::ReshardPlanner &planner;
  search::BudgetLimits limits;
  SearchWatch watch;
  PlannedBytes planned;
  int64_t plansBeyond; ///< that may be made besides, of what is found beyond the limit
  RoundsModel rounds;
  PricedSolver solver;
  const search::RepeatedNetwork shape; ///< which variables there are in rounds, at any prices
  const std::vector<std::vector<int32_t>> inRounds; ///< of each variable of it: those of the unrolled network
  size_t unrolledSize = 0;
  MemoryMoments moments;
  std::vector<MemoryMoment> seen;
  std::vector<double> rests; ///< of each: what its step needs beside what is about
  Mean least{.isLeast = true, .weights = {}}, about;
  std::map<std::vector<int64_t>, double> looked; ///< what those that were simulated need
  std::vector<Fitting> fitting;                  ///< of them, the fastest first
  SearchResult smallest;                         ///< of them, the one that needs least
  std::vector<Point> tooLarge;                   ///< cheapest for some price of a byte
  double boundUs = 0, leastBytes = 0;
  RoundsModel::Amounts closing; ///< of variables in rounds: added where the best bound was found
  double closingUs = 0;         ///< what a step pays of it at most
  int64_t simulated = 0, mostSimulated = 1'500'000; ///< events
  int packedInVain = 0;  ///< steps that do not fit all the same
  int plannedInVain = 0; ///< plans that do not
  double leastInVain = search::infinity; ///< by the simulation, of their steps while nothing fits

  static constexpr int mostMeans = 8, mostPrices = 16, mostShrunk = 3, mostRaises = 200;
  static constexpr size_t fewVariables = 64, mostNear = 64, mostApart = 400, mostClosed = 2000, mostUnrolled = 20'000;
  static constexpr size_t mostListed = 65536, fewListed = 4096, listedVariables = size_t(1) << 23; ///< of all in a list
  static constexpr int64_t mostSteps = 300, mostSimulatedNear = 60'000, mostSimulatedBeyond = 600'000, mostBranched = int64_t(1) << 22;
  static constexpr double smallGap = 1e-3, estimatedGap = 1e-2, largeGap = 0.03, shrinks = 0.97;

  /// Else what it finds is about what there is.
  bool closesGap() const { return limits.branchOperations > 0; }
  bool isGood() const { return !fitting.empty() && fitting.front().us <= boundUs * (1 + (closesGap() ? smallGap : estimatedGap)); }

  /// Simulates a step.
  void look(Point &point, Learns learns = Learns::FromLarge) {
    if (watch)
      watch(boundUs, fitting.empty() ? search::infinity : fitting.front().us);
    auto [known, isNew] = looked.try_emplace(keyOf(point.choice));
    if (!isNew) {
      point.arenaBytes = known->second;
      return;
    }
    SearchResult result = resultOf(problem, model, rounds, {point.choice, {.choice = point.choice.choice, .cost = point.us}});
    const StepEvents step = eventsOf(problem, model, result, planner);
    simulated += static_cast<int64_t>(step.events.size());
    if (!closesGap()) // one of many trials
      mostSimulated = std::min(mostSimulated, mostSteps * static_cast<int64_t>(step.events.size()));
    const StepLives lives(step);
    known->second = point.arenaBytes = result.arenaBytes = arenaOf(result, lives);
    if (smallest.arenaBytes == 0 || result.arenaBytes < smallest.arenaBytes)
      smallest = result;
    if (result.arenaBytes <= most)
      fitting.insert(std::ranges::upper_bound(fitting, result.us, {}, &SearchResult::us), {result, point.choice});
    if (learns == Learns::FromLarge && result.arenaBytes > most)
      learn(moments.most(step, lives), point);
    else if (learns == Learns::More)
      learnMore(step, lives, point);
  }

  /// What a rank needs: by the plan where that decides whether this is the fastest assignment that fits, in proportion to the limit of the
  /// simulation. Small networks need up to a third less in their plans.
  double arenaOf(SearchResult &result, const StepLives &lives) {
    constexpr double mostAbove = 4.0 / 3;
    constexpr int mostInVain = 8; // of those that the simulation finds too large
    const auto simulated = static_cast<double>(memoryOf(lives).arena());
    const bool isFastest = fitting.empty() || result.us < fitting.front().us;
    const bool isAbove = simulated > most;
    if (!planned.of || planned.plans <= 0 || !isFastest ||
        (isAbove && (simulated > most * mostAbove || (fitting.empty() && simulated > leastInVain) || plannedInVain >= mostInVain)))
      return simulated;
    const double bytes = planOf(result);
    if (isAbove && bytes > most) {
      ++plannedInVain;
      leastInVain = fitting.empty() ? simulated : leastInVain; // a plan of what is smaller is smaller, more often than not
    }
    return bytes;
  }

  double planOf(SearchResult &result) {
    --planned.plans;
    result.isPlanned = true;
    return planned.of(result) / planned.most * most;
  }

  /// Of what was simulated alone, too, the plan decides where it is the fastest.
  void checkFastest() {
    while (planned.of && planned.plans > 0 && !fitting.empty() && !fitting.front().isPlanned) {
      Fitting &first = fitting.front();
      const double bytes = looked[keyOf(first.choice)] = planOf(first);
      if (smallest.us == first.us && smallest.arenaBytes == first.arenaBytes)
        smallest.arenaBytes = bytes;
      first.arenaBytes = bytes;
      if (bytes > most)
        fitting.erase(fitting.begin());
    }
  }

  /// Blocks are packed tightly only so often in vain.
  StepMemory memoryOf(const StepLives &lives) {
    constexpr int mostInVain = 40, fewInVain = 4;
    if (packedInVain >= (closesGap() ? mostInVain : fewInVain))
      return lives.memory(0);
    const StepMemory memory = lives.memory(most);
    packedInVain += memory.isTight && static_cast<double>(memory.arena()) > most;
    return memory;
  }

  void learn(MemoryMoment moment, const Point &point) {
    rests.push_back(std::max(0.0, point.arenaBytes - amountOf(moment.about, point.choice))); // so that it is this one's, though rounds differ
    seen.push_back(std::move(moment));
    for (Mean *mean : {&least, &about})
      mean->weights.push_back(mean->weights.empty() ? 0 : std::ranges::max(mean->weights));
  }

  void learnMore(const StepEvents &step, const StepLives &lives, const Point &point) {
    const search::Choice options = unrolledChoice(point.choice);
    double known = 0;
    for (const MemoryMoment &moment : seen)
      known = std::max(known, leastInRounds(moment, options));
    if (point.arenaBytes <= known * (1 + smallGap))
      return;
    if (MemoryMoment moment = moments.most(step, lives); leastInRounds(moment, options) > known * (1 + smallGap / 10))
      learn(std::move(moment), point);
  }

  /// What operators take.
  std::vector<int64_t> keyOf(const search::RepeatedChoice &choice) const {
    std::vector<int64_t> key(choice.choice.begin(), choice.choice.begin() + static_cast<ptrdiff_t>(problem.operators.size()));
    for (const std::vector<search::Run> &runs : choice.runs)
      for (const search::Run &run : runs) {
        key.push_back(run.rounds);
        key.insert(key.end(), run.options.begin(), run.options.end());
      }
    return key;
  }

  double amountOf(const RoundsModel::Amounts &tables, const search::RepeatedChoice &choice) const {
    return search::amountOf({rounds.perRound(tables), 0}, shape, choice);
  }

  /// `limit`: of the moments themselves.
  search::Budget budgetOf(const Mean &mean, double limit) const {
    const std::vector<double> shares = sharesOf(mean);
    search::Budget budget{RoundsModel::Amounts(model.network().options.size()), limit};
    for (size_t i = 0; i < seen.size(); ++i) {
      const RoundsModel::Amounts &tables = mean.isLeast ? seen[i].least : seen[i].about;
      for (size_t variable = 0; variable < tables.size(); ++variable) {
        budget.amounts[variable].resize(std::max(budget.amounts[variable].size(), tables[variable].size()));
        for (size_t option = 0; option < tables[variable].size(); ++option)
          budget.amounts[variable][option] += shares[i] * tables[variable][option];
      }
    }
    return budget;
  }

  std::vector<double> sharesOf(const Mean &mean) const {
    std::vector<double> shares;
    double sum = 0;
    for (double weight : mean.weights)
      sum += shares.emplace_back(std::exp(weight - std::ranges::max(mean.weights)));
    for (double &share : shares)
      share /= sum;
    return shares;
  }

  /// Each round is a variable of its own in bounds: so more is known to be live.
  bool areApart() const { return rounds.hasSections() && unrolledSize <= mostApart && closesGap(); }

  void addLeast(const MemoryMoment &moment, double share, RoundsModel::Amounts &amounts) const {
    auto add = [&](int32_t variable, const std::vector<double> &bytes, double part) {
      amounts[variable].resize(std::max(amounts[variable].size(), bytes.size()));
      for (size_t option = 0; option < bytes.size(); ++option)
        amounts[variable][option] += part * bytes[option];
    };
    for (size_t variable = 0; variable < moment.leastOfAll.size(); ++variable)
      for (int32_t inRound : inRounds[variable])
        add(inRound, moment.leastOfAll[variable], share / static_cast<double>(inRounds[variable].size()));
    for (const MemoryMoment::OfRound &of : moment.leastOfRounds)
      add(inRounds[of.variable][inRounds[of.variable].size() == 1 ? 0 : of.round], of.bytes, share);
  }

  /// Of the least, in the unrolled network.
  RoundsModel::Amounts leastInRounds() const {
    RoundsModel::Amounts amounts(unrolledSize);
    const std::vector<double> shares = sharesOf(least);
    for (size_t i = 0; i < seen.size(); ++i)
      addLeast(seen[i], shares[i], amounts);
    return amounts;
  }

  double leastOf(const MemoryMoment &moment, const search::RepeatedChoice &choice) const {
    return areApart() ? leastInRounds(moment, choice) : amountOf(moment.least, choice);
  }

  search::Choice unrolledChoice(const search::RepeatedChoice &choice) const { return search::unrolledChoice(shape, inRounds, choice); }

  /// The cheapest below the limit in the mean of what is there at least.
  search::RepeatedBudgetSolution solveLeast(const search::BudgetLimits &limits) {
    if (!areApart())
      return solver.within(budgetOf(least, most), limits);
    return solver.withinInRounds({leastInRounds(), most}, limits);
  }

  /// What the mean of the least counts for each variable in rounds.
  RoundsModel::Amounts leastApart() const {
    if (areApart())
      return leastInRounds();
    const RoundsModel::Amounts perRound = rounds.perRound(budgetOf(least, most).amounts);
    RoundsModel::Amounts amounts(unrolledSize);
    for (size_t variable = 0; variable < perRound.size(); ++variable)
      for (int32_t inRound : inRounds[variable])
        amounts[inRound] = perRound[variable];
    return amounts;
  }

  /// Moments that are above the limit weigh more the next time, others less.
  void weigh(Mean &mean, const search::RepeatedChoice &choice, int step) {
    const double rate = 20 / (1 + step / 4.0);
    for (size_t i = 0; i < mean.weights.size(); ++i) {
      const double bytes = mean.isLeast ? leastOf(seen[i], choice) : amountOf(seen[i].about, choice) + rests[i];
      mean.weights[i] += rate * (bytes - most) / most;
    }
  }

  /// Of all that fits. False: the same moments would say no more.
  bool bound(int step) {
    search::BudgetLimits few = search::BudgetLimits::multipliersAlone();
    few.solve = limits.solve;
    const int64_t kept = solver.setAside(); // to look for what fits
    search::RepeatedBudgetSolution found = solveLeast(few);
    solver.giveBack(kept);
    leastBytes = std::max(leastBytes, found.summary.least);
    if (!found.summary.fits)
      return false;
    if (found.summary.solution.bound > boundUs || closing.empty()) {
      closing = multiplied(leastApart(), found.summary.multiplier);
      closingUs = found.summary.multiplier * most;
    }
    boundUs = std::max(boundUs, found.summary.solution.bound);
    Point point{found.choice, found.summary.solution.cost, 0};
    look(point);
    weigh(least, found.choice, step);
    return std::ranges::any_of(seen, [&](const MemoryMoment &moment) { return leastOf(moment, found.choice) > most; });
  }

  /// Each moment has a price of its own, and each round is a variable of its own. The prices are those of the cheapest mixture of what was
  /// found so far, halfway to those of the best bound (P. Wentges, Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming,
  /// 1997).
  void raiseBound() {
    constexpr int mostIdle = 6, mostSplicings = 4;
    constexpr double progress = 1e-4;
    search::Workspace workspace;
    search::RepeatedNetwork network = rounds.network();
    search::Unrolled unrolled = search::unroll(network);
    Mixed mixed{{{fitting.front().choice, fitting.front().us, fitting.front().arenaBytes}}, {fitting.front().us, aboveLimit(fitting.front().choice)}};
    std::vector<double> best(seen.size());
    double raised = 0;
    for (int step = 0, idle = 0, splicings = 0; step < mostRaises && !isGood() && !solver.isSpent(); ++step) {
      mixed.mixture.solve();
      std::vector<double> prices = mixed.mixture.prices();
      best.resize(prices.size());
      for (size_t i = 0; i < prices.size(); ++i)
        prices[i] = (prices[i] + best[i]) / 2;
      RoundsModel::Amounts added(unrolledSize);
      for (size_t i = 0; i < prices.size(); ++i)
        if (prices[i] > 0)
          addLeast(seen[i], prices[i], added);
      const double paid = most * std::accumulate(prices.begin(), prices.end(), 0.0);
      const search::Solution found = search::solveExactly(workspace, priced(unrolled.network, added), limits.solve);
      const double us = found.bound - paid;
      idle = us > raised * (1 + progress) ? 0 : idle + 1;
      if (us > raised) {
        raised = us;
        best = prices;
      }
      if (us > boundUs) {
        boundUs = us;
        closing = std::move(added);
        closingUs = paid;
      }
      Point point{search::rolled(network, unrolled, found.choice), 0, 0};
      if (rounds.makeExact(point.choice)) {
        network = rounds.network();
        unrolled = search::unroll(network);
      }
      point.us = search::costOf(network, point.choice);
      mix(mixed, std::move(point));
      if (idle < mostIdle)
        continue;
      const size_t known = seen.size();
      for (size_t section = 0; section < shape.sections.size() && known > 0; ++section)
        splice(section, mixed);
      if (seen.size() == known || ++splicings == mostSplicings)
        break;
      network = rounds.network();
      unrolled = search::unroll(network);
      idle = 0;
    }
    crossAll(mixed.points);
  }

  /// Simulates it, and learns where it needs most.
  void mix(Mixed &mixed, Point point) {
    const std::vector<double> above = aboveLimit(point.choice); // of what was known before it
    mixed.mixture.add(point.us, above);
    look(point, Learns::More);
    mixed.points.push_back(std::move(point));
    for (size_t i = above.size(); i < seen.size(); ++i) {
      std::vector<double> aboveThis;
      for (const Point &other : mixed.points)
        aboveThis.push_back(leastInRounds(seen[i], other.choice) - most);
      mixed.mixture.addLimit(aboveThis);
    }
  }

  /// Stretches of rounds of those in the cheapest mixture, by what the moments have at least; how much more there is, is simulated.
  void splice(size_t section, Mixed &mixed) {
    constexpr int mostSpliced = 40;
    mixed.mixture.solve();
    std::vector<search::RepeatedChoice> parts{fitting.front().choice};
    for (size_t i = 0; i < mixed.points.size(); ++i)
      if (mixed.mixture.shares()[i] > 0)
        parts.push_back(mixed.points[i].choice);
    std::vector<search::Budget> budgets;
    for (const MemoryMoment &moment : seen)
      addLeast(moment, 1, budgets.emplace_back(search::Budget{RoundsModel::Amounts(unrolledSize), most}).amounts);
    search::Splices splices(rounds.network(), section, parts, budgets, fitting.front().us);
    std::optional<Point> tooLarge; // the slowest one
    for (int i = 0; i < mostSpliced && simulated < mostSimulated; ++i) {
      std::optional<search::RepeatedChoice> choice = splices.cheapest();
      if (!choice)
        return;
      rounds.makeExact(*choice);
      Point point{std::move(*choice), 0, 0};
      point.us = search::costOf(rounds.network(), point.choice);
      const double known = std::ranges::max(aboveLimit(point.choice));
      mix(mixed, std::move(point));
      const Point spliced = mixed.points.back();
      if (spliced.arenaBytes <= most) {
        if (tooLarge)
          cross(spliced, *tooLarge);
        return;
      }
      splices.refuse(spliced.arenaBytes - most - known);
      if (!tooLarge || spliced.us > tooLarge->us)
        tooLarge = spliced;
    }
  }

  /// Between those first where the fastest should be.
  void crossAll(const std::vector<Point> &points) {
    constexpr size_t few = 3;
    std::vector<std::tuple<double, const Point *, const Point *>> pairs;
    for (const Point &small : points)
      for (const Point &large : points)
        if (small.arenaBytes <= most && large.arenaBytes > most)
          pairs.emplace_back(large.us + (small.us - large.us) * (large.arenaBytes - most) / (large.arenaBytes - small.arenaBytes), &small, &large);
    std::ranges::stable_sort(pairs, {}, [](const auto &pair) { return std::get<0>(pair); });
    for (const auto &[us, small, large] : std::span(pairs).first(std::min(few, pairs.size())))
      if (us < fitting.front().us)
        cross(*small, *large);
  }

  /// Of what moments have at least, each round a variable of its own.
  std::vector<double> aboveLimit(const search::RepeatedChoice &choice) const {
    const search::Choice options = unrolledChoice(choice);
    std::vector<double> above;
    for (const MemoryMoment &moment : seen)
      above.push_back(leastInRounds(moment, options) - most);
    return above;
  }

  /// What a moment has at least, each round a variable of its own.
  double leastInRounds(const MemoryMoment &moment, const search::RepeatedChoice &choice) const { return leastInRounds(moment, unrolledChoice(choice)); }
  double leastInRounds(const MemoryMoment &moment, const search::Choice &options) const {
    double bytes = 0;
    for (size_t variable = 0; variable < moment.leastOfAll.size(); ++variable)
      if (const std::vector<double> &list = moment.leastOfAll[variable]; !list.empty())
        for (int32_t inRound : inRounds[variable])
          bytes += list[options[inRound]] / static_cast<double>(inRounds[variable].size());
    for (const MemoryMoment::OfRound &of : moment.leastOfRounds)
      bytes += of.bytes[options[inRounds[of.variable][inRounds[of.variable].size() == 1 ? 0 : of.round]]];
    return bytes;
  }

  /// The two lines through the cheapest point that does not fit and the cheapest one that does meet at the next price, until there is
  /// none below both.
  void approach(Point large, int step) {
    const RoundsModel::Amounts amounts = budgetOf(about, 0).amounts, perRound = rounds.perRound(amounts);
    auto amount = [&](const Point &point) { return search::amountOf({perRound, 0}, shape, point.choice); };
    Point small = solver.at(perRound, 1e6 * large.us / most, limits.solve);
    look(small);
    double usPerByte = 0;
    if (small.arenaBytes <= most)
      for (int i = 0; i < mostPrices && simulated < mostSimulated && !solver.isSpent(); ++i) {
        const double next = (small.us - large.us) / (amount(large) - amount(small));
        if (!(next > 0) || !(next < search::infinity) || next == usPerByte)
          break;
        usPerByte = next;
        Point point = solver.at(perRound, usPerByte, limits.solve);
        look(point);
        const bool isBelow = point.us + usPerByte * amount(point) < (large.us + usPerByte * amount(large)) * (1 - 1e-12);
        if (!isBelow)
          break;
        (point.arenaBytes <= most ? small : large) = std::move(point);
      }
    if (usPerByte > 0 && closesGap())
      lookNear(multiplied(perRound, usPerByte));
    if (small.arenaBytes <= most && large.arenaBytes > most)
      cross(small, large);
    if (large.arenaBytes > most && large.arenaBytes < search::infinity && std::ranges::find(tooLarge, large.us, &Point::us) == tooLarge.end())
      tooLarge.push_back(large);
    weigh(about, usPerByte > 0 ? large.choice : small.choice, step);
  }

  /// Where one price changes all rounds at once, some may: between what fits and what is faster and does not, as few as it takes.
  void cross(const Point &small, const Point &large) {
    if (unrolledSize > mostUnrolled)
      return;
    search::RepeatedNetwork network = rounds.network();
    const search::Unrolled unrolled = search::unroll(network);
    const std::vector<int32_t> order = operatorsInRounds(problem, shape, inRounds);
    const search::Choice fitting = unrolledChoice(small.choice), fast = unrolledChoice(large.choice);
    for (bool isFromBehind : {false, true}) {
      search::Crossings crossings(unrolled.network, order, isFromBehind ? fast : fitting, isFromBehind ? fitting : fast);
      for (size_t least = 0, most = crossings.size(); most - least > 1 && simulated < mostSimulated;) {
        const size_t middle = least + (most - least) / 2;
        Point point{search::rolled(network, unrolled, crossings.at(isFromBehind ? crossings.size() - middle : middle)), 0, 0};
        if (rounds.makeExact(point.choice))
          network = rounds.network();
        point.us = search::costOf(network, point.choice);
        look(point, Learns::Never);
        (point.arenaBytes <= this->most ? most : least) = middle;
      }
    }
  }

  /// Those that are faster than what fits.
  void lookNear(const RoundsModel::Amounts &added) {
    std::vector<search::RepeatedChoice> choices = nearestChoices(rounds.network(added), mostNear, limits.solve);
    rounds.makeExact(choices);
    const search::RepeatedNetwork network = rounds.network();
    const int64_t end = std::min(mostSimulated, simulated + mostSimulatedNear);
    for (search::RepeatedChoice &choice : choices) {
      if (simulated >= end)
        return;
      const double us = search::costOf(network, choice);
      if (!fitting.empty() && us >= fitting.front().us)
        continue;
      Point point{std::move(choice), us, 0};
      look(point, Learns::Never);
    }
  }

  /// From what does not fit to what does, and from the fastest that fits beyond the limit and back, further and further (F. Glover, Tabu search,
  /// part I, 1989: strategic oscillation).
  void oscillate() {
    if (!closesGap() || unrolledSize > mostClosed || closing.empty())
      return;
    const int64_t before = simulated, end = before + mostSimulatedBeyond;
    planned.plans += std::exchange(plansBeyond, 0);
    LocalMoves moves(problem, rounds, shape, inRounds, closing, most, limits.solve, [&](Point &point) {
      look(point, Learns::Never);
      return simulated < end && !isGood() && !solver.isSpent();
    });
    auto descend = [&](const Point &point, double usPerByte) { // plans are for where that leads
      const int64_t plans = std::exchange(planned.plans, 0);
      moves.descend(point, usPerByte);
      planned.plans = plans;
      checkFastest();
    };
    double usPerByte = fitting.empty() ? 0 : fitting.front().us / most;
    for (const Point &point : tooLarge)
      if (fitting.empty() || point.us < fitting.front().us) {
        usPerByte = fitting.empty() ? point.us / most : (fitting.front().us - point.us) / (point.arenaBytes - fitting.front().arenaBytes);
        descend(point, usPerByte);
      }
    for (double share = 8; share > 0.1 && !fitting.empty(); share /= 2) {
      const double us = fitting.front().us;
      descend({fitting.front().choice, us, fitting.front().arenaBytes}, share * usPerByte);
      if (!fitting.empty() && fitting.front().us < us * (1 - smallGap))
        share = 16;
    }
    mostSimulated += simulated - before;
  }

  /// One after the other where bytes cost what they did in the best bound: what comes later is no faster.
  void close() {
    if (unrolledSize > mostClosed)
      return;
    const search::RepeatedNetwork network = rounds.network();
    const search::Unrolled unrolled = search::unroll(network);
    const search::CostNetwork closed = priced(unrolled.network, closing);
    std::optional<search::Unrolled> exact; // since prices of `network` became exact
    double known = -search::infinity; // what costs less has been looked at
    double coveredBefore = 0;
    const size_t listed = fitting.empty() ? fewListed : std::clamp(listedVariables / unrolledSize, fewListed, mostListed);
    for (size_t count = 256; count <= listed && simulated < mostSimulated && !solver.isSpent(); count *= 4) {
      const std::vector<search::Solution> list = search::bestAssignments(closed, count, {.left = solver.operationsLeft()});
      if (list.size() <= 1) // of a network that is too large to list more
        return;
      for (const search::Solution &next : list) {
        if (simulated >= mostSimulated || isGood())
          return;
        if (next.cost < known)
          continue;
        Point point{search::rolled(network, unrolled, next.choice), 0, 0};
        if (rounds.makeExact(point.choice))
          exact = search::unroll(rounds.network());
        point.us = exact ? search::costOf(exact->network, next.choice) : next.cost - search::amountOf({closing, 0}, next.choice);
        if (fitting.empty() || point.us < fitting.front().us)
          look(point, Learns::Never);
        boundUs = std::max(boundUs, std::min(next.cost - closingUs, fitting.empty() ? search::infinity : fitting.front().us));
      }
      known = list.back().cost * (1 - 1e-12); // others that cost as much may not have been listed
      if (list.size() < count) { // all of them
        if (fitting.empty())
          leastBytes = smallest.arenaBytes;
        else
          boundUs = fitting.front().us;
        return;
      }
      const double covered = list.back().cost - list.front().cost, more = covered - coveredBefore;
      // Four times as many cover so much more: where the longest list would not even with four times that, it closes nothing.
      if (!fitting.empty() && count > 256 && covered + 2 * more * std::log2(double(listed) / double(count)) < fitting.front().us + closingUs - list.front().cost)
        return;
      coveredBefore = covered;
    }
  }
};

} // namespace

std::vector<SearchResult> searchWithin(const Problem &problem, StepModel &model, double bytes, dist::ReshardPlanner &planner,
                                       const search::BudgetLimits &limits, const SearchWatch &watch, const PlannedBytes &planned) {
  constexpr double nearby = 1.01;
  LimitedSearch search(problem, model, bytes, planner, limits, watch, planned);
  std::vector<SearchResult> found = search.run();
  if (SearchResult &first = found.front(); first.arenaBytes > bytes && first.leastBytes <= bytes && first.boundUs > 0 && search.isWorthAnother()) {
    // Prices that lead to a limit a little above lead to other assignments, of which one may fit.
    LimitedSearch above(problem, model, nearby * bytes, planner, limits, watch, planned);
    above.run();
    if (SearchResult least = above.leastFound(); least.arenaBytes <= bytes) {
      least.boundUs = std::min(first.boundUs, least.us);
      least.leastBytes = first.leastBytes;
      least.isOptimal = least.us <= first.boundUs * (1 + 1e-12);
      return {least};
    }
  }
  return found;
}

} // namespace msc::passes
