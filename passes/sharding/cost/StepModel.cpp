#include "passes/sharding/cost/StepModel.h"

#include "passes/sharding/Storage.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <utility>

namespace msc::passes {

using search::SharedCost;

struct StepModel::Source {
  Sharding left, own;
  size_t bytes = 4;                ///< of an element as it was left
  ItemShardings paid;            ///< made for the producer itself, or left by it
};

/// The items and classes of one value, and what each item costs from each class.
class StepModel::FlowCosts {
public:
  /// `startShare`: of starting a collective, what a gradient of a parameter pays. `addsGradients`: each gradient pays a sum where it lies.
  FlowCosts(const ProblemTensor &tensor, MovePrices &prices, double startShare, bool addsGradients)
      : prices(prices), shape(prices.numberOfShape(tensor.shape)), startShare(tensor.isParameter ? startShare : 1),
        isParameter(tensor.isParameter), addedBytes(addsGradients ? tensor.elementBytes : 0) {}

  int32_t item(const Item &what) {
    int32_t sharding = prices.numberOf(what.sharding);
    auto [at, isNew] = numbers.try_emplace(3 * sharding + what.kind, static_cast<int32_t>(items.size()));
    if (isNew)
      items.push_back({what.kind, sharding, what.bytes});
    return at->second;
  }
  int32_t source(const Source &from) {
    NumberedSource source{prices.numberOf(from.left), prices.numberOf(from.own), from.bytes, {}};
    for (size_t kind = 0; kind < source.paid.size(); ++kind)
      for (const Sharding &sharding : from.paid[kind])
        source.paid[kind].push_back(prices.numberOf(sharding));
    auto [at, isNew] = classes.try_emplace(source, static_cast<int32_t>(sources.size()));
    if (isNew)
      sources.push_back(std::move(source));
    return at->second;
  }
  Price price(const Source &from, const Item &what) { return of(sources[source(from)], items[item(what)]); }
  std::vector<std::vector<Price>> table() {
    std::vector<std::vector<Price>> rows;
    for (const NumberedSource &from : sources)
      for (auto &row = rows.emplace_back(); const NumberedItem &what : items)
        row.push_back(of(from, what));
    return rows;
  }

private:
  struct NumberedItem {
    Item::Kind kind;
    int32_t sharding;
    size_t bytes;
  };
  struct NumberedSource {
    int32_t left, own;
    size_t bytes;
    std::array<std::vector<int32_t>, 3> paid;
    auto operator<=>(const NumberedSource &) const = default;
  };

  MovePrices &prices;
  int32_t shape;
  double startShare;
  bool isParameter;
  size_t addedBytes;
  std::unordered_map<int32_t, int32_t> numbers;
  std::map<NumberedSource, int32_t> classes;
  std::vector<NumberedItem> items;
  std::vector<NumberedSource> sources;

  Price of(const NumberedSource &from, const NumberedItem &what) {
    const std::vector<int32_t> &paid = from.paid[what.kind];
    if (std::ranges::find(paid, what.sharding) != paid.end())
      return MovePrices::nothing;
    return what.kind == Item::Gradient ? prices.of(what.sharding, from.own, shape, what.bytes, startShare, isParameter, addedBytes)
                           : prices.of(from.left, what.sharding, shape, from.bytes);
  }
};

StepModel::StepModel(const Problem &problem, const ProblemSteps &steps, dist::ReshardPlanner &planner)
    : problem(problem), steps(steps), prices(planner), keepers(problem.tensors.size(), -1), uses(problem, [&](size_t op) { return steps.all[op] != nullptr; }) {
  Known known;
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    all.push_back(optionsOf(i, steps.all[i].get(), known, planner));
    first.push_back(steps.first[i] ? optionsOf(i, steps.first[i].get(), known, planner) : nullptr);
    costs.options.push_back(static_cast<int32_t>(all.back()->pieces.size()));
  }
  findPassages();
  findComputedAgain();
  addOwnCosts();
  addFlows();
  keptParameters.resize(costs.options.size());
  firstOwn = costs.tables.size();
  for (size_t i = 0; i < own.size(); ++i)
    costs.tables.push_back({{static_cast<int32_t>(i)}, std::vector<double>(own[i].size())});
  refresh();
}

