#include "passes/sharding/cost/Prediction.h"

#include "passes/sharding/Storage.h"
#include "passes/sharding/cost/MovePrices.h"
#include "passes/sharding/cost/StatisticsOfStep.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace msc::passes {
namespace {

/// Walks over what StepModel adds up, with one strategy per operator.
class Predicting {
public:
  Predicting(const Problem &problem, const StepModel &model, const Choices &choices, dist::ReshardPlanner &planner)
      : problem(problem), model(model), choices(choices), planner(planner), statistics(problem, model, choices),
        uses(problem, [&](size_t op) { return !model.options(op).placed.empty(); }) {
    for (size_t i = 0; i < problem.operators.size(); ++i) {
      const OperatorOptions &options = model.options(i);
      size_t at = std::ranges::find(options.pieces, choices[i].pieces) - options.pieces.begin();
      placed.push_back(options.placed.empty() ? nullptr : &options.placed[at]);
      first.push_back(model.hasOwnFirstRound(i) ? &model.options(i, Rounds::First).placed[at] : nullptr);
    }
    nameGradients();
  }

  Prediction run() {
    for (size_t i = 0; i < problem.operators.size(); ++i)
      if (placed[i])
        addOperator(problem.operators[i], i);
    for (const Passage &passage : model.passages())
      addPassage(passage);
    for (size_t t = 0; t < problem.tensors.size(); ++t)
      if (problem.tensors[t].isParameter && !uses.readers[t].empty())
        addParameter(static_cast<int32_t>(t));
    for (auto &[key, gradient] : gradients)
      addGradient(gradient);
    for (auto &[key, collective] : found)
      prediction.collectives.push_back(std::move(collective));
    return std::move(prediction);
  }

private:
  /// A value in a sharding, and what is there already.
  struct Source {
    Sharding left, own;
    size_t bytes = 4;
    bool isInput = false; ///< of which nobody wants a gradient
    bool isAgain = false; ///< it is computed again for the backward pass
    ItemShardings there;  ///< what has been asked for already
    int64_t statistic = StatisticsOfStep::none;
  };

  /// A gradient that operators hand on as it came, such as additions: one value, brought to where each of them wants it.
  struct HandedOn {
    struct Move {
      std::tuple<int64_t, bool, int32_t> when; ///< backward: line of the operator, after its own operators, operand
      Sharding from;
      std::vector<Sharding> wanted;
    };
    Shape shape;
    size_t bytes = 4;
    int64_t times = 1;
    std::vector<Move> moves;
  };
  /// Name of the gradient, bytes of an element, how often, in a first round of its own, from which round or what else it comes; -1: its own.
  using GradientKey = std::tuple<int32_t, size_t, int64_t, bool, int32_t>;

  static constexpr int32_t unnamed = -1;

  const Problem &problem;
  const StepModel &model;
  const Choices &choices;
  dist::ReshardPlanner &planner;
  StatisticsOfStep statistics;
  std::vector<int32_t> names;  ///< of the gradient of each tensor; one that is handed on keeps its name
  std::vector<char> isHandedOver; ///< of each tensor: it is one of those that repeats take, hand on and give
  std::map<GradientKey, HandedOn> gradients;
  std::map<int64_t, std::vector<Sharding>> made; ///< of each statistic: where it has been brought
  std::vector<const PlacedStep *> placed; ///< null: does not run
  std::vector<const PlacedStep *> first;  ///< in the first round of a repeat; null: as in all others
  TensorUses uses;
  Prediction prediction;
  std::map<std::string, PredictedCollective> found;

  void nameGradients() {
    names.resize(problem.tensors.size());
    std::iota(names.begin(), names.end(), 0);
    isHandedOver.resize(problem.tensors.size());
    for (const ProblemHandover &handover : problem.handovers)
      isHandedOver[handover.from] = isHandedOver[handover.to] = 1;
    std::vector<int64_t> contributions(problem.tensors.size());
    for (size_t i = problem.operators.size(); i-- > 0;) {
      if (!placed[i])
        continue;
      const ProblemOperator &op = problem.operators[i];
      for (const PlacedGradient &gradient : placed[i]->gradients) {
        const int32_t tensor = op.operands[gradient.operand];
        const int32_t name = nameOf(i, Rounds::All, gradient.value);
        const bool isOnly = contributions[tensor]++ == 0 && !isHandedOver[tensor] && tensor != problem.loss;
        names[tensor] = isOnly && name != unnamed ? name : tensor;
      }
    }
  }

