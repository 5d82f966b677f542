// Values on their way: from who makes them to who reads them, and how parameters are stored.
#include "passes/sharding/cost/StepModel.h"

#include "passes/sharding/Storage.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
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

double StepModel::localBytes(const ProblemTensor &tensor, const Sharding &sharding) {
  return static_cast<double>(elementCount(sharding.capacity(tensor.shape))) * static_cast<double>(tensor.elementBytes);
}

/// From the result of an operator, or the dataset, to all who read it.
void StepModel::addFlow(const Passage &passage) {
  const int32_t maker = uses.producer[passage.source];
  const ProblemTensor &tensor = problem.tensors[passage.source];
  if (maker < 0) {
    const Sharding arrives = tensor.dataset->canonical();
    return addShared(-1, tablesOf(-1, {{arrives, arrives, tensor.elementBytes, {}}}, passage), passage);
  }
  auto [known, isNew] = knownFlows.try_emplace(flowKeyOf(maker, passage));
  if (isNew)
    known->second = tablesOf(maker, sourcesOf(maker, passage), passage);
  addShared(maker, known->second, passage);
}

/// Under each option of the operator.
std::vector<StepModel::Source> StepModel::sourcesOf(int32_t maker, const Passage &passage) const {
  const ProblemTensor &tensor = problem.tensors[passage.source];
  const ProblemOperator &op = problem.operators[maker];
  const size_t result = std::ranges::find(op.results, passage.source) - op.results.begin();
  const bool isAgain = isComputedAgain(passage);
  std::vector<Source> sources;
  for (const PlacedStep &placed : options(maker, passage.made).placed) {
    const PlacedResult &at = placed.results[result];
    sources.push_back({at.left, at.own, at.bytesLeft(tensor.elementBytes), askedByMaker(at, isAgain)});
  }
  return sources;
}

/// All that the tables of a value depend on which an operator makes.
std::vector<uint64_t> StepModel::flowKeyOf(int32_t maker, const Passage &passage) const {
  auto numberOf = [](const OperatorOptions &of) { return reinterpret_cast<uintptr_t>(&of); };
  const std::vector<int32_t> &results = problem.operators[maker].results;
  std::vector<uint64_t> key{numberOf(options(maker, passage.made)), static_cast<uint64_t>(std::ranges::find(results, passage.source) - results.begin()),
                            isComputedAgain(passage), static_cast<uint64_t>(passage.times)};
  for (int32_t reader : uses.readers[passage.tensor]) {
    const std::vector<int32_t> &operands = problem.operators[reader].operands;
    key.insert(key.end(), {numberOf(options(reader, passage.read)), isComputedAgain(reader, passage.read), operands.size()});
    for (int32_t operand : operands)
      key.push_back(operand == passage.tensor);
  }
  return key;
}

/// What its storage costs is the keeper's where one operator alone decides it, else that of a variable of its own.
void StepModel::addParameter(int32_t tensor) {
  const ProblemTensor &parameter = problem.tensors[tensor];
  const std::vector<int32_t> &users = uses.readers[tensor];
  if (users.size() > 1 || problem.operators[users.front()].rounds > parameter.rounds)
    return addStorage(tensor);
  const int32_t keeper = users.front();
  auto [known, isNew] = knownKept.try_emplace(keptKeyOf(keeper, tensor));
  if (isNew)
    known->second = keptBy(keeper, tensor);
  for (size_t i = 0; i < known->second.size(); ++i)
    for (auto [part, sum] : {std::pair(&known->second[i].later, &own[keeper][i].later), std::pair(&known->second[i].first, &own[keeper][i].first)}) {
      for (double us : part->us)
        sum->us += us;
      sum->prices.insert(sum->prices.end(), part->prices.begin(), part->prices.end());
      keepParameter(tensor, keeper, i, part->bytes, part->hasGradient);
    }
}

/// All that keeping a parameter depends on.
std::vector<uint64_t> StepModel::keptKeyOf(int32_t keeper, int32_t tensor) const {
  const ProblemTensor &parameter = problem.tensors[tensor];
  std::vector<uint64_t> key{reinterpret_cast<uintptr_t>(all[keeper].get()), reinterpret_cast<uintptr_t>(first[keeper].get()),
                            static_cast<uint64_t>(parameter.rounds), parameter.isTrained};
  for (int32_t operand : problem.operators[keeper].operands)
    key.push_back(operand == tensor);
  return key;
}