void StepModel::Sum::add(Price price, double times) {
  if (price != MovePrices::nothing)
    prices.emplace_back(price, times);
}

double StepModel::usOf(const Sum &sum) const {
  double us = sum.us;
  for (auto [price, times] : sum.prices)
    us += times * prices.us(price);
  return us;
}

void StepModel::refresh() {
  for (size_t i = 0; i < own.size(); ++i)
    std::ranges::transform(own[i], costs.tables[firstOwn + i].costs.begin(), [&](const Own &of) { return usOf(of.later) + usOf(of.first); });
  for (size_t i = 0; i < sharedPrices.size(); ++i)
    for (size_t row = 0; row < sharedPrices[i].size(); ++row)
      std::ranges::transform(sharedPrices[i][row], costs.shared[i].costs[row].begin(), [&](Price price) { return prices.us(price); });
}

std::vector<double> StepModel::ownCosts(size_t op, Rounds rounds) const {
  std::vector<double> us;
  if (first[op])
    for (const Own &of : own[op])
      us.push_back(usOf(rounds == Rounds::First ? of.first : of.later));
  return us;
}

bool StepModel::makeExact(Price price) {
  if (prices.isExact(price))
    return false;
  prices.makeExact(price);
  return true;
}

bool StepModel::makeOwnExact(size_t op, int32_t option) {
  bool changes = false;
  for (const Sum *sum : {&own[op][option].later, &own[op][option].first})
    for (auto [price, times] : sum->prices)
      changes |= makeExact(price);
  return changes;
}

bool StepModel::makeExact(size_t flow, int32_t ofMaker, int32_t item) { return makeExact(sharedPrices[flow][ofMaker][item]); }

bool StepModel::makePaidExact(const search::Choice &choice) {
  bool changes = false;
  for (size_t i = 0; i < own.size(); ++i)
    changes |= makeOwnExact(i, choice[i]);
  for (size_t i = 0; i < ways.size(); ++i)
    changes |= makeFlowExact(i, choice);
  return changes;
}

bool StepModel::makeFlowExact(size_t flow, const search::Choice &choice) {
  bool changes = false;
  for (int32_t item : search::itemsAsked(costs.shared[flow], choice))
    changes |= makeExact(flow, rowOf(flow, choice), item);
  return changes;
}

bool StepModel::makeExact(std::span<const search::Choice> choices) {
  bool changes = false;
  for (const search::Choice &choice : choices)
    changes |= makePaidExact(choice);
  if (changes)
    refresh();
  return changes;
}

void StepModel::makeAllExact() {
  for (size_t op = 0; op < own.size(); ++op)
    for (size_t option = 0; option < own[op].size(); ++option)
      makeOwnExact(op, static_cast<int32_t>(option));
  for (const auto &table : sharedPrices)
    for (const std::vector<Price> &row : table)
      for (Price price : row)
        makeExact(price);
  isAllExact = true;
  refresh();
}

void StepModel::hideGradients(double share) {
  prices.hide(share);
  refresh();
}

void StepModel::shareStarts(bool shares) {
  prices.shareStarts(shares);
  refresh();
}

void StepModel::addStarts(size_t op, int32_t option, Starts &starts) const {
  for (const Sum *sum : {&own[op][option].later, &own[op][option].first})
    for (auto [price, times] : sum->prices)
      starts.insert(prices.starts(price).begin(), prices.starts(price).end());
}

void StepModel::addStarts(size_t flow, int32_t ofMaker, int32_t item, Starts &starts) const {
  const auto &of = prices.starts(sharedPrices[flow][ofMaker][item]);
  starts.insert(of.begin(), of.end());
}

double StepModel::us(const search::Choice &choice) {
  makeExact(choice);
  return search::costOf(costs, choice);
}

