#include "passes/sharding/cost/StepModel.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace msc::passes {

using search::SharedCost;

namespace {

/// Numbers for things that are told apart by a text.
class Numbering {
public:
  int32_t of(const std::string &text) { return numbers.try_emplace(text, static_cast<int32_t>(numbers.size())).first->second; }
  size_t size() const { return numbers.size(); }

private:
  std::unordered_map<std::string, int32_t> numbers;
};

/// Something that a reader of a value asks for: the value in a sharding, or its gradient taken from one.
struct Item {
  bool isGradient = false;
  Sharding sharding;
  size_t bytes = 4; ///< of an element of the gradient
};

} // namespace

struct StepModel::Source {
  Sharding left, own;
  size_t bytes = 4;                ///< of an element as it was left
  std::vector<Sharding> wanted;    ///< made for the producer itself
  std::vector<Sharding> gradients; ///< left by the producer itself

  std::string str() const {
    std::string text = left.str() + "|" + own.str();
    for (const Sharding &sharding : wanted)
      text += "w" + sharding.str();
    for (const Sharding &sharding : gradients)
      text += "g" + sharding.str();
    return text;
  }
};

/// The items and classes of one value, and what each item costs from each class.
class StepModel::FlowCosts {
public:
  /// `startShare`: of starting a collective, what a gradient of a parameter pays.
  FlowCosts(const ProblemTensor &tensor, dist::ReshardPlanner &planner, double startShare)
      : tensor(tensor), planner(planner), startShare(startShare) {}

  int32_t item(const Item &what) {
    int32_t number = numbers.of((what.isGradient ? "g" : "w") + what.sharding.str());
    if (static_cast<size_t>(number) == items.size())
      items.push_back(what);
    return number;
  }
  int32_t source(const Source &from) {
    int32_t number = classes.of(from.str());
    if (static_cast<size_t>(number) == sources.size())
      sources.push_back(from);
    return number;
  }
  double us(const Source &from, const Item &what) {
    const std::vector<Sharding> &paid = what.isGradient ? from.gradients : from.wanted;
    const Sharding &start = what.isGradient ? what.sharding : from.left, &end = what.isGradient ? from.own : what.sharding;
    if (start == end || std::ranges::find(paid, what.sharding) != paid.end())
      return 0;
    if (what.isGradient && tensor.isParameter && startShare < 1)
      return inBucketUs(start, end, what.bytes);
    return planner.us(start, end, tensor.shape, what.isGradient ? what.bytes : from.bytes);
  }
  std::vector<std::vector<double>> table() {
    std::vector<std::vector<double>> rows;
    for (const Source &from : sources)
      for (auto &row = rows.emplace_back(); const Item &what : items)
        row.push_back(us(from, what));
    return rows;
  }

private:
  const ProblemTensor &tensor;
  dist::ReshardPlanner &planner;
  double startShare;
  Numbering numbers, classes;
  std::vector<Item> items;
  std::vector<Source> sources;

  double inBucketUs(const Sharding &from, const Sharding &to, size_t bytes) {
    double us = 0;
    for (const dist::ReshardStep &step : planner.plan(from, to, tensor.shape, bytes)) {
      GroupShape group = groupShape(step.groupMatrix, step.groupAxes);
      double received = static_cast<double>(step.receivedElements) * static_cast<double>(bytes);
      us += planner.machine().moveUs(step.kind, group, received);
      if (step.kind != MoveKind::Slice)
        us -= (1 - startShare) * planner.machine().moveUs(step.kind, group, 0);
    }
    return us;
  }
};

/// What an operator asks of a tensor that it reads.
static std::vector<Item> itemsOf(const ProblemOperator &op, const PlacedStep &placed, int32_t tensor) {
  std::vector<Item> items;
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (op.operands[i] == tensor)
      for (const Sharding &wanted : placed.wanted[i])
        items.push_back({false, wanted});
  for (const PlacedGradient &gradient : placed.gradients)
    if (op.operands[gradient.operand] == tensor)
      items.push_back({true, gradient.left, gradient.partialBytes});
  return items;
}