  /// Of a value of the step of an operator: `unnamed`, unless it is the gradient of a result.
  int32_t nameOf(size_t op, Rounds rounds, int32_t value) const {
    const StepValue &facts = model.step(op, choices[op].pieces, rounds).values[value];
    return facts.kind == StepValue::Kind::ResultGradient ? names[problem.operators[op].results[facts.number]] : unnamed;
  }

  void note(const GradientKey &key, const Shape &shape, HandedOn::Move move) {
    HandedOn &gradient = gradients[key];
    gradient.shape = shape;
    std::tie(std::ignore, gradient.bytes, gradient.times, std::ignore, std::ignore) = key;
    gradient.moves.push_back(std::move(move));
  }

  /// In the order of the backward pass, from the nearest sharding in which it is there. The price holds every move on its own.
  void addGradient(HandedOn &gradient) {
    std::ranges::stable_sort(gradient.moves, {}, &HandedOn::Move::when);
    std::vector<Sharding> wanted;
    auto usOf = [&](const Sharding &from, const std::vector<Sharding> &targets) {
      double us = 0;
      for (const auto &steps : planRoute(from, targets, gradient.shape, gradient.bytes, planner))
        us += dist::reshardUs(steps, gradient.bytes, planner.machine());
      return us;
    };
    const Sharding &from = gradient.moves.front().from;
    double apart = 0;
    for (const HandedOn::Move &move : gradient.moves) {
      apart += usOf(move.from, move.wanted);
      for (const Sharding &target : move.wanted)
        if (target != from)
          isNew(wanted, target);
    }
    addRoute(StatisticsOfStep::none, from, wanted, gradient.shape, gradient.bytes, /*isBackward=*/true, gradient.times);
    prediction.sharedUs += static_cast<double>(gradient.times) * (apart - usOf(from, wanted));
  }

  void add(MoveKind kind, bool isBackward, const std::vector<int64_t> &matrix, const std::vector<int32_t> &axes, double bytes,
           double us, int64_t times) {
    std::string key = std::to_string(static_cast<int>(kind)) + (isBackward ? "b" : "f");
    for (int64_t size : matrix)
      key += " " + std::to_string(size);
    for (int32_t axis : axes)
      key += "/" + std::to_string(axis);
    PredictedCollective &entry = found.try_emplace(key, PredictedCollective{kind, isBackward, matrix, axes, 0, 0, 0}).first->second;
    entry.bytes += bytes * static_cast<double>(times);
    entry.us += us * static_cast<double>(times);
    entry.count += times;
  }

  void addSteps(const std::vector<dist::ReshardStep> &steps, size_t bytes, bool isBackward, int64_t times) {
    for (const dist::ReshardStep &step : steps) {
      double received = static_cast<double>(step.receivedElements) * static_cast<double>(bytes);
      double us = planner.machine().moveUs(step.kind, groupShape(step.groupMatrix, step.groupAxes), received);
      if (step.kind == MoveKind::Slice)
        prediction.sliceUs += us * static_cast<double>(times);
      else
        add(step.kind, isBackward, step.groupMatrix, step.groupAxes, received, us, times);
    }
  }

  /// `statistic`: what others compute alike is there already where it has been brought.
  void addRoute(int64_t statistic, const Sharding &from, const std::vector<Sharding> &wanted, const Shape &shape, size_t bytes,
                bool isBackward, int64_t times) {
    std::vector<Sharding> all = madeOf(statistic);
    const size_t there = all.size();
    for (const Sharding &target : wanted)
      isNew(all, target);
    const auto route = planRoute(from, all, shape, bytes, planner);
    for (size_t i = there; i < all.size(); ++i)
      addSteps(route[i], bytes, isBackward, times);
    if (there != 0) {
      for (const auto &steps : planRoute(from, wanted, shape, bytes, planner))
        prediction.sharedUs += static_cast<double>(times) * dist::reshardUs(steps, bytes, planner.machine());
      for (size_t i = there; i < all.size(); ++i)
        prediction.sharedUs -= static_cast<double>(times) * dist::reshardUs(route[i], bytes, planner.machine());
    }
    if (statistic != StatisticsOfStep::none)
      made[statistic] = std::move(all);
  }