std::shared_ptr<const OperatorOptions> StepModel::optionsOf(size_t at, const OperatorStep *step, Known &known, dist::ReshardPlanner &planner) {
  const ProblemOperator &op = problem.operators[at];
  std::shared_ptr<const OperatorOptions> own;
  std::shared_ptr<const OperatorOptions> &shared = step ? known[{step, op.among, op.configured, op.wantedOut}] : own;
  if (!shared) {
    auto made = std::make_shared<OperatorOptions>();
    made->pieces = !op.among.empty() ? op.among
                   : op.configured   ? std::vector<Pieces>{*op.configured}
                                     : candidates(op.facts, problem.devices);
    if (step && !op.configured && op.among.empty() && !problem.meshes.empty())
      std::erase_if(made->pieces, [&](const Pieces &pieces) {
        return std::ranges::none_of(problem.meshes, [&](const auto &mesh) { return isOnMesh(pieces, mesh); });
      });
    for (const Pieces &pieces : made->pieces)
      if (step) {
        if (step->under)
          made->steps.push_back(step->under(pieces));
        made->placed.push_back(placeStep(step->under ? *made->steps.back() : *step, pieces, outOf(op, pieces, problem.devices), problem.devices, planner));
        auto pricesOf = [&](const std::vector<StepMove> &moves) {
          std::vector<Price> list;
          for (const StepMove &move : moves)
            list.push_back(prices.ofRoute(move.from, move.wanted, move.shape, move.elementBytes));
          return list;
        };
        made->moves.push_back(pricesOf(made->placed.back().moves));
        made->movesAgain.push_back(pricesOf(made->placed.back().again.moves));
      }
    shared = std::move(made);
  }
  return shared;
}

const OperatorStep &StepModel::step(size_t op, const Pieces &pieces, Rounds rounds) const {
  const OperatorOptions &of = options(op, rounds);
  if (!of.steps.empty())
    return *of.steps[std::ranges::find(of.pieces, pieces) - of.pieces.begin()];
  return rounds == Rounds::First && steps.first[op] ? *steps.first[op] : *steps.all[op];
}

/// Operators themselves, and results that nobody but the network asks for.
void StepModel::addOwnCosts() {
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    const ProblemOperator &op = problem.operators[i];
    auto &list = own.emplace_back();
    if (all[i]->placed.empty()) {
      list.resize(all[i]->pieces.size());
      continue;
    }
    const auto rounds = static_cast<double>(op.rounds);
    for (size_t option = 0; option < all[i]->placed.size(); ++option) {
      Own &of = list.emplace_back();
      addToOwn(i, static_cast<int32_t>(option), Rounds::Later, first[i] ? rounds - 1 : rounds, of.later);
      if (first[i])
        addToOwn(i, static_cast<int32_t>(option), Rounds::First, 1, of.first);
    }
  }
}

void StepModel::addToOwn(size_t at, int32_t option, Rounds in, double rounds, Sum &sum) {
  const ProblemOperator &op = problem.operators[at];
  const OperatorOptions &of = options(at, in);
  const PlacedStep &placed = of.placed[option];
  sum.us += (placed.computeUs + placed.exchangeUs) * rounds;
  for (Price move : of.moves[option])
    sum.add(move, rounds);
  if (isComputedAgain(at, in)) {
    sum.us += (placed.again.computeUs + placed.again.exchangeUs) * rounds;
    for (Price move : of.movesAgain[option])
      sum.add(move, rounds);
  }
  for (size_t r = 0; r < op.results.size(); ++r) {
    const PlacedResult &result = placed.results[r];
    const ProblemTensor &tensor = problem.tensors[op.results[r]];
    const ItemShardings asked = askedWhereMade(at, r, result, in);
    for (Item::Kind kind : {Item::OfOriginal, Item::OfCopy})
      sum.add(prices.ofRoute(result.left, asked[kind], tensor.shape, result.bytesLeft(tensor.elementBytes)), rounds);
  }
}