StepModel::StepModel(const Problem &problem, const std::vector<std::shared_ptr<const OperatorStep>> &steps,
                     dist::ReshardPlanner &planner)
    : problem(problem), planner(planner), producer(problem.tensors.size(), -1),
      readers(problem.tensors.size()) {
  Known known;
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    addOptions(i, steps[i].get(), known);
    if (!steps[i])
      continue;
    for (int32_t tensor : problem.operators[i].results)
      producer[tensor] = static_cast<int32_t>(i);
    for (int32_t tensor : problem.operators[i].operands)
      if (readers[tensor].empty() || readers[tensor].back() != static_cast<int32_t>(i))
        readers[tensor].push_back(static_cast<int32_t>(i));
  }
  addOwnCosts();
  addFlows();
  kept.resize(costs.options.size());
  for (size_t i = 0; i < own.size(); ++i)
    costs.tables.push_back({{static_cast<int32_t>(i)}, own[i]});
}

void StepModel::addOptions(size_t at, const OperatorStep *step, Known &known) {
  const ProblemOperator &op = problem.operators[at];
  bool isFree = step && !op.configured && op.among.empty() && op.out.empty();
  std::shared_ptr<const OperatorOptions> &shared = known[isFree ? step : nullptr];
  if (!isFree || !shared) {
    auto made = std::make_shared<OperatorOptions>();
    made->pieces = !op.among.empty() ? op.among
                   : op.configured   ? std::vector<Pieces>{*op.configured}
                                     : candidates(op.facts, problem.devices);
    for (const Pieces &pieces : made->pieces)
      if (step)
        made->placed.push_back(placeStep(*step, pieces, op.out, planner, problem.devices));
    shared = std::move(made);
  }
  all.push_back(shared);
  costs.options.push_back(static_cast<int32_t>(shared->pieces.size()));
}

/// Operators themselves, and results that nobody but the network asks for.
void StepModel::addOwnCosts() {
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    const ProblemOperator &op = problem.operators[i];
    auto &list = own.emplace_back();
    auto &bytes = kept.emplace_back();
    if (all[i]->placed.empty()) {
      list.resize(all[i]->pieces.size());
      bytes.resize(all[i]->pieces.size());
      continue;
    }
    for (const PlacedStep &placed : all[i]->placed) {
      double us = placed.us(), results = 0;
      for (size_t r = 0; r < op.results.size(); ++r) {
        const PlacedResult &result = placed.results[r];
        const ProblemTensor &tensor = problem.tensors[op.results[r]];
        results += localBytes(tensor, result.left);
        std::vector<Sharding> wanted = result.wanted;
        if (wanted.empty() && result.left != result.own && isReturned(op.results[r]) && readers[op.results[r]].empty())
          wanted = {result.own};
        if (!wanted.empty())
          us += routeUs(result.left, wanted, tensor.shape, bytesOf(tensor, result), planner);
      }
      list.push_back(us * static_cast<double>(op.rounds));
      bytes.push_back(problem.loss >= 0 ? results * static_cast<double>(op.rounds) : 0);
    }
  }
}

bool StepModel::isReturned(int32_t tensor) const { return std::ranges::find(problem.results, tensor) != problem.results.end(); }

size_t StepModel::bytesOf(const ProblemTensor &tensor, const PlacedResult &result) {
  return result.left.isPartial() ? result.partialBytes : tensor.elementBytes;
}

double StepModel::localBytes(const ProblemTensor &tensor, const Sharding &sharding) {
  return static_cast<double>(elementCount(sharding.capacity(tensor.shape))) * static_cast<double>(tensor.elementBytes);
}

void StepModel::addFlows() {
  ValueFlow flow(problem);
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    auto tensor = static_cast<int32_t>(t);
    if (readers[t].empty())
      continue;
    if (problem.tensors[t].isParameter) {
      addParameter(tensor);
      continue;
    }
    for (const Handover &from : flow.sourcesOf(tensor))
      if (int32_t maker = producer[from.tensor]; maker >= 0)
        addFlow(from.tensor, tensor, from.tensor == tensor ? problem.operators[maker].rounds : from.times);
      else if (problem.tensors[from.tensor].dataset)
        addInput(from.tensor, tensor, from.tensor == tensor ? 1 : from.times);
  }
}