  std::vector<Sharding> madeOf(int64_t statistic) const {
    const auto at = made.find(statistic);
    return at == made.end() ? std::vector<Sharding>() : at->second;
  }

  const PlacedStep &placedIn(size_t op, Rounds rounds) const { return rounds == Rounds::First && first[op] ? *first[op] : *placed[op]; }

  int64_t statisticOf(size_t op, Rounds rounds, int32_t value) const {
    return statistics.numberOf(op, rounds == Rounds::First && first[op] ? Rounds::First : Rounds::All, value);
  }

  void addOperator(const ProblemOperator &op, size_t index) {
    addRounds(index, Rounds::Later, first[index] ? op.rounds - 1 : op.rounds);
    if (first[index])
      addRounds(index, Rounds::First, 1);
  }

  void addRounds(size_t index, Rounds in, int64_t rounds) {
    const ProblemOperator &op = problem.operators[index];
    const PlacedStep &at = placedIn(index, in);
    prediction.computeUs += at.computeUs * static_cast<double>(rounds);
    for (const auto &[isBackward, exchange] : at.exchanges)
      addExchange(exchange, isBackward, rounds);
    for (const StepMove &move : at.moves) {
      const int32_t name = nameOf(index, in, move.value);
      const int64_t statistic = statisticOf(index, in, move.value);
      if (name != unnamed && statistic == StatisticsOfStep::none)
        note({name, move.elementBytes, rounds, in == Rounds::First, unnamed}, move.shape, {{-op.line, false, 0}, move.from, move.wanted});
      else
        addRoute(statistic, move.from, move.wanted, move.shape, move.elementBytes, move.isBackward, rounds);
    }
    if (model.isComputedAgain(index, in))
      addAgain(at.again, rounds);
    for (size_t r = 0; r < op.results.size(); ++r) {
      const PlacedResult &result = at.results[r];
      const ProblemTensor &tensor = problem.tensors[op.results[r]];
      const ItemShardings asked = model.askedWhereMade(index, r, result, in);
      const size_t bytes = result.bytesLeft(tensor.elementBytes);
      if (!asked[Item::OfOriginal].empty())
        addRoute(statisticOf(index, in, result.value), result.left, asked[Item::OfOriginal], tensor.shape, bytes, false, rounds);
      addRoute(StatisticsOfStep::none, result.left, asked[Item::OfCopy], tensor.shape, bytes, true, rounds);
    }
  }

  void addAgain(const PlacedAgain &again, int64_t rounds) {
    prediction.computeUs += again.computeUs * static_cast<double>(rounds);
    for (const OwnExchange &exchange : again.exchanges)
      addExchange(exchange, /*isBackward=*/true, rounds);
    for (const StepMove &move : again.moves)
      addRoute(StatisticsOfStep::none, move.from, move.wanted, move.shape, move.elementBytes, true, rounds);
  }

  void addExchange(const OwnExchange &exchange, bool isBackward, int64_t rounds) {
    add(MoveKind::Exchange, isBackward, exchange.groupMatrix, exchange.groupAxes,
        static_cast<double>(exchange.received) * static_cast<double>(exchange.elementBytes), exchange.us, rounds);
  }

  void addPassage(const Passage &passage) {
    const ProblemTensor &source = problem.tensors[passage.source];
    const int32_t maker = uses.producer[passage.source];
    if (maker < 0) {
      Sharding arrives = source.dataset->canonical();
      return addReaders({.left = arrives, .own = arrives, .bytes = source.elementBytes, .isInput = true}, passage);
    }
    const ProblemOperator &op = problem.operators[maker];
    const PlacedResult &at = placedIn(maker, passage.made).results[std::ranges::find(op.results, passage.source) - op.results.begin()];
    Source from{.left = at.left, .own = at.own, .bytes = at.bytesLeft(source.elementBytes), .isAgain = model.isComputedAgain(passage)};
    from.there = askedByMaker(at, from.isAgain);
    from.statistic = statisticOf(maker, passage.made, at.value);
    addReaders(from, passage);
  }