ItemShardings StepModel::askedWhereMade(size_t op, size_t result, const PlacedResult &at, Rounds in) const {
  ItemShardings asked = askedByMaker(at, isComputedAgain(op, result, in));
  const int32_t tensor = problem.operators[op].results[result];
  const bool isReturned = std::ranges::find(problem.results, tensor) != problem.results.end();
  if (isReturned && asked[Item::OfOriginal].empty() && at.left != at.own && uses.readers[tensor].empty())
    asked[Item::OfOriginal] = {at.own};
  return asked;
}

double StepModel::localBytes(const ProblemTensor &tensor, const Sharding &sharding) {
  return static_cast<double>(elementCount(sharding.capacity(tensor.shape))) * static_cast<double>(tensor.elementBytes);
}

void StepModel::findPassages() {
  ValueFlow flow(problem);
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    if (!uses.readers[t].empty() && !problem.tensors[t].isParameter)
      std::ranges::move(passagesTo(static_cast<int32_t>(t), flow), std::back_inserter(passes));
}

bool StepModel::isComputedAgain(const Passage &passage) const {
  const int32_t maker = uses.producer[passage.source];
  if (maker < 0)
    return false;
  const std::vector<int32_t> &results = problem.operators[maker].results;
  return isComputedAgain(maker, std::ranges::find(results, passage.source) - results.begin(), passage.made);
}

/// From what gradients read back to the operators that make it, and from these to those that make what they read.
void StepModel::findComputedAgain() {
  again.resize(problem.operators.size());
  againInFirst = again;
  if (std::ranges::none_of(steps.all, [](const auto &step) { return step && step->isRecomputed; }))
    return;
  auto markOf = [&](size_t op, Rounds in) -> char & { return (in == Rounds::First && first[op] ? againInFirst : again)[op]; };
  auto stepIn = [&](size_t op, Rounds in) -> const OperatorStep & {
    return in == Rounds::First && first[op] ? *steps.first[op] : *steps.all[op];
  };
  bool changes = false;
  auto mark = [&](size_t op, Rounds in) {
    if (stepIn(op, in).isRecomputed && !std::exchange(markOf(op, in), 1))
      changes = true;
  };
  for (size_t op = 0; op < problem.operators.size(); ++op)
    for (Rounds in : {Rounds::Later, Rounds::First})
      for (size_t r = 0; runs(op) && r < problem.operators[op].results.size(); ++r)
        if (stepIn(op, in).gradientReadsResult(r) && !options(op, in).placed.front().results[r].isStatistic)
          mark(op, in);
  do {
    changes = false;
    for (const Passage &passage : std::views::reverse(passes)) {
      const int32_t maker = uses.producer[passage.source];
      for (int32_t reader : uses.readers[passage.tensor]) {
        const std::vector<int32_t> &operands = problem.operators[reader].operands;
        const auto operand = static_cast<int32_t>(std::ranges::find(operands, passage.tensor) - operands.begin());
        if (maker < 0 || !(markOf(reader, passage.read) || stepIn(reader, passage.read).gradientReads(operand)))
          continue;
        const std::vector<int32_t> &results = problem.operators[maker].results;
        const size_t result = std::ranges::find(results, passage.source) - results.begin();
        const bool isCarried = passage.source != passage.tensor && problem.operators[reader].repeats == problem.operators[maker].repeats;
        for (Rounds made : isCarried ? std::vector{passage.made, Rounds::First} : std::vector{passage.made})
          if (!options(maker, made).placed.front().results[result].isStatistic)
            mark(maker, made);
      }
    }
  } while (changes);
}

void StepModel::addFlows() {
  auto next = passes.begin();
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if (problem.tensors[t].isParameter && !uses.readers[t].empty())
      addParameter(static_cast<int32_t>(t));
    for (; next != passes.end() && next->tensor == static_cast<int32_t>(t); ++next)
      addFlow(*next);
  }
  addSumsOfGradients();
}

/// How many gradients of a tensor an operator makes.
int64_t StepModel::gradientsOf(size_t reader, int32_t tensor, Rounds rounds) const {
  return std::ranges::count_if(options(reader, rounds).placed.front().gradients, [&](const PlacedGradient &gradient) {
    return problem.operators[reader].operands[gradient.operand] == tensor;
  });
}