/// Under each option of the operator.
std::vector<StepModel::Kept> StepModel::keptBy(int32_t keeper, int32_t tensor) {
  const ProblemTensor &parameter = problem.tensors[tensor];
  const ProblemOperator &op = problem.operators[keeper];
  const bool isReadOnce = std::ranges::count(op.operands, tensor) == 1;
  FlowCosts flow(parameter, prices, 1 / problem.gradientsPerStart, /*addsGradients=*/false);
  std::vector<Kept> kept;
  for (size_t i = 0; i < all[keeper]->placed.size(); ++i) {
    auto inRounds = [&](Rounds in, double rounds) {
      Kept::Part part;
      Source from{.bytes = parameter.elementBytes};
      const std::vector<Item> items = askedByReader(op, options(keeper, in).placed[i], tensor, /*isAgain=*/false, /*isReaderToo=*/false);
      const CutOperator cut{keeper, &all[keeper]->pieces[i]};
      from.left = from.own = isReadOnce ? items.front().sharding : storageOf(problem, tensor, {&cut, 1});
      for (const Item &what : items) {
        std::vector<Sharding> &list = from.paid[what.kind];
        if (std::ranges::find(list, what.sharding) != list.end())
          continue;
        if (const Price price = flow.price(from, what); price != MovePrices::nothing)
          part.prices.emplace_back(price, rounds);
        list.push_back(what.sharding);
      }
      part.hasGradient = !from.paid[Item::Gradient].empty();
      part.us.push_back(rounds * storageUs(parameter, from.left, part.hasGradient));
      if (const int64_t gradients = gradientsOf(keeper, tensor, in); gradients > 1)
        part.us.push_back(rounds * static_cast<double>(gradients - 1) * sumUs(problem.machine, parameter.shape, parameter.elementBytes, from.left));
      part.bytes = rounds * localBytes(parameter, from.left);
      return part;
    };
    const auto rounds = static_cast<double>(parameter.rounds);
    Kept &of = kept.emplace_back();
    of.later = inRounds(Rounds::Later, first[keeper] ? rounds - 1 : rounds);
    if (first[keeper])
      of.first = inRounds(Rounds::First, 1);
  }
  return kept;
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
    keepParameter(tensor, storage.variable, sources.size(), static_cast<double>(parameter.rounds) * localBytes(parameter, kinds[kind]), hasGradient);
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
  const Passage all{tensor, tensor, parameter.rounds};
  addShared(storage.variable, tablesOf(storage.variable, sources, all, /*addsGradients=*/sums > 0), all);
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
          sum.us += times * sumUs(problem.machine, parameter.shape, gradient.bytesLeft, gradient.left);
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

/// Parameter, gradient and states. `bytes`: of the parameter in its rounds.
void StepModel::keepParameter(int32_t tensor, int32_t variable, size_t option, double bytes, bool hasGradient) {
  keepers[tensor] = variable;
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
StepModel::FlowTables StepModel::tablesOf(int32_t maker, const std::vector<Source> &sources, const Passage &passage, bool addsGradients) {
  const int32_t tensor = passage.tensor;
  FlowCosts flow(problem.tensors[tensor], prices, 1 / problem.gradientsPerStart, addsGradients);
  FlowTables tables{.cost = {.producer = maker, .times = static_cast<double>(passage.times)}};
  for (const Source &from : sources)
    tables.cost.producerClass.push_back(flow.source(from));
  const bool isAgain = isComputedAgain(passage);
  for (int32_t reader : uses.readers[tensor]) {
    SharedCost::Reader &entry = tables.cost.readers.emplace_back(reader);
    for (const PlacedStep &placed : options(reader, passage.read).placed) {
      auto &items = entry.items.emplace_back();
      for (const Item &what : askedByReader(problem.operators[reader], placed, tensor, isAgain, isComputedAgain(reader, passage.read)))
        if (maker >= 0 || what.kind != Item::Gradient) // nobody wants one of what arrives
          items.push_back(flow.item(what));
      std::ranges::sort(items);
      items.erase(std::ranges::unique(items).begin(), items.end());
    }
  }
  tables.prices = flow.table();
  const bool isStored = maker >= static_cast<int32_t>(problem.operators.size());
  auto isNothing = [&](Price price) { return prices.us(price) == 0; };
  tables.isFree = !isStored && std::ranges::all_of(tables.prices, [&](const auto &row) { return std::ranges::all_of(row, isNothing); });
  for (const std::vector<Price> &row : tables.prices)
    tables.cost.costs.emplace_back(row.size());
  return tables;
}

void StepModel::addShared(int32_t maker, FlowTables tables, const Passage &passage) {
  if (tables.isFree)
    return;
  SharedCost &cost = tables.cost;
  cost.producer = maker;
  for (size_t i = 0; i < cost.readers.size(); ++i)
    cost.readers[i].variable = uses.readers[passage.tensor][i];
  sharedPrices.push_back(std::move(tables.prices));
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