  /// What all who read the tensor ask for, each once.
  void addReaders(Source from, const Passage &passage) {
    int64_t gradients = 0;
    for (int32_t reader : uses.readers[passage.tensor])
      for (const PlacedGradient &gradient : placedIn(reader, passage.read).gradients)
        gradients += problem.operators[reader].operands[gradient.operand] == passage.tensor;
    for (int32_t reader : uses.readers[passage.tensor])
      addItems(from, passage, reader, /*isSum=*/gradients > 1);
  }

  /// `isSum`: there are several gradients of the tensor.
  void addItems(Source &from, const Passage &passage, int32_t reader, bool isSum) {
    const ProblemOperator &op = problem.operators[reader];
    const PlacedStep &at = placedIn(reader, passage.read);
    const Shape &shape = problem.tensors[passage.tensor].shape;
    for (const Item &item : askedByReader(op, at, passage.tensor, from.isAgain, model.isComputedAgain(reader, passage.read))) {
      const bool isGradient = item.kind == Item::Gradient;
      if ((isGradient && from.isInput) || !isNew(from.there[item.kind], item.sharding) || item.sharding == (isGradient ? from.own : from.left))
        continue;
      if (isGradient)
        addGradientMove(passage, reader, item, from.own, isSum);
      else
        addMove(item.kind == Item::OfOriginal ? from.statistic : StatisticsOfStep::none, from.left, item.sharding, shape, from.bytes,
                item.kind == Item::OfCopy, passage.times);
    }
  }

  void addGradientMove(const Passage &passage, int32_t reader, const Item &item, const Sharding &to, bool isSum) {
    const ProblemOperator &op = problem.operators[reader];
    const Shape &shape = problem.tensors[passage.tensor].shape;
    const int64_t statistic = isSum ? StatisticsOfStep::none : statisticOf(reader, passage.read, item.value);
    int32_t name = nameOf(reader, passage.read, item.value);
    if (name == unnamed && !isHandedOver[passage.tensor])
      name = names[passage.tensor];
    if (isSum || name == unnamed || statistic != StatisticsOfStep::none)
      return addMove(statistic, item.sharding, to, shape, item.bytes, true, passage.times);
    const auto operand = static_cast<int32_t>(std::ranges::find(op.operands, passage.tensor) - op.operands.begin());
    note({name, item.bytes, passage.times, passage.read == Rounds::First, passage.source == passage.tensor ? unnamed : passage.source}, shape,
         {{-op.line, true, operand}, item.sharding, {to}});
  }

  /// As addRoute, of a price to one sharding.
  void addMove(int64_t statistic, const Sharding &from, const Sharding &to, const Shape &shape, size_t bytes, bool isBackward, int64_t times) {
    const std::vector<dist::ReshardStep> &steps = planner.plan(from, to, shape, bytes);
    if (statistic != StatisticsOfStep::none && !isNew(made[statistic], to))
      prediction.sharedUs += static_cast<double>(times) * dist::reshardUs(steps, bytes, planner.machine());
    else
      addSteps(steps, bytes, isBackward, times);
  }

  static bool isNew(std::vector<Sharding> &list, const Sharding &sharding) {
    if (std::ranges::find(list, sharding) != list.end())
      return false;
    list.push_back(sharding);
    return true;
  }

  void addParameter(int32_t tensor) {
    const ProblemTensor &parameter = problem.tensors[tensor];
    const std::vector<int32_t> &users = uses.readers[tensor];
    std::vector<CutOperator> cut;
    for (int32_t user : users)
      cut.push_back({user, &choices[user].pieces});
    Source from{.bytes = parameter.elementBytes};
    from.left = from.own = storageOf(problem, tensor, cut);
    if (first[users.front()] && users.size() == 1 && problem.operators[users.front()].rounds == parameter.rounds) {
      addReaders(from, {tensor, tensor, 1, Rounds::First, Rounds::First});
      return addReaders(from, {tensor, tensor, parameter.rounds - 1});
    }
    addReaders(from, {tensor, tensor, parameter.rounds});
  }
};

} // namespace

Prediction predictionOf(const Problem &problem, const StepModel &model, const Choices &choices, dist::ReshardPlanner &planner) {
  return Predicting(problem, model, choices, planner).run();
}

} // namespace msc::passes