/// Of results of operators: n gradients of a value take n - 1 sums, where the value lies. What reads it where it is made comes first,
/// then what it is handed on to: to the next round, or out of the last one.
void StepModel::addSumsOfGradients() {
  std::vector<int64_t> same(problem.tensors.size()), instances(problem.tensors.size());
  for (const Passage &passage : passes)
    instances[passage.tensor] += passage.times;
  auto count = [&](const Passage &passage) { // of one instance of the tensor, which all rounds of a repeat may read
    int64_t gradients = 0;
    for (int32_t reader : uses.readers[passage.tensor])
      gradients += gradientsOf(reader, passage.tensor, passage.read) *
                   std::max<int64_t>(1, problem.operators[reader].rounds / instances[passage.tensor]);
    return gradients;
  };
  for (const Passage &passage : passes)
    if (passage.source == passage.tensor)
      same[passage.source] = std::max(same[passage.source], count(passage));
  std::set<std::pair<int32_t, bool>> begun; ///< source, and whether in all rounds but the last
  for (const Passage &passage : passes) {
    const int32_t maker = uses.producer[passage.source];
    int64_t gradients = count(passage);
    if (maker < 0 || gradients == 0)
      continue;
    const int32_t reader = uses.readers[passage.tensor].front();
    const bool isCarried = passage.source != passage.tensor && problem.operators[reader].repeats == problem.operators[maker].repeats;
    if (passage.source == passage.tensor || (same[passage.source] == 0 && begun.emplace(passage.source, isCarried).second))
      --gradients;
    if (gradients == 0)
      continue;
    const ProblemOperator &op = problem.operators[maker];
    const ProblemTensor &source = problem.tensors[passage.source];
    const size_t result = std::ranges::find(op.results, passage.source) - op.results.begin();
    GradientSums &of = sums.emplace_back(GradientSums{passage, maker, {}});
    for (const PlacedStep &placed : all[maker]->placed)
      of.us.push_back(static_cast<double>(gradients * passage.times) * sumUs(problem.machine, source.shape, source.elementBytes, placed.results[result].own));
    costs.tables.push_back({{maker}, of.us});
  }
}

std::vector<Passage> StepModel::passagesTo(int32_t tensor, const ValueFlow &flow) const {
  std::vector<Passage> passages;
  const std::vector<int32_t> &readers = uses.readers[tensor];
  for (const Handover &from : flow.sourcesOf(tensor)) {
    const int32_t maker = uses.producer[from.tensor];
    if (maker < 0 && !problem.tensors[from.tensor].dataset)
      continue;
    const bool isSame = from.tensor == tensor;
    Passage passage{from.tensor, tensor, !isSame ? from.times : maker >= 0 ? problem.operators[maker].rounds : 1};
    auto isAround = [&](int32_t op) { // a repeat with a first round of its own, around both
      return first[op] && maker >= 0 && problem.operators[op].repeats == problem.operators[maker].repeats;
    };
    const bool areTogether = std::ranges::any_of(readers, isAround);
    if (isSame && (areTogether || (maker >= 0 && first[maker]))) {
      passage.made = passage.read = Rounds::First;
      passages.push_back(passage);
      passages.back().times = 1;
      passage.made = passage.read = Rounds::Later;
      --passage.times;
    } else if (!isSame && !areTogether && std::ranges::any_of(readers, [&](int32_t op) { return first[op] != nullptr; })) {
      passage.read = Rounds::First; // what enters a repeat
    }
    passages.push_back(passage);
  }
  return passages;
}

/// From the result of an operator, or the dataset, to all who read it.
void StepModel::addFlow(const Passage &passage) {
  const int32_t maker = uses.producer[passage.source];
  const ProblemTensor &tensor = problem.tensors[passage.source];
  if (maker < 0) {
    const Sharding arrives = tensor.dataset->canonical();
    return addShared(-1, {{arrives, arrives, tensor.elementBytes, {}}}, passage);
  }
  const ProblemOperator &op = problem.operators[maker];
  size_t result = std::ranges::find(op.results, passage.source) - op.results.begin();
  const bool isAgain = isComputedAgain(passage);
  std::vector<Source> sources;
  for (const PlacedStep &placed : options(maker, passage.made).placed) {
    const PlacedResult &at = placed.results[result];
    sources.push_back({at.left, at.own, at.bytesLeft(tensor.elementBytes), askedByMaker(at, isAgain)});
  }
  addShared(maker, sources, passage);
}