/// From the result of an operator to all who read it.
void StepModel::addFlow(int32_t source, int32_t tensor, int64_t times) {
  int32_t maker = producer[source];
  const ProblemOperator &op = problem.operators[maker];
  size_t result = std::ranges::find(op.results, source) - op.results.begin();
  std::vector<Source> sources;
  for (const PlacedStep &placed : all[maker]->placed) {
    const PlacedResult &at = placed.results[result];
    sources.push_back({at.left, at.own, bytesOf(problem.tensors[source], at), at.wanted, {}});
  }
  addShared(maker, sources, tensor, readers[tensor], times);
}

/// From the dataset.
void StepModel::addInput(int32_t source, int32_t tensor, int64_t times) {
  Sharding arrives = problem.tensors[source].dataset->canonical();
  addShared(-1, {{arrives, arrives, problem.tensors[source].elementBytes, {}, {}}}, tensor, readers[tensor], times);
}

/// A parameter is stored as its first user wants it, a configured one before the others.
void StepModel::addParameter(int32_t tensor) {
  const ProblemTensor &parameter = problem.tensors[tensor];
  std::vector<int32_t> others = readers[tensor];
  auto first = std::ranges::find_if(others, [&](int32_t op) { return problem.operators[op].configured.has_value(); });
  int32_t keeper = first == others.end() ? others.front() : *first;
  std::erase(others, keeper);
  const ProblemOperator &op = problem.operators[keeper];
  std::vector<Source> sources;
  for (size_t i = 0; i < all[keeper]->placed.size(); ++i) {
    Source from{.bytes = parameter.elementBytes};
    double us = 0;
    std::vector<Item> items = itemsOf(op, all[keeper]->placed[i], tensor);
    from.left = from.own = items.front().sharding;
    FlowCosts paid(parameter, planner, 1 / problem.gradientsPerStart);
    for (const Item &what : items) {
      std::vector<Sharding> &list = what.isGradient ? from.gradients : from.wanted;
      if (std::ranges::find(list, what.sharding) != list.end())
        continue;
      us += paid.us(from, what);
      list.push_back(what.sharding);
    }
    if (parameter.isTrained && !from.gradients.empty())
      us += updateUs(elementCount(from.left.capacity(parameter.shape)), parameter.elementBytes);
    own[keeper][i] += us * static_cast<double>(parameter.rounds);
    double tensors = 1 + (from.gradients.empty() ? 0 : 1 + static_cast<double>(problem.optimizerStates));
    kept[keeper][i] += tensors * localBytes(parameter, from.left) * static_cast<double>(parameter.rounds);
    sources.push_back(std::move(from));
  }
  if (!others.empty())
    addShared(keeper, sources, tensor, others, parameter.rounds);
}

/// The optimizer reads parameter, gradient and its own states, and writes parameter and states.
double StepModel::updateUs(int64_t elements, size_t bytes) const {
  auto count = static_cast<double>(elements), states = static_cast<double>(problem.optimizerStates);
  double size = count * static_cast<double>(bytes);
  return problem.machine.operatorUs(count * (2 + 4 * states), size * (2 + states), size * (1 + states));
}

/// `maker` -1: nobody chooses how the value is there.
void StepModel::addShared(int32_t maker, const std::vector<Source> &sources, int32_t tensor, const std::vector<int32_t> &who,
                          int64_t times) {
  FlowCosts flow(problem.tensors[tensor], planner, 1 / problem.gradientsPerStart);
  SharedCost cost{.producer = maker, .times = static_cast<double>(times)};
  for (const Source &source : sources)
    cost.producerClass.push_back(flow.source(source));
  for (int32_t reader : who) {
    SharedCost::Reader &entry = cost.readers.emplace_back(reader);
    for (const PlacedStep &placed : all[reader]->placed) {
      auto &items = entry.items.emplace_back();
      for (const Item &what : itemsOf(problem.operators[reader], placed, tensor))
        items.push_back(flow.item(what));
      std::ranges::sort(items);
      items.erase(std::ranges::unique(items).begin(), items.end());
    }
  }
  cost.costs = flow.table();
  if (std::ranges::all_of(cost.costs, [](const auto &row) { return std::ranges::all_of(row, [](double us) { return us == 0; }); }))
    return;
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
