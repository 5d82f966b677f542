#include "passes/sharding/Alternatives.h"

#include "dialects/net/FixedPieces.h"
#include "dialects/net/Repeat.h"
#include "passes/sharding/CoarseMesh.h"
#include "passes/sharding/Propagations.h"
#include "passes/sharding/SearchParts.h"
#include "passes/sharding/cost/Prediction.h"
#include "passes/sharding/cost/StepMemory.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

using namespace mlir;

namespace msc::passes {

Alternatives::Alternatives(net::NetworkOp network, const TrainingFacts &training, Freedom freedom, StringRef asked, Others others,
                           std::optional<ModelChoice> slower)
    : hasBounds(freedom == Freedom::Open || freedom == Freedom::All), others(others) {
  int64_t devices = getDevices(network);
  std::vector<Members> operations;
  facts = problemOf(network, devices, /*joinAlike=*/true, operations, training);
  for (auto [tensor, sharding] : llvm::zip(facts.tensors, getInputShardings(network)))
    tensor.dataset = sharding;
  for (auto [i, ops] : llvm::enumerate(operations)) {
    const ProblemOperator &entry = facts.operators[i];
    Operation *op = ops.front();
    named.try_emplace(entry.name, i); // for all rounds
    std::vector<std::string> all;
    bool isAlike = llvm::all_of(ops, [&](Operation *member) { return net::getInStrategy(member) == net::getInStrategy(op); });
    std::vector<Written> &members = written.emplace_back();
    for (Operation *member : ops) {
      members.push_back({net::getInstanceName(member).str(), net::namesInRounds(member, net::getInstanceName(member))});
      llvm::append_range(all, members.back().rounds);
    }
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
    places.push_back(op->getLoc());
    origins.push_back(passes::isByUser(op) ? "user" : inFirst(net::getStrategyOrigin(op)));
    taken.push_back(std::get<Pieces>(piecesOfStrategy(entry.facts, *net::getInStrategy(op), devices, /*mayBeEmpty=*/true)));
  }
  keepPinned(network, training);
  followBy();
  if (std::vector<int64_t> mesh = coarseMesh(facts); !mesh.empty()) {
    facts.meshes = {std::move(mesh)};
    onCoarseMesh = true;
    hasBounds &= !following; // what follows may lie on no mesh
  }
  std::optional<size_t> free = find(asked);
  for (size_t op = 0; op < operations.size(); ++op)
    giveChoice(op, operations[op].front(), freedom, /*asksForOne=*/free.has_value(), free == op);
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
  if (slower) {
    slowerUs = slower->us;
    for (const Members &ops : operations)
      slowerPieces.push_back(slower->pieces.lookup(ops.front()));
  }
  known.resize(size());
  likely.resize(size());
  roundsOf.resize(size());
}

void Alternatives::keepPinned(net::NetworkOp network, const TrainingFacts &training) {
  copy = network->getParentOfType<ModuleOp>().clone();
  this->training = training;
  undecided = *llvm::find_if(copy->getOps<net::NetworkOp>(), [&](net::NetworkOp other) { return other.getSymName() == network.getSymName(); });
  pinned = pinnedProblem(copied);
  builder = std::make_unique<StepBuilder>(copy->getContext(), pinned.machine);
  steps = stepsOf(pinned, copied, *builder);
}

Problem Alternatives::pinnedProblem(std::vector<Members> &members) {
  Problem problem = problemOf(undecided, getDevices(undecided), /*joinAlike=*/true, members, training);
  problem.meshes = facts.meshes;
  for (auto [tensor, sharding] : llvm::zip(problem.tensors, getInputShardings(undecided)))
    tensor.dataset = sharding;
  for (auto [ops, entry] : llvm::zip(members, problem.operators)) {
    Operation *first = ops.front();
    if (passes::isByUser(first)) {
      entry.configured = std::get<Pieces>(piecesOfStrategy(entry.facts, *net::getInStrategy(first), problem.devices, /*mayBeEmpty=*/true));
      if (auto out = net::getOutStrategy(first))
        entry.wantedOut = *out;
    } else if (const std::vector<int64_t> fixed = net::getFixedPieces(first); !fixed.empty()) {
      entry.among = candidatesWith(entry.facts, problem.devices, fixed, problem.meshes);
    }
  }
  return problem;
}

void Alternatives::followBy() {
  if (others == Others::Propagate) {
    following = [propagations = std::make_shared<Propagations>(pinned)](size_t op, const Pieces &pieces) {
      return propagations->with(op, pieces);
    };
    facts.meshes.clear(); // propagation does not look at them
  } else if (others == Others::Divide) {
    following = [this](size_t op, const Pieces &pieces) { return divided(op, pieces); };
  } else if (others == Others::Stay) {
    following = [this](size_t op, const Pieces &pieces) {
      Choices choices = chosenOfAll();
      choices[op].pieces = pieces;
      return choices;
    };
    facts.meshes.clear(); // nor do modes that search nothing
  }
}

Choices Alternatives::divided(size_t op, const Pieces &pieces) {
  std::vector<std::pair<Operation *, DictionaryAttr>> before;
  for (Operation *member : copied[op]) {
    before.emplace_back(member, member->getAttrDictionary());
    net::setInStrategy(member, inStrategy(pinned.operators[op].facts.rule, pieces));
    net::setStrategyOrigin(member, "user");
  }
  std::vector<Members> members;
  const Problem problem = pinnedProblem(members);
  const ProblemSteps own = stepsOf(problem, members, *builder);
  const SearchResult found = searchRecursively(problem, [&](const Problem &part) { return StepModel(part, own, *planner); });
  for (auto [member, attributes] : before)
    member->setAttrs(attributes);
  llvm::DenseMap<Operation *, Choice> choiceOf;
  for (auto [ops, choice] : llvm::zip(members, found.choices))
    choiceOf[ops.front()] = choice;
  Choices choices;
  for (const Members &ops : copied)
    choices.push_back(choiceOf.at(ops.front()));
  return choices;
}

/// One assignment alone.
StepModel Alternatives::decidedModel(const Choices &choices) {
  for (auto [entry, choice] : llvm::zip(pinned.operators, choices))
    entry.among = {choice.pieces};
  return {pinned, steps, *planner};
}

double Alternatives::usOf(const Choices &choices) {
  constexpr int64_t ofDecided = int64_t(1) << 30;
  StepModel model = decidedModel(choices);
  while (true) {
    search::SolveLimits own = limits();
    own.operations = std::max(own.operations, ofDecided); // how parameters are stored is left, which is soon solved
    const search::Solution found = search::solveExactly(model.network(), own);
    spend(found);
    if (!model.makeExact(found.choice))
      return found.cost;
  }
}

Choices Alternatives::chosenOfAll() const {
  Choices choices;
  for (const Pieces &pieces : taken)
    choices.push_back({pieces, ""});
  return choices;
}

std::vector<PredictedCollective> Alternatives::collectives() {
  const Choices choices = chosenOfAll();
  const StepModel model = decidedModel(choices);
  return predictionOf(pinned, model, choices, *planner).collectives;
}

void Alternatives::giveChoice(size_t op, Operation *first, Freedom freedom, bool asksForOne, bool isAsked) {
  ProblemOperator &entry = facts.operators[op];
  if (passes::isByUser(first)) {
    entry.configured = taken[op];
    if (auto out = net::getOutStrategy(first))
      entry.wantedOut = *out;
    if (freedom != Freedom::All && others != Others::Stay && !isAsked)
      return;
  }
  const std::vector<int64_t> fixed = net::getFixedPieces(first);
  const bool keepsOwn = others == Others::Stay && asksForOne && !isAsked;
  if (freedom == Freedom::Few || freedom == Freedom::None || keepsOwn)
    entry.among = {taken[op]};
  else if (!fixed.empty() && !isAsked && freedom != Freedom::All)
    entry.among = candidatesWith(entry.facts, facts.devices, fixed, facts.meshes);
  else if (!fixed.empty())
    entry.among = candidates(entry.facts, facts.devices);
  else if (entry.configured || others == Others::Stay) // what it has need be none of those that a search would look at
    entry.among = onCoarseMesh ? candidatesWith(entry.facts, facts.devices, std::vector<int64_t>(taken[op].size(), 0), facts.meshes)
                               : candidates(entry.facts, facts.devices);
  if (freedom == Freedom::Few && !keepsOwn)
    entry.among.push_back(cheapestOfMost(op));
  auto holdsOwn = [&](const std::vector<int64_t> &mesh) { return isOnMesh(taken[op], mesh); };
  if (entry.among.empty() && !facts.meshes.empty() && llvm::none_of(facts.meshes, holdsOwn)) // recursion found it, beside a coarse mesh
    entry.among = candidatesWith(entry.facts, facts.devices, std::vector<int64_t>(taken[op].size(), 0), facts.meshes);
  if (!entry.among.empty() && !llvm::is_contained(entry.among, taken[op]))
    entry.among.push_back(taken[op]);
  if (entry.among.size() == 2 && entry.among[0] == entry.among[1])
    entry.among.pop_back();
}

/// Of the strategies that it does not have and that use most devices, the one under which the operator itself takes least.
Pieces Alternatives::cheapestOfMost(size_t op) const {
  const ProblemOperator &entry = facts.operators[op];
  std::tuple<int64_t, double, Pieces> best{0, 0, taken[op]};
  for (const Pieces &pieces : candidates(entry.facts, facts.devices)) {
    if (pieces == taken[op])
      continue;
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

std::optional<size_t> Alternatives::optionOf(size_t op, const Pieces &pieces) const {
  const std::vector<Pieces> &all = priced->options(op).pieces;
  auto found = llvm::find(all, pieces);
  return found == all.end() ? std::nullopt : std::optional<size_t>(found - all.begin());
}

bool Alternatives::isBetter(size_t op, const Alternative &other) {
  return other.us <= us() && other.us < slowerUs && (mostBytes == 0 || bytes(op, other) <= mostBytes);
}

bool Alternatives::wasWeighed(size_t op, llvm::function_ref<bool(const Pieces &)> passes) const {
  return op < slowerPieces.size() && !slowerPieces[op].empty() && llvm::all_of(slowerPieces[op], passes);
}

std::vector<std::string> Alternatives::namesInFile(size_t op) const {
  std::vector<std::string> all;
  for (const Written &member : written[op]) {
    auto isOfOther = [&](size_t other) {
      return other != op && llvm::any_of(written[other], [&](const Written &known) { return known.name == member.name; });
    };
    if (member.rounds.size() > 1 && llvm::none_of(llvm::seq(size()), isOfOther))
      all.push_back(member.name);
    else
      llvm::append_range(all, member.rounds);
  }
  return all;
}

std::string Alternatives::strategyText(size_t op, const Pieces &pieces) const {
  return net::strategyText(inStrategy(facts.operators[op].facts.rule, pieces));
}

/// Operators of the user have what the user gave, and those that the user left open in part what is allowed, but for `op`.
Alternatives::AllLeft Alternatives::leftBut(std::optional<size_t> op) const {
  AllLeft left;
  for (size_t other = 0; other < size(); ++other)
    if (other != op && facts.operators[other].configured)
      left.push_back({other, {static_cast<int32_t>(*chosenOption(other))}});
  for (const auto &[other, list] : allowed) {
    if (other == op || facts.operators[other].configured)
      continue;
    std::vector<int32_t> &options = left.emplace_back(Left{other, {}}).options;
    for (size_t option = 0; option < list.size(); ++option)
      if (list[option])
        options.push_back(static_cast<int32_t>(option));
  }
  return left;
}

search::RepeatedNetwork Alternatives::networkOf(const AllLeft &left) const {
  search::RepeatedNetwork network = apart->network();
  for (const auto &[op, options] : left)
    search::keepOptions(network, static_cast<int32_t>(op), options);
  return network;
}

double Alternatives::us() {
  if (!stepUs)
    stepUs = usOf(chosenOfAll());
  return *stepUs;
}

constexpr size_t pricedAtOnce = 64;

/// Solving takes so many operations in all, a part of them for one network.
search::SolveLimits Alternatives::limits() const {
  constexpr int64_t most = int64_t(1) << 35, mostAtOnce = int64_t(1) << 32;
  search::SolveLimits limits;
  limits.operations = std::min(mostAtOnce, most - spent);
  limits.branching = mostAtOnce / 16;
  limits.allEntries = int64_t(1) << 26; // half a gigabyte: an explanation takes no more memory than what it explains
  return limits;
}

void Alternatives::spend(const search::Solution &found) {
  spent += found.operations;
  tooLarge |= !found.optimal;
}

/// The cheapest assignment of rounds that are alike; nothing where it was priced, and with it so many that are nearly as good.
std::optional<search::Solution> Alternatives::cheapestAlike(const AllLeft &left) {
  search::CostNetwork network = priced->network();
  for (const auto &[op, options] : left)
    search::keepOptions(network, static_cast<int32_t>(op), options);
  search::Nearest found = search::nearestChanges(workspace, network, pricedAtOnce, limits(), search::infinity);
  spend(found.best);
  if (found.best.cost == search::infinity)
    return std::move(found.best);
  std::vector<const std::vector<int32_t> *> leftTo(network.options.size()); // options get their numbers back
  for (const auto &[op, options] : left) {
    leftTo[op] = &options;
    found.best.choice[op] = options[found.best.choice[op]];
  }
  for (search::NearAssignment &other : found.others)
    for (auto &[variable, option] : other.changes)
      option = leftTo[variable] ? (*leftTo[variable])[option] : option;
  if (!priced->makeExact(found.best.choice))
    return std::move(found.best);
  priced->priceAll(found);
  return std::nullopt;
}

/// Calls `take` with what an operator has: in every run of its rounds.
template <typename Choice, typename Take> void Alternatives::forOptionsOf(size_t op, Choice &choice, Take take) const {
  take(choice.choice[op]);
  for (size_t section = 0; section < choice.runs.size(); ++section) {
    const std::vector<int32_t> &own = apart->variablesOf(section);
    if (auto at = llvm::find(own, static_cast<int32_t>(op)); at != own.end())
      for (auto &run : choice.runs[section])
        take(run.options[at - own.begin()]);
  }
}

std::set<size_t> Alternatives::optionsIn(const search::RepeatedChoice &choice, size_t op) const {
  std::set<size_t> options;
  forOptionsOf(op, choice, [&](int32_t option) { options.insert(static_cast<size_t>(option)); });
  return options;
}

/// One round of a search in which operators have what is left to them.
Alternatives::Searched Alternatives::searchOnce(const AllLeft &left) {
  std::optional<search::Solution> alike = cheapestAlike(left);
  if (!alike || tooLarge)
    return {};
  if (!apart->hasSections())
    return {alike->cost, true, {std::move(alike->choice), {}}};
  const search::RepeatedNetwork network = networkOf(left);
  auto inAll = [&](search::RepeatedChoice choice) { // options get their numbers back
    for (const auto &[op, options] : left)
      forOptionsOf(op, choice, [&options = options](int32_t &option) { option = options[option]; });
    return choice;
  };
  const search::RepeatedSolution found = search::solveExactly(network, limits());
  spend(found.summary);
  if (tooLarge)
    return {found.summary.bound, false, {}};
  Searched result{found.summary.cost, true, {}};
  if (result.us == search::infinity)
    return result;
  result.choice = inAll(found.choice);
  result.isExact = !apart->makeExact(result.choice);
  if (!result.isExact) {
    const search::EndsApart ends(network);
    std::vector<search::RepeatedChoice> choices;
    const std::vector<search::Solution> nearest = search::nearestAssignments(ends.network(), pricedAtOnce, limits());
    spent += nearest.front().operations;
    for (const search::Solution &solution : nearest)
      choices.push_back(inAll(ends.rolled(solution.choice)));
    apart->makeExact(choices);
  }
  return result;
}

/// The cheapest assignment in which an operator has one of these options (ascending), in different rounds maybe different ones. Not exact
/// where that is too large.
Alternatives::Searched Alternatives::searchAmong(size_t op, std::vector<int32_t> options) {
  AllLeft left = leftBut(op);
  left.push_back({op, std::move(options)});
  while (true)
    if (Searched found = searchOnce(left); found.isExact || tooLarge)
      return found;
}

/// What is known without asking for the operator: what it has in the cheapest assignment of all costs that.
std::vector<Alternatives::OptionPrice> &Alternatives::pricesOf(size_t op) {
  std::vector<OptionPrice> &prices = known[op];
  if (!prices.empty())
    return prices;
  prices.resize(priced->options(op).pieces.size());
  if (following) {
    likely[op] = costsBesideChosen(op);
    if (others == Others::Stay)
      boundByLikely(op);
    else if (hasQuickBounds())
      updateBounds(op);
    return prices;
  }
  while (!cheapestOfAll.isExact && !tooLarge)
    cheapestOfAll = searchOnce(leftBut(std::nullopt));
  if (cheapestOfAll.isExact && cheapestOfAll.us < search::infinity)
    if (const std::set<size_t> options = optionsIn(cheapestOfAll.choice, op); options.size() == 1)
      prices[*options.begin()] = priceOf(cheapestOfAll);
  return prices;
}

/// One search takes so little that every operator may have one.
bool Alternatives::hasQuickBounds() {
  constexpr search::SolveLimits little{.tableEntries = int64_t(1) << 18, .operations = int64_t(1) << 26, .allEntries = int64_t(1) << 22,
                                       .branching = int64_t(1) << 20};
  if (!areBoundsQuick) {
    const search::Solution found = hasBounds ? search::solveExactly(networkOf(leftBut(std::nullopt)), little).summary : search::Solution{.optimal = false};
    spent += found.operations;
    areBoundsQuick = found.optimal;
  }
  return *areBoundsQuick;
}

/// What operators have, and how parameters are stored then, in numbers of the model.
const search::Choice &Alternatives::chosenInModel() {
  if (!inModel.empty())
    return inModel;
  do { // how parameters are stored may be another under exact prices
    search::CostNetwork network = priced->network();
    std::vector<std::pair<size_t, size_t>> tied;
    for (size_t op = 0; op < size(); ++op)
      if (std::optional<size_t> chosen = chosenOption(op)) {
        search::keepOptions(network, static_cast<int32_t>(op), {static_cast<int32_t>(*chosen)});
        tied.emplace_back(op, *chosen);
      }
    const search::Solution found = search::solveExactly(network, limits());
    spend(found);
    inModel = found.choice;
    for (auto [op, chosen] : tied)
      inModel[op] = static_cast<int32_t>(chosen);
  } while (priced->makeExact(inModel));
  return inModel;
}

/// Of each option of an operator what it and its neighbours take where no other operator takes anything else.
std::vector<double> Alternatives::costsBesideChosen(size_t op) {
  const search::OptionCosts found = search::costsBeside(priced->network(), chosenInModel(), static_cast<int32_t>(op),
                                                        static_cast<int32_t>(size()), limits());
  spent += found.operations;
  return found.costs;
}

/// Where no other operator takes anything else, that is all that changes.
void Alternatives::boundByLikely(size_t op) {
  const double besides = us() - likely[op][*chosenOption(op)];
  for (auto [price, ofNeighbours] : llvm::zip(known[op], likely[op]))
    price = {std::max(0.0, besides + ofNeighbours), ofNeighbours == search::infinity, nullptr};
}

/// What was priced since then makes bounds better.
void Alternatives::updateBounds(size_t op) {
  if (tooLarge)
    return;
  const search::OptionCosts bounds = search::boundsOfOptions(networkOf(leftBut(op)), static_cast<int32_t>(op), limits());
  spent += bounds.operations;
  for (auto [price, us] : llvm::zip(known[op], bounds.costs))
    if (!price.isExact)
      price = {std::max(price.us, us), us == search::infinity, nullptr};
}

/// The option that looks cheapest; of those that look alike one that is exact.
std::optional<size_t> Alternatives::front(size_t op, llvm::function_ref<bool(size_t)> passes) {
  std::optional<size_t> best;
  std::vector<OptionPrice> &prices = pricesOf(op);
  auto rank = [&](size_t option) { return std::pair(prices[option].us, !prices[option].isExact); };
  for (size_t option = 0; option < prices.size(); ++option)
    if (std::isfinite(prices[option].us) && passes(option) && (!best || rank(option) < rank(*best)))
      best = option;
  return best;
}

/// One round for an option that is not exact yet.
void Alternatives::raise(size_t op, size_t option) {
  constexpr size_t perBounds = 8;
  OptionPrice &price = known[op][option];
  if (following) {
    Choices choices = following(op, priced->options(op).pieces[option]);
    const double us = usOf(choices);
    price = {us, true, std::make_shared<SearchResult>(SearchResult{.choices = std::move(choices), .rounds = {}, .us = us})};
    return;
  }
  AllLeft left = leftBut(op);
  left.push_back({op, {static_cast<int32_t>(option)}});
  const Searched found = searchOnce(left);
  price = found.isExact ? priceOf(found) : OptionPrice{std::max(price.us, found.us), false, nullptr};
  if (++roundsOf[op] % perBounds == 0)
    updateBounds(op);
}

/// One search among all options that are open. Nothing that rounds take alike costs less than what they take of different ones: where
/// they do, these are priced one by one, and the others are searched. False: rounds still differ.
bool Alternatives::searchFront(size_t op, llvm::function_ref<bool(size_t)> passes) {
  constexpr int few = 3;
  std::vector<OptionPrice> &prices = pricesOf(op);
  for (int i = 0;; ++i) {
    std::optional<size_t> best = front(op, passes);
    if (!best || prices[*best].isExact)
      return true;
    if (i == few || tooLarge)
      return false;
    std::vector<int32_t> open;
    for (size_t option = 0; option < prices.size(); ++option)
      if (!prices[option].isExact && passes(option))
        open.push_back(static_cast<int32_t>(option));
    const Searched found = searchAmong(op, open);
    if (!found.isExact)
      return false;
    for (int32_t option : open)
      prices[option] = {std::max(prices[option].us, found.us), found.us == search::infinity, nullptr};
    if (found.us == search::infinity)
      continue;
    const std::set<size_t> taken = optionsIn(found.choice, op);
    for (size_t option : taken) {
      const Searched alone = taken.size() == 1 ? found : searchAmong(op, {static_cast<int32_t>(option)});
      prices[option] = alone.isExact ? priceOf(alone) : OptionPrice{std::max(prices[option].us, alone.us), false, nullptr};
    }
  }
}

/// Of those with which others were decided, as far as their bounds do not say that another one is cheaper: likely ones come first.
std::optional<size_t> Alternatives::cheapestFollowed(size_t op, llvm::function_ref<bool(size_t)> passes) {
  std::vector<OptionPrice> &prices = pricesOf(op);
  auto cheapest = [&] { return front(op, [&](size_t option) { return prices[option].isExact && passes(option); }); };
  for (size_t round = 0; round < mostFollowed(); ++round) {
    const std::optional<size_t> best = cheapest();
    std::optional<size_t> next;
    for (size_t option = 0; option < prices.size(); ++option)
      if (!prices[option].isExact && passes(option) && (!best || prices[option].us < prices[*best].us) &&
          (!next || likely[op][option] < likely[op][*next]))
        next = option;
    if (!next)
      break;
    raise(op, *next);
  }
  return cheapest();
}

/// Bounds that look cheapest rise until an exact one stays in front: most of the others are never searched to the end.
std::optional<size_t> Alternatives::cheapestOption(size_t op, llvm::function_ref<bool(size_t)> passes) {
  if (following)
    return cheapestFollowed(op, passes);
  if (!searchFront(op, passes))
    updateBounds(op);
  std::optional<size_t> best = front(op, passes);
  for (; best && !known[op][*best].isExact && !tooLarge; best = front(op, passes))
    raise(op, *best);
  return best && known[op][*best].isExact ? best : std::nullopt;
}

size_t Alternatives::mostFollowed() const {
  const size_t operatorsInAll = others == Others::Divide ? 200 : 1000; // to propagate takes some milliseconds for a hundred of them
  return std::max<size_t>(1, operatorsInAll / std::max<size_t>(1, size()));
}

bool Alternatives::keepsFixed(size_t op, size_t option) const {
  auto found = llvm::find_if(allowed, [&](const auto &entry) { return entry.first == op; });
  return found == allowed.end() || found->second[option];
}

Alternative Alternatives::alternative(size_t op, size_t option) {
  const Pieces &pieces = priced->options(op).pieces[option];
  const OptionPrice &price = known[op][option];
  const std::string text = strategyText(op, pieces);
  if (pieces == taken[op])
    return {.inStrategy = text, .us = us(), .leastUs = price.isExact ? price.us : us(), .isExact = true, .isChosen = true};
  return {.inStrategy = text, .us = price.us, .leastUs = price.us, .isExact = price.isExact,
          .isInsteadOfUsers = isByUser(op) || !keepsFixed(op, option)};
}

/// Of what a search proved.
Alternatives::OptionPrice Alternatives::priceOf(const Searched &found) const {
  if (found.us == search::infinity)
    return {found.us, true, nullptr};
  const search::RepeatedSolution solution{found.choice, {.choice = found.choice.choice, .cost = found.us}};
  return {found.us, true, std::make_shared<SearchResult>(resultOf(facts, *priced, *apart, solution))};
}

double Alternatives::bytes(size_t op, const Alternative &of) {
  auto arena = [&](const Problem &problem, const StepModel &model, const SearchResult &assignment) {
    return static_cast<double>(StepLives(eventsOf(problem, model, assignment, *planner)).memory().arena());
  };
  auto decided = [&](const SearchResult &assignment) {
    const StepModel model = decidedModel(assignment.choices);
    return arena(pinned, model, assignment);
  };
  if (of.isChosen)
    return decided({.choices = chosenOfAll(), .rounds = {}});
  for (size_t option = 0; option < known[op].size(); ++option)
    if (const auto &assignment = known[op][option].assignment; assignment && strategyText(op, priced->options(op).pieces[option]) == of.inStrategy)
      return following ? decided(*assignment) : arena(facts, *priced, *assignment);
  return 0;
}

std::optional<Alternative> Alternatives::cheapest(size_t op, llvm::function_ref<bool(const OperatorOptions &, size_t)> passes) {
  std::optional<size_t> option = cheapestOption(op, [&](size_t option) { return passes(priced->options(op), option); });
  return option ? std::optional(alternative(op, *option)) : std::nullopt;
}

std::vector<Alternative> Alternatives::of(size_t op, size_t exact, size_t rounds) {
  if (std::optional<size_t> chosen = chosenOption(op)) // is exact from now on
    cheapestOption(op, [&](size_t option) { return option == chosen; });
  if (!following || (hasBounds && others != Others::Stay))
    updateBounds(op);
  if (following)
    rounds = mostFollowed();
  if (others == Others::Stay)
    exact = known[op].size();
  std::set<size_t> cheapest;
  while (cheapest.size() < exact) {
    std::optional<size_t> next = front(op, [&](size_t option) { return !cheapest.contains(option); });
    if (!next)
      break;
    if (known[op][*next].isExact)
      cheapest.insert(*next);
    else if (rounds-- > 0 && (following || !tooLarge))
      raise(op, *next);
    else
      break;
  }
  std::vector<Alternative> list;
  for (size_t option = 0; option < known[op].size(); ++option)
    if (std::isfinite(known[op][option].us) && (known[op][option].isExact || known[op][option].us > 0)) // else nothing is known
      list.push_back(alternative(op, option));
  for (Alternative &alternative : list)
    alternative.bytes = bytes(op, alternative);
  llvm::sort(list, [](const Alternative &a, const Alternative &b) { return std::tie(a.us, a.inStrategy) < std::tie(b.us, b.inStrategy); });
  return list;
}

} // namespace msc::passes