/// What its storage costs is the keeper's where one operator alone decides it, else that of a variable of its own.
void StepModel::addParameter(int32_t tensor) {
  const ProblemTensor &parameter = problem.tensors[tensor];
  const std::vector<int32_t> &users = uses.readers[tensor];
  if (users.size() > 1 || problem.operators[users.front()].rounds > parameter.rounds)
    return addStorage(tensor);
  const int32_t keeper = users.front();
  const ProblemOperator &op = problem.operators[keeper];
  const bool isReadOnce = std::ranges::count(op.operands, tensor) == 1;
  FlowCosts flow(parameter, prices, 1 / problem.gradientsPerStart, /*addsGradients=*/false);
  for (size_t i = 0; i < all[keeper]->placed.size(); ++i) {
    auto addRounds = [&](Rounds in, double rounds, Sum &sum) {
      Source from{.bytes = parameter.elementBytes};
      const std::vector<Item> items = askedByReader(op, options(keeper, in).placed[i], tensor, /*isAgain=*/false, /*isReaderToo=*/false);
      const CutOperator cut{keeper, &all[keeper]->pieces[i]};
      from.left = from.own = isReadOnce ? items.front().sharding : storageOf(problem, tensor, {&cut, 1});
      for (const Item &what : items) {
        std::vector<Sharding> &list = from.paid[what.kind];
        if (std::ranges::find(list, what.sharding) != list.end())
          continue;
        sum.add(flow.price(from, what), rounds);
        list.push_back(what.sharding);
      }
      sum.us += rounds * storageUs(parameter, from.left, !from.paid[Item::Gradient].empty());
      if (const int64_t gradients = gradientsOf(keeper, tensor, in); gradients > 1)
        sum.us += rounds * static_cast<double>(gradients - 1) * sumUs(problem.machine, parameter.shape, parameter.elementBytes, from.left);
      keepParameter(tensor, keeper, i, rounds, from.left, !from.paid[Item::Gradient].empty());
    };
    const auto rounds = static_cast<double>(parameter.rounds);
    addRounds(Rounds::Later, first[keeper] ? rounds - 1 : rounds, own[keeper][i].later);
    if (first[keeper])
      addRounds(Rounds::First, 1, own[keeper][i].first);
  }
}

