#include "passes/sharding/cost/StepModel.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <utility>

namespace msc::passes {

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
  findPrices();
  refreshAll();
  constexpr size_t many = 2000;
  if (costs.options.size() > many)
    prices.spread();
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

void StepModel::refreshOwn(size_t op) {
  std::ranges::transform(own[op], costs.tables[firstOwn + op].costs.begin(), [&](const Own &of) { return usOf(of.later) + usOf(of.first); });
}

void StepModel::refreshFlow(size_t flow) {
  for (size_t row = 0; row < sharedPrices[flow].size(); ++row)
    std::ranges::transform(sharedPrices[flow][row], costs.shared[flow].costs[row].begin(), [&](Price price) { return prices.us(price); });
}

void StepModel::refreshAll() {
  for (size_t op = 0; op < own.size(); ++op)
    refreshOwn(op);
  for (size_t flow = 0; flow < sharedPrices.size(); ++flow)
    refreshFlow(flow);
  prices.takeChanged();
}

void StepModel::refresh() {
  std::vector<int32_t> changedOwn, changedFlows;
  for (int32_t context : prices.takeChanged()) {
    std::ranges::copy(pricedIn[context].own, std::back_inserter(changedOwn));
    std::ranges::copy(pricedIn[context].flows, std::back_inserter(changedFlows));
  }
  for (std::vector<int32_t> *list : {&changedOwn, &changedFlows}) {
    std::ranges::sort(*list);
    list->erase(std::ranges::unique(*list).begin(), list->end());
  }
  for (int32_t op : changedOwn)
    refreshOwn(op);
  for (int32_t flow : changedFlows)
    refreshFlow(flow);
}

/// What of the network is priced in which context.
void StepModel::findPrices() {
  pricedIn.resize(prices.contextCount());
  auto note = [&](std::vector<int32_t> Priced::*list, size_t number, Price price) {
    if (price == MovePrices::nothing)
      return;
    std::vector<int32_t> &of = pricedIn[prices.contextOf(price)].*list;
    if (of.empty() || of.back() != static_cast<int32_t>(number))
      of.push_back(static_cast<int32_t>(number));
  };
  for (size_t op = 0; op < own.size(); ++op)
    for (const Own &of : own[op])
      for (const Sum *sum : {&of.later, &of.first})
        for (auto [price, times] : sum->prices)
          note(&Priced::own, op, price);
  for (size_t flow = 0; flow < sharedPrices.size(); ++flow)
    for (const std::vector<Price> &row : sharedPrices[flow])
      for (Price price : row)
        note(&Priced::flows, flow, price);
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
  refreshAll();
}

void StepModel::shareStarts(bool shares) {
  prices.shareStarts(shares);
  refreshAll();
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
  knownFlows.clear();
  knownKept.clear();
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

} // namespace msc::passes
