#include "passes/sharding/Alternatives.h"

#include "dialects/net/FixedPieces.h"
#include "dialects/net/Repeat.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/Propagations.h"
#include "passes/sharding/Search.h"
#include "passes/sharding/cost/Prediction.h"
#include "passes/sharding/search/TermsMap.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

using namespace mlir;

namespace msc::passes {

Alternatives::Alternatives(net::NetworkOp network, const TrainingFacts &training, Freedom freedom, StringRef asked, Others others)
    : hasBounds(freedom == Freedom::Open || freedom == Freedom::All), others(others) {
  int64_t devices = getDevices(network);
  facts = problemOf(network, devices, /*joinAlike=*/true, operations, training);
  for (auto [tensor, sharding] : llvm::zip(facts.tensors, getInputShardings(network)))
    tensor.dataset = sharding;
  for (auto [i, ops] : llvm::enumerate(operations)) {
    const ProblemOperator &entry = facts.operators[i];
    Operation *op = ops.front();
    named.try_emplace(entry.name, i); // for all rounds
    std::vector<std::string> all;
    bool isAlike = llvm::all_of(ops, [&](Operation *member) { return net::getInStrategy(member) == net::getInStrategy(op); });
    for (Operation *member : ops)
      llvm::append_range(all, net::namesInRounds(member, net::getInstanceName(member)));
    for (auto [round, name] : llvm::enumerate(all)) {
      named.try_emplace(name, i);
      if (all.size() > 1 && isAlike)
        inRounds[name] = {all.front(), static_cast<int64_t>(round), static_cast<int64_t>(all.size())};
    }
    auto inFirst = [&](StringRef text) {
      std::vector<std::string> rounds = net::namesInRounds(op, text);
      return rounds.empty() ? text.str() : rounds.front();
    };
    names.push_back(inFirst(entry.name));
    origins.push_back(passes::isByUser(op) ? "user" : inFirst(net::getStrategyOrigin(op)));
    taken.push_back(std::get<Pieces>(piecesOfStrategy(entry.facts, *net::getInStrategy(op), devices, /*mayBeEmpty=*/true)));
  }
  keepPinned(network, training);
  followBy();
  std::optional<size_t> free = find(asked);
  for (size_t op = 0; op < operations.size(); ++op)
    giveChoice(op, freedom, free == op);
  planner = std::make_unique<dist::ReshardPlanner>(facts.machine);
  priced = std::make_unique<StepModel>(modelOf(facts, operations, *planner));
  apart = std::make_unique<RoundsModel>(facts, *priced);
  for (size_t op = 0; op < operations.size(); ++op)
    if (const std::vector<int64_t> fixed = net::getFixedPieces(operations[op].front()); !fixed.empty()) {
      const std::vector<Pieces> may = candidatesWith(facts.operators[op].facts, facts.devices, fixed, facts.meshes);
      auto &list = allowed.emplace_back(op, std::vector<bool>()).second;
      for (const Pieces &pieces : priced->options(op).pieces)
        list.push_back(pieces == taken[op] || llvm::is_contained(may, pieces));
    }
  known.resize(operations.size());
  roundsOf.resize(operations.size());
}

void Alternatives::keepPinned(net::NetworkOp network, const TrainingFacts &training) {
  copy = network->getParentOfType<ModuleOp>().clone();
  auto same = llvm::find_if(copy->getOps<net::NetworkOp>(), [&](net::NetworkOp other) { return other.getSymName() == network.getSymName(); });
  pinned = problemOf(*same, getDevices(network), /*joinAlike=*/true, copied, training);
  for (auto [tensor, sharding] : llvm::zip(pinned.tensors, getInputShardings(network)))
    tensor.dataset = sharding;
  for (auto [op, entry] : llvm::enumerate(pinned.operators)) {
    Operation *first = copied[op].front();
    if (passes::isByUser(first)) {
      entry.configured = taken[op];
      if (auto out = net::getOutStrategy(first))
        takeOutStrategy(entry, *out, pinned.devices);
    } else if (const std::vector<int64_t> fixed = net::getFixedPieces(first); !fixed.empty()) {
      entry.among = candidatesWith(entry.facts, pinned.devices, fixed, pinned.meshes);
    }
  }
  builder = std::make_unique<StepBuilder>(copy->getContext(), pinned.machine);
  steps = stepsOf(pinned, copied, *builder);
}

void Alternatives::followBy() {
  if (others == Others::Propagate) {
    following = [propagations = std::make_shared<Propagations>(pinned)](size_t op, const Pieces &pieces) {
      return propagations->with(op, pieces);
    };
    facts.meshes.clear(); // propagation does not look at them
  } else if (others == Others::Divide) {
    following = [this, open = pinned](size_t op, const Pieces &pieces) {
      Problem problem = open;
      problem.operators[op].configured = pieces;
      problem.operators[op].among.clear();
      return searchRecursively(problem, [&](const Problem &part) { return StepModel(part, steps, *planner); }).choices;
    };
  }
}

/// One assignment alone.
StepModel Alternatives::decidedModel(const Choices &choices) {
  for (auto [entry, choice] : llvm::zip(pinned.operators, choices))
    entry.among = {choice.pieces};
  return {pinned, steps, *planner};
}

double Alternatives::usOf(const Choices &choices) {
  StepModel model = decidedModel(choices);
  while (true) {
    const search::Solution found = search::solveExactly(model.network()); // how parameters are stored follows
    if (!model.makeExact(found.choice))
      return found.cost;
  }
}

std::vector<PredictedCollective> Alternatives::collectives() {
  Choices choices;
  for (const Pieces &pieces : taken)
    choices.push_back({pieces, ""});
  const StepModel model = decidedModel(choices);
  return predictionOf(pinned, model, choices, *planner).collectives;
}

void Alternatives::giveChoice(size_t op, Freedom freedom, bool isAsked) {
  ProblemOperator &entry = facts.operators[op];
  if (passes::isByUser(operations[op].front())) {
    entry.configured = taken[op];
    if (auto out = net::getOutStrategy(operations[op].front()))
      takeOutStrategy(entry, *out, facts.devices);
    if (freedom != Freedom::All && !isAsked)
      return;
  }
  const std::vector<int64_t> fixed = net::getFixedPieces(operations[op].front());
  if (freedom == Freedom::Few || freedom == Freedom::None)
    entry.among = {taken[op]};
  else if (!fixed.empty() && !isAsked && freedom != Freedom::All)
    entry.among = candidatesWith(entry.facts, facts.devices, fixed, facts.meshes);
  else if (!fixed.empty())
    entry.among = candidates(entry.facts, facts.devices);
  else if (entry.configured)
    entry.among = candidates(entry.facts, facts.devices);
  if (freedom == Freedom::Few)
    entry.among.push_back(cheapestOfMost(op));
  if (!entry.among.empty() && !llvm::is_contained(entry.among, taken[op]))
    entry.among.push_back(taken[op]);
  if (entry.among.size() == 2 && entry.among[0] == entry.among[1])
    entry.among.pop_back();
}

/// Of the strategies that use most devices the one under which the operator itself takes least.
Pieces Alternatives::cheapestOfMost(size_t op) const {
  const ProblemOperator &entry = facts.operators[op];
  std::tuple<int64_t, double, Pieces> best{0, 0, taken[op]};
  for (const Pieces &pieces : candidates(entry.facts, facts.devices)) {
    Placement at = placementOf(entry.facts, pieces, facts.devices);
    std::vector<Shape> operands, results;
    for (auto [shape, sharding] : llvm::zip(entry.facts.operandShapes, at.operands))
      operands.push_back(sharding.capacity(shape));
    for (auto [shape, sharding] : llvm::zip(entry.facts.resultShapes, at.results))
      results.push_back(sharding.capacity(shape));
    best = std::min(best, {-devicesUsed(pieces), entry.localUs ? entry.localUs(operands, results) : 0, pieces});
  }
  return std::get<Pieces>(best);
}

std::optional<size_t> Alternatives::find(StringRef name) const {
  auto found = named.find(name);
  return found == named.end() ? std::nullopt : std::optional(found->second);
}

std::optional<size_t> Alternatives::chosenOption(size_t op) const {
  const std::vector<Pieces> &pieces = priced->options(op).pieces;
  auto found = llvm::find(pieces, taken[op]);
  return found == pieces.end() ? std::nullopt : std::optional<size_t>(found - pieces.begin());
}

std::string Alternatives::strategyText(size_t op, const Pieces &pieces) const {
  return net::strategyText(inStrategy(facts.operators[op].facts.rule, pieces));
}

/// Terms with one option of a variable left, in whatever round they mean it.
static void tie(std::vector<search::Table> &tables, std::vector<search::SharedCost> &shared, const std::vector<int32_t> &options,
                int32_t variable, int32_t option) {
  auto isMeant = [&](int32_t reference) { return search::variableOf(reference) == variable; };
  for (search::Table &table : tables) {
    std::vector<size_t> sizes;
    for (int32_t reference : table.scope)
      sizes.push_back(options[search::variableOf(reference)]);
    for (size_t at = 0; at < sizes.size(); ++at) {
      if (!isMeant(table.scope[at]))
        continue;
      const size_t inner = std::accumulate(sizes.begin() + at + 1, sizes.end(), size_t(1), std::multiplies<>());
      const size_t block = inner * sizes[at], outer = table.costs.size() / block;
      for (size_t i = 0; i < outer; ++i)
        std::copy_n(table.costs.begin() + i * block + option * inner, inner, table.costs.begin() + i * inner);
      table.costs.resize(outer * inner);
      sizes[at] = 1;
    }
  }
  for (search::SharedCost &cost : shared) {
    if (isMeant(cost.producer))
      cost.producerClass = {cost.producerClass[option]};
    for (search::SharedCost::Reader &reader : cost.readers)
      if (isMeant(reader.variable))
        reader.items = {std::vector<int32_t>(reader.items[option])};
  }
}

static void tie(search::CostNetwork &network, size_t op, size_t option) {
  tie(network.tables, network.shared, network.options, static_cast<int32_t>(op), static_cast<int32_t>(option));
  network.options[op] = 1;
}

static void tie(search::RepeatedNetwork &network, size_t op, size_t option) {
  for (search::Section &section : network.sections)
    for (search::Terms *terms : {&section.within, &section.carried, &section.entry, &section.exit})
      tie(terms->tables, terms->shared, network.network.options, static_cast<int32_t>(op), static_cast<int32_t>(option));
  tie(network.network, op, option);
}

/// Terms without the options that are not allowed.
static void forbid(std::vector<search::Table> &tables, int32_t variable, const std::vector<bool> &allowed) {
  for (search::Table &table : tables)
    if (table.scope.size() == 1 && search::variableOf(table.scope.front()) == variable)
      for (size_t option = 0; option < allowed.size(); ++option)
        if (!allowed[option])
          table.costs[option] = search::infinity;
}

/// Those that the user left open in part have what is allowed, but for `op`.
void Alternatives::keepAllowed(search::CostNetwork &network, std::optional<size_t> op) const {
  for (const auto &[other, list] : allowed)
    if (other != op)
      forbid(network.tables, static_cast<int32_t>(other), list);
}

void Alternatives::keepAllowed(search::RepeatedNetwork &network, std::optional<size_t> op) const {
  keepAllowed(network.network, op);
  for (const auto &[other, list] : allowed)
    for (search::Section &section : network.sections)
      if (other != op)
        forbid(section.within.tables, static_cast<int32_t>(other), list);
}

/// Operators of the user have what the user gave, but for `op`.
std::vector<std::pair<size_t, size_t>> Alternatives::tiesFor(std::optional<size_t> op) const {
  std::vector<std::pair<size_t, size_t>> ties;
  for (size_t other = 0; other < operations.size(); ++other)
    if (other != op && facts.operators[other].configured)
      ties.emplace_back(other, *chosenOption(other));
  return ties;
}

/// With the option that is given.
std::vector<std::pair<size_t, size_t>> Alternatives::tiesWith(Given given) const {
  std::vector<std::pair<size_t, size_t>> ties = tiesFor(given ? std::optional(given->first) : std::nullopt);
  if (given)
    ties.push_back(*given);
  return ties;
}

double Alternatives::us() {
  if (!stepUs) {
    Choices choices;
    for (const Pieces &pieces : taken)
      choices.push_back({pieces, ""});
    stepUs = usOf(choices);
  }
  return *stepUs;
}

constexpr size_t pricedAtOnce = 64;

/// Prices the cheapest assignment of rounds that are alike and, with it, so many that are nearly as good. False: it was priced.
bool Alternatives::priceAlike(Given given) {
  const std::vector<std::pair<size_t, size_t>> ties = tiesWith(given);
  search::CostNetwork network = priced->network();
  keepAllowed(network, given ? std::optional(given->first) : std::nullopt);
  for (auto [op, option] : ties)
    tie(network, op, option);
  std::vector<search::Choice> choices;
  for (search::Solution &solution : search::nearestAssignments(network, pricedAtOnce)) {
    if (solution.cost == search::infinity)
      break;
    for (auto [op, option] : ties)
      solution.choice[op] = static_cast<int32_t>(option);
    choices.push_back(std::move(solution.choice));
  }
  return !choices.empty() && priced->makeExact(choices.front()) && (priced->makeExact(choices), true);
}

/// Options that were tied get their numbers back.
void Alternatives::untie(search::RepeatedChoice &choice, const std::vector<std::pair<size_t, size_t>> &ties) const {
  for (auto [op, option] : ties) {
    choice.choice[op] = static_cast<int32_t>(option);
    for (size_t section = 0; section < choice.runs.size(); ++section) {
      const std::vector<int32_t> &own = apart->variablesOf(section);
      if (auto at = llvm::find(own, static_cast<int32_t>(op)); at != own.end())
        for (search::Run &run : choice.runs[section])
          run.options[at - own.begin()] = static_cast<int32_t>(option);
    }
  }
}

/// One round of a search in which operators of the user have what the user gave, but for the one that is given an option.
Alternatives::OptionPrice Alternatives::searchOnce(Given given) {
  if (priceAlike(given))
    return {0, false};
  const std::vector<std::pair<size_t, size_t>> ties = tiesWith(given);
  search::RepeatedNetwork network = apart->network();
  keepAllowed(network, given ? std::optional(given->first) : std::nullopt);
  for (auto [op, option] : ties)
    tie(network, op, option);
  auto exact = [&](search::RepeatedChoice choice) {
    untie(choice, ties);
    return !apart->makeExact(choice);
  };
  const search::RepeatedSolution found = search::solveExactly(network);
  const double us = found.summary.cost;
  if (us == search::infinity || exact(found.choice))
    return {us, true};
  const search::EndsApart ends(network);
  for (const search::Solution &solution : search::nearestAssignments(ends.network(), pricedAtOnce))
    exact(ends.rolled(solution.choice));
  return {us, false};
}

/// Bounds at first. They are far off until something like the optimum is exact.
std::vector<Alternatives::OptionPrice> &Alternatives::pricesOf(size_t op, llvm::function_ref<bool(size_t)> passes) {
  if (known[op].empty() && following && !hasBounds)
    known[op].resize(priced->options(op).pieces.size());
  if (known[op].empty()) {
    while (!isSearched)
      isSearched = searchOnce(std::nullopt).isExact;
    known[op].resize(priced->options(op).pieces.size());
    if (following)
      updateBounds(op);
    else
      raiseTogether(op, passes);
  }
  return known[op];
}

/// What was priced since then makes bounds better.
void Alternatives::updateBounds(size_t op) {
  search::RepeatedNetwork network = apart->network();
  keepAllowed(network, op);
  for (auto [other, option] : tiesFor(op))
    tie(network, other, option);
  for (auto [price, us] : llvm::zip(known[op], search::costsOfOptions(network, static_cast<int32_t>(op))))
    if (!price.isExact)
      price = {us, us == search::infinity};
}

/// The option that looks cheapest.
std::optional<size_t> Alternatives::front(size_t op, llvm::function_ref<bool(size_t)> passes) {
  std::optional<size_t> best;
  std::vector<OptionPrice> &prices = pricesOf(op, passes);
  for (size_t option = 0; option < prices.size(); ++option)
    if (std::isfinite(prices[option].us) && passes(option) && (!best || prices[option].us < prices[*best].us))
      best = option;
  return best;
}

/// One round for an option that is not exact yet.
void Alternatives::raise(size_t op, size_t option) {
  constexpr size_t perBounds = 8;
  OptionPrice &price = known[op][option];
  if (following) {
    price = {option == chosenOption(op) ? us() : usOf(following(op, priced->options(op).pieces[option])), true};
    return;
  }
  const OptionPrice found = searchOnce(std::pair(op, option));
  price = {std::max(price.us, found.us), found.isExact};
  if (++roundsOf[op] % perBounds == 0)
    updateBounds(op);
}

/// One round for the options that look cheapest, at most some of them, and for the chosen one, with which they are compared: one
/// elimination answers for all.
void Alternatives::raiseTogether(size_t op, llvm::function_ref<bool(size_t)> passes) {
  constexpr size_t together = 16;
  std::vector<OptionPrice> &prices = known[op];
  std::vector<size_t> asked;
  auto ask = [&](const std::vector<double> &costs) {
    for (auto [price, us] : llvm::zip(prices, costs))
      if (!price.isExact)
        price = {std::max(price.us, us), us == search::infinity};
    for (size_t option = 0; option < prices.size(); ++option)
      if (!prices[option].isExact && passes(option))
        asked.push_back(option);
    llvm::sort(asked, [&](size_t a, size_t b) { return std::tie(prices[a].us, a) < std::tie(prices[b].us, b); });
    asked.resize(std::min(asked.size(), together));
    if (std::optional<size_t> chosen = chosenOption(op); chosen && !prices[*chosen].isExact && !llvm::is_contained(asked, *chosen))
      asked.push_back(*chosen);
    std::vector<bool> wanted(prices.size());
    for (size_t option : asked)
      wanted[option] = true;
    return wanted;
  };
  search::RepeatedNetwork network = apart->network();
  keepAllowed(network, op);
  const std::vector<std::pair<size_t, size_t>> ties = tiesFor(op);
  for (auto [other, option] : ties)
    tie(network, other, option);
  std::vector<search::RepeatedSolution> found = search::assignmentsOfOptions(network, static_cast<int32_t>(op), ask);
  bool changes = false;
  for (size_t option : asked)
    if (!prices[option].isExact) {
      untie(found[option].choice, ties);
      changes |= apart->makeExact(found[option].choice);
    }
  // What costs exactly as much as nothing is less than is the least.
  network = apart->network();
  for (size_t option : asked) {
    OptionPrice &price = prices[option];
    if (price.isExact)
      continue;
    const double us = search::costOf(network, found[option].choice);
    if (!changes || us <= found[option].summary.cost * (1 + 1e-12))
      price = {us, true};
  }
}

/// Bounds that look cheapest rise until an exact one stays in front: most of the others are never searched to the end.
std::optional<size_t> Alternatives::cheapestOption(size_t op, llvm::function_ref<bool(size_t)> passes) {
  std::optional<size_t> best = front(op, passes);
  for (size_t rounds = 0; best && !known[op][*best].isExact && (!following || rounds < mostFollowed()); ++rounds) {
    if (following)
      raise(op, *best);
    else
      raiseTogether(op, passes);
    best = front(op, passes);
  }
  if (best && !known[op][*best].isExact) // of those with which others were decided
    best = front(op, [&](size_t option) { return known[op][option].isExact && passes(option); });
  return best;
}

size_t Alternatives::mostFollowed() const {
  const size_t operatorsInAll = others == Others::Divide ? 200 : 1000; // to propagate takes some milliseconds for a hundred of them
  return std::max<size_t>(1, operatorsInAll / std::max<size_t>(1, operations.size()));
}

bool Alternatives::keepsFixed(size_t op, size_t option) const {
  auto found = llvm::find_if(allowed, [&](const auto &entry) { return entry.first == op; });
  return found == allowed.end() || found->second[option];
}

Alternative Alternatives::alternative(size_t op, size_t option) {
  const Pieces &pieces = priced->options(op).pieces[option];
  const OptionPrice &price = known[op][option];
  const bool isChosen = pieces == taken[op];
  return {strategyText(op, pieces), price.us, price.isExact, isChosen, !isChosen && (isByUser(op) || !keepsFixed(op, option))};
}

std::optional<Alternative> Alternatives::cheapest(size_t op, llvm::function_ref<bool(const OperatorOptions &, size_t)> passes) {
  std::optional<size_t> option = cheapestOption(op, [&](size_t option) { return passes(priced->options(op), option); });
  return option ? std::optional(alternative(op, *option)) : std::nullopt;
}

std::optional<Alternative> Alternatives::now(size_t op) {
  std::optional<size_t> option = chosenOption(op);
  if (!option || !cheapestOption(op, [&](size_t other) { return other == option; }))
    return std::nullopt;
  return alternative(op, *option);
}

std::vector<Alternative> Alternatives::of(size_t op, size_t exact, size_t rounds) {
  now(op);
  if (following)
    rounds = mostFollowed();
  std::set<size_t> cheapest;
  while (cheapest.size() < exact) {
    std::optional<size_t> next = front(op, [&](size_t option) { return !cheapest.contains(option); });
    if (!next)
      break;
    if (known[op][*next].isExact)
      cheapest.insert(*next);
    else if (rounds-- > 0)
      raise(op, *next);
    else
      break;
  }
  std::vector<Alternative> list;
  for (size_t option = 0; option < known[op].size(); ++option)
    if (std::isfinite(known[op][option].us))
      list.push_back(alternative(op, option));
  llvm::sort(list, [](const Alternative &a, const Alternative &b) { return std::tie(a.us, a.inStrategy) < std::tie(b.us, b.inStrategy); });
  return list;
}

} // namespace msc::passes