/// Each sharding that a user may decide is an option; the strategies of all users allow one of them.
void StepModel::addStorage(int32_t tensor) {
  const ProblemTensor &parameter = problem.tensors[tensor];
  const std::vector<int32_t> &users = uses.readers[tensor];
  std::vector<Sharding> kinds; // the one that is stored first of all, first
  std::vector<std::vector<Sharding>> wanted;
  bool hasGradient = false;
  for (int32_t user : users) {
    auto &list = wanted.emplace_back();
    for (const Pieces &pieces : all[user]->pieces) {
      const CutOperator cut{user, &pieces};
      list.push_back(storageOf(problem, tensor, {&cut, 1}));
      kinds.push_back(list.back());
    }
    for (const PlacedGradient &gradient : all[user]->placed.front().gradients)
      hasGradient |= problem.operators[user].operands[gradient.operand] == tensor;
  }
  std::ranges::sort(kinds, [&](const Sharding &a, const Sharding &b) { return isStoredRather(a, b, parameter.shape); });
  kinds.erase(std::ranges::unique(kinds).begin(), kinds.end());
  std::vector<std::vector<size_t>> ranks; // in `kinds`, of each user under each option
  for (const std::vector<Sharding> &list : wanted)
    for (auto &rank = ranks.emplace_back(); const Sharding &sharding : list)
      rank.push_back(std::ranges::find(kinds, sharding) - kinds.begin());
  // Of users that want the same the first one decides.
  auto allows = [&](size_t keeper, size_t kind, size_t user, size_t rank) {
    return user == keeper ? rank == kind : user < keeper ? rank > kind : rank >= kind;
  };
  Storage &storage = stored.emplace_back(Storage{.tensor = tensor, .variable = static_cast<int32_t>(costs.options.size()), .us = {}});
  std::vector<std::pair<size_t, size_t>> options; // who decides, and for what
  for (size_t keeper = 0; keeper < users.size(); ++keeper)
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      bool isPossible = true;
      for (size_t user = 0; user < users.size() && isPossible; ++user)
        isPossible = std::ranges::any_of(ranks[user], [&](size_t rank) { return allows(keeper, kind, user, rank); });
      if (isPossible)
        options.emplace_back(keeper, kind);
    }
  costs.options.push_back(static_cast<int32_t>(options.size()));
  std::vector<Source> sources;
  int64_t sums = -parameter.rounds;
  for (int32_t user : users)
    sums += problem.operators[user].rounds * gradientsOf(user, tensor, Rounds::All);
  for (auto [keeper, kind] : options) {
    // Each gradient pays a sum as it lies, each way to the storage one there: one too many.
    const double us = storageUs(parameter, kinds[kind], hasGradient) -
                      (sums > 0 ? sumUs(problem.machine, parameter.shape, parameter.elementBytes, kinds[kind]) : 0);
    storage.us.push_back(static_cast<double>(parameter.rounds) * us);
    keepParameter(tensor, storage.variable, sources.size(), static_cast<double>(parameter.rounds), kinds[kind], hasGradient);
    sources.push_back({kinds[kind], kinds[kind], parameter.elementBytes, {}});
  }
  costs.tables.push_back({{storage.variable}, storage.us});
  storage.firstRule = costs.tables.size();
  storage.users = users.size();
  for (size_t user = 0; user < users.size(); ++user) {
    search::Table &rule = costs.tables.emplace_back(search::Table{{storage.variable, users[user]}, {}});
    rule.costs.reserve(options.size() * ranks[user].size());
    for (auto [keeper, kind] : options)
      for (size_t rank : ranks[user])
        rule.costs.push_back(allows(keeper, kind, user, rank) ? 0 : search::infinity);
  }
  if (sums > 0)
    for (int32_t user : users)
      addSums(user, tensor);
  addShared(storage.variable, sources, {tensor, tensor, parameter.rounds}, /*addsGradients=*/sums > 0);
}

/// To what a user of a parameter costs: for each gradient of it one sum, as the gradient lies.
void StepModel::addSums(int32_t user, int32_t tensor) {
  const ProblemOperator &op = problem.operators[user];
  const ProblemTensor &parameter = problem.tensors[tensor];
  const auto rounds = static_cast<double>(op.rounds);
  for (size_t i = 0; i < all[user]->placed.size(); ++i) {
    auto add = [&](Rounds in, double times, Sum &sum) {
      for (const PlacedGradient &gradient : options(user, in).placed[i].gradients)
        if (op.operands[gradient.operand] == tensor)
          sum.us += times * sumUs(problem.machine, parameter.shape, gradient.left.isPartial() ? gradient.partialBytes : parameter.elementBytes,
                                  gradient.left);
    };
    add(Rounds::Later, first[user] ? rounds - 1 : rounds, own[user][i].later);
    if (first[user])
      add(Rounds::First, 1, own[user][i].first);
  }
}

/// Of the update, in one round.
double StepModel::storageUs(const ProblemTensor &parameter, const Sharding &sharding, bool hasGradient) const {
  return parameter.isTrained && hasGradient ? updateUs(elementCount(sharding.capacity(parameter.shape)), parameter.elementBytes) : 0;
}

/// Parameter, gradient and states of so many rounds.
void StepModel::keepParameter(int32_t tensor, int32_t variable, size_t option, double rounds, const Sharding &sharding, bool hasGradient) {
  keepers[tensor] = variable;
  const double bytes = rounds * localBytes(problem.tensors[tensor], sharding);
  keptParameters.resize(costs.options.size());
  auto &[forRun, gradients] = keptParameters[variable];
  forRun.resize(costs.options[variable]);
  gradients.resize(costs.options[variable]);
  forRun[option] += bytes + (hasGradient ? static_cast<double>(problem.optimizerStates) * bytes : 0);
  gradients[option] += hasGradient ? bytes : 0;
}

/// Without more being known: the optimizer reads parameter, gradient and its own states, and writes parameter and states.
double StepModel::updateUs(int64_t elements, size_t bytes) const {
  auto count = static_cast<double>(elements), states = static_cast<double>(problem.optimizerStates);
  if (!problem.update.empty()) {
    const double wider = static_cast<double>(bytes) / 4;
    double us = 0;
    for (const UpdateWork &work : problem.update)
      us += problem.machine.operatorUs(work.flops * count + work.fixed[0], wider * (work.bytesRead * count + work.fixed[1]),
                                       wider * (work.bytesWritten * count + work.fixed[2]), bytes == 8 ? Arithmetic::F64 : Arithmetic::F32);
    return us;
  }
  double size = count * static_cast<double>(bytes);
  return problem.machine.operatorUs(count * (2 + 4 * states), size * (2 + states), size * (1 + states));
}

/// `maker` -1: nobody chooses how the value is there.
void StepModel::addShared(int32_t maker, const std::vector<Source> &sources, const Passage &passage, bool addsGradients) {
  const int32_t tensor = passage.tensor;
  FlowCosts flow(problem.tensors[tensor], prices, 1 / problem.gradientsPerStart, addsGradients);
  SharedCost cost{.producer = maker, .times = static_cast<double>(passage.times)};
  for (const Source &from : sources)
    cost.producerClass.push_back(flow.source(from));
  const bool isAgain = isComputedAgain(passage);
  for (int32_t reader : uses.readers[tensor]) {
    SharedCost::Reader &entry = cost.readers.emplace_back(reader);
    for (const PlacedStep &placed : options(reader, passage.read).placed) {
      auto &items = entry.items.emplace_back();
      for (const Item &what : askedByReader(problem.operators[reader], placed, tensor, isAgain, isComputedAgain(reader, passage.read)))
        if (maker >= 0 || what.kind != Item::Gradient) // nobody wants one of what arrives
          items.push_back(flow.item(what));
      std::ranges::sort(items);
      items.erase(std::ranges::unique(items).begin(), items.end());
    }
  }
  std::vector<std::vector<Price>> table = flow.table();
  const bool isStored = maker >= static_cast<int32_t>(problem.operators.size());
  if (!isStored && std::ranges::all_of(table, [&](const auto &row) { return std::ranges::all_of(row, [&](Price price) { return prices.us(price) == 0; }); }))
    return;
  for (const std::vector<Price> &row : table)
    cost.costs.emplace_back(row.size());
  sharedPrices.push_back(std::move(table));
  ways.push_back({passage, maker, cost.producerClass});
  bool readsItself = std::ranges::find(cost.readers, maker, &SharedCost::Reader::variable) != cost.readers.end();
  if (maker < 0 || readsItself)
    standIn(cost);
  costs.shared.push_back(std::move(cost));
}

/// A variable of its own for how a value is there: nobody chooses it, or an operator reads what it made in the round before.
void StepModel::standIn(SharedCost &cost) {
  auto variable = static_cast<int32_t>(costs.options.size()), count = static_cast<int32_t>(cost.costs.size());
  costs.options.push_back(count);
  if (cost.producer >= 0) {
    search::Table same{{cost.producer, variable}, {}};
    for (int32_t made : cost.producerClass)
      for (int32_t c = 0; c < count; ++c)
        same.costs.push_back(c == made ? 0 : std::numeric_limits<double>::infinity());
    costs.tables.push_back(std::move(same));
  }
  cost.producer = variable;
  cost.producerClass.resize(count);
  std::iota(cost.producerClass.begin(), cost.producerClass.end(), 0);
}

} // namespace msc::passes
