#include "passes/sharding/cost/Prediction.h"

#include "passes/sharding/Storage.h"
#include "passes/sharding/cost/MovePrices.h"
#include "passes/sharding/cost/StatisticsOfStep.h"
#include "passes/sharding/cost/ValueMoves.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace msc::passes {
namespace {

/// Walks over what StepModel adds up, with one strategy per operator.
class Predicting {
public:
  Predicting(const Problem &problem, const StepModel &model, const Choices &choices, dist::ReshardPlanner &planner)
      : problem(problem), model(model), choices(choices), planner(planner), statistics(problem, model, choices),
        uses(problem, [&](size_t op) { return !model.options(op).placed.empty(); }), passagesOf(problem.tensors.size()) {
    for (size_t i = 0; i < problem.operators.size(); ++i) {
      const OperatorOptions &options = model.options(i);
      size_t at = std::ranges::find(options.pieces, choices[i].pieces) - options.pieces.begin();
      placed.push_back(options.placed.empty() ? nullptr : &options.placed[at]);
      first.push_back(model.hasOwnFirstRound(i) ? &model.options(i, Rounds::First).placed[at] : nullptr);
    }
    for (const Passage &passage : model.passages())
      passagesOf[passage.source].push_back(passage);
    nameGradients();
  }

  Prediction run() {
    for (size_t i = 0; i < problem.operators.size(); ++i)
      if (placed[i])
        addOperator(problem.operators[i], i);
    for (size_t t = 0; t < problem.tensors.size(); ++t)
      addTensor(static_cast<int32_t>(t));
    for (auto &[key, value] : ofStatistics)
      addMoves(std::move(value));
    for (auto &[key, gradient] : gradients)
      addHandedOn(gradient);
    for (auto &[key, collective] : found)
      prediction.collectives.push_back(std::move(collective));
    return std::move(prediction);
  }

private:
  /// A value in a sharding, which some read.
  struct Source {
    int32_t tensor = 0;
    Sharding left, own;
    size_t bytes = 4;
    bool isInput = false; ///< of which nobody wants a gradient
    bool isAgain = false; ///< it is computed again for the backward pass
    int64_t statistic = StatisticsOfStep::none;
  };
  /// Who reads some instances of a value.
  struct Instances {
    int64_t times = 0;
    std::vector<Passage> passages;
    Rounds made = Rounds::All;
  };
  /// A gradient that operators hand on as it is: one value, brought to where each of them wants it.
  struct HandedOn {
    std::map<int64_t, ValueMoves> always; ///< in all rounds, by how many these are
    std::vector<ValueMoves> sometimes;    ///< in some of them, where the repeat goes on or begins
  };

  static constexpr int32_t none = -1;
  static constexpr int64_t linesOfRound = int64_t(1) << 40; ///< a round of a repeat comes before what it hands on to

  const Problem &problem;
  const StepModel &model;
  const Choices &choices;
  dist::ReshardPlanner &planner;
  StatisticsOfStep statistics;
  std::vector<const PlacedStep *> placed; ///< null: does not run
  std::vector<const PlacedStep *> first;  ///< in the first round of a repeat; null: as in all others
  TensorUses uses;
  std::vector<std::vector<Passage>> passagesOf; ///< of each source
  std::vector<int32_t> names;                   ///< of the gradient of each tensor; one that is handed on keeps its name
  std::vector<char> isHandedOver;               ///< of each tensor: it is one of those that repeats take, hand on and give
  Prediction prediction;
  std::map<std::tuple<int64_t, size_t, int64_t>, ValueMoves> ofStatistics; ///< number, bytes of an element, how often: equal ones are one value
  std::map<std::tuple<int32_t, size_t, bool>, HandedOn> gradients; ///< name, bytes of an element, whether in a first round of its own
  std::map<std::string, PredictedCollective> found;

  const PlacedStep &placedIn(size_t op, Rounds rounds) const { return rounds == Rounds::First && first[op] ? *first[op] : *placed[op]; }

  int64_t statisticOf(size_t op, Rounds rounds, int32_t value) const {
    return statistics.numberOf(op, rounds == Rounds::First && first[op] ? Rounds::First : Rounds::All, value);
  }

  //===-- what is listed --------------------------------------------------===//

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

  void addExchange(const OwnExchange &exchange, bool isBackward, int64_t rounds) {
    add(MoveKind::Exchange, isBackward, exchange.groupMatrix, exchange.groupAxes,
        static_cast<double>(exchange.received) * static_cast<double>(exchange.elementBytes), exchange.us, rounds);
  }

  /// Lists all moves of the value. What they take is no part of what the price holds besides: addPrice adds what it holds of them.
  void addMoves(ValueMoves value) {
    if (value.times == 0 || !value.moves())
      return;
    const auto times = static_cast<double>(value.times);
    for (const PlannedMove &move : plannedMoves(value, planner))
      for (const dist::ReshardStep &step : move.steps) {
        const double received = static_cast<double>(step.receivedElements) * static_cast<double>(value.bytes);
        const double us = planner.machine().moveUs(step.kind, groupShape(step.groupMatrix, step.groupAxes), received);
        prediction.sharedUs -= times * us;
        if (step.kind == MoveKind::Slice)
          prediction.sliceUs += times * us;
        else
          add(step.kind, move.isBackward, step.groupMatrix, step.groupAxes, received, us, value.times);
      }
  }

  /// What the price holds of a value that one operator brings to several shardings.
  void addPrice(const Sharding &from, const std::vector<Sharding> &wanted, const Shape &shape, size_t bytes, int64_t times) {
    for (const auto &steps : planRoute(from, wanted, shape, bytes, planner))
      prediction.sharedUs += static_cast<double>(times) * dist::reshardUs(steps, bytes, planner.machine());
  }

  template <typename Values, typename Key> static void note(Values &values, const Key &key, ValueMoves value) {
    auto [at, isNew] = values.try_emplace(key);
    if (isNew)
      at->second = std::move(value);
    else
      std::ranges::move(value.demands, std::back_inserter(at->second.demands));
  }

  void noteStatistic(int64_t statistic, ValueMoves value) {
    const std::tuple key(statistic, value.bytes, value.times);
    note(ofStatistics, key, std::move(value));
  }

  /// What some rounds take besides is planned with what all take.
  void addHandedOn(HandedOn &gradient) {
    std::vector<ValueMoves> &rest = gradient.sometimes;
    for (auto &[rounds, always] : gradient.always) {
      int64_t left = rounds;
      for (auto some = rest.begin(); some != rest.end();) {
        if (some->times > left) {
          ++some;
          continue;
        }
        left -= some->times;
        some->demands.insert(some->demands.end(), always.demands.begin(), always.demands.end());
        addMoves(std::move(*some));
        some = rest.erase(some);
      }
      always.times = left;
      addMoves(std::move(always));
    }
    for (ValueMoves &some : rest)
      addMoves(std::move(some));
  }

  //===-- names of gradients ----------------------------------------------===//

  /// Where a value has one gradient alone, and an operator hands that on as it came, it goes by the name of where it came from.
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
      for (const PlacedGradient &gradient : placed[i]->gradients) {
        const int32_t tensor = problem.operators[i].operands[gradient.operand];
        const int32_t name = nameOf(i, Rounds::All, gradient.value);
        const bool isOnly = contributions[tensor]++ == 0 && !isHandedOver[tensor] && tensor != problem.loss;
        names[tensor] = isOnly && name != none ? name : tensor;
      }
    }
  }

  /// Of a value of the step of an operator; none: it is no gradient of a result.
  int32_t nameOf(size_t op, Rounds rounds, int32_t value) const {
    const StepValue &facts = model.step(op, choices[op].pieces, rounds).values[value];
    return facts.kind == StepValue::Kind::ResultGradient ? names[problem.operators[op].results[facts.number]] : none;
  }

  //===-- operators -------------------------------------------------------===//

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
    for (const StepMove &move : at.moves)
      addWithin(index, in, move, rounds);
    if (model.isComputedAgain(index, in))
      addAgain(at.again, rounds);
    for (size_t r = 0; r < op.results.size(); ++r) {
      const ProblemTensor &tensor = problem.tensors[op.results[r]];
      const ItemShardings asked = model.askedWhereMade(index, r, at.results[r], in);
      for (Item::Kind kind : {Item::OfOriginal, Item::OfCopy})
        addPrice(at.results[r].left, asked[kind], tensor.shape, at.results[r].bytesLeft(tensor.elementBytes), rounds);
    }
  }

  void addAgain(const PlacedAgain &again, int64_t rounds) {
    prediction.computeUs += again.computeUs * static_cast<double>(rounds);
    for (const OwnExchange &exchange : again.exchanges)
      addExchange(exchange, /*isBackward=*/true, rounds);
    for (const StepMove &move : again.moves) {
      addPrice(move.from, move.wanted, move.shape, move.elementBytes, rounds);
      addMoves(valueOf(move, rounds, {}));
    }
  }

  /// Of what only operators of the step read.
  void addWithin(size_t index, Rounds in, const StepMove &move, int64_t rounds) {
    addPrice(move.from, move.wanted, move.shape, move.elementBytes, rounds);
    const int64_t line = problem.operators[index].line, statistic = statisticOf(index, in, move.value);
    const int32_t name = nameOf(index, in, move.value);
    ValueMoves value = valueOf(move, rounds, move.isBackward ? ValueMoves::backward(line) : ValueMoves::forward(line));
    if (statistic != StatisticsOfStep::none)
      noteStatistic(statistic, std::move(value));
    else if (name != none)
      note(gradients[{name, value.bytes, in == Rounds::First}].always, rounds, std::move(value));
    else
      addMoves(std::move(value));
  }

  static ValueMoves valueOf(const StepMove &move, int64_t times, const ValueMoves::When &when) {
    ValueMoves value{move.shape, move.elementBytes, times, {}};
    for (const Sharding &target : move.wanted)
      value.demands.push_back({when, move.from, target, move.isBackward});
    return value;
  }

  //===-- values on their way ---------------------------------------------===//

  void addTensor(int32_t tensor) {
    const ProblemTensor &facts = problem.tensors[tensor];
    if (facts.isParameter && !uses.readers[tensor].empty())
      return addParameter(tensor);
    const int32_t maker = uses.producer[tensor];
    for (const Passage &passage : passagesOf[tensor])
      addPrices(sourceOf(tensor, passage.made), passage);
    for (const Instances &of : instancesOf(passagesOf[tensor], maker < 0 ? 0 : problem.operators[maker].rounds))
      addInstances(sourceOf(tensor, of.made), of);
  }

  Source sourceOf(int32_t tensor, Rounds made) const {
    const ProblemTensor &facts = problem.tensors[tensor];
    const int32_t maker = uses.producer[tensor];
    if (maker < 0) {
      const Sharding arrives = facts.dataset->canonical();
      return {.tensor = tensor, .left = arrives, .own = arrives, .bytes = facts.elementBytes, .isInput = true};
    }
    const size_t result = resultOf(maker, tensor);
    const PlacedResult &at = placedIn(maker, made).results[result];
    return {.tensor = tensor, .left = at.left, .own = at.own, .bytes = at.bytesLeft(facts.elementBytes),
            .isAgain = model.isComputedAgain(maker, result, made), .statistic = statisticOf(maker, made, at.value)};
  }

  size_t resultOf(int32_t op, int32_t tensor) const {
    const std::vector<int32_t> &results = problem.operators[op].results;
    return std::ranges::find(results, tensor) - results.begin();
  }

  void addParameter(int32_t tensor) {
    const ProblemTensor &parameter = problem.tensors[tensor];
    const std::vector<int32_t> &users = uses.readers[tensor];
    std::vector<CutOperator> cut;
    for (int32_t user : users)
      cut.push_back({user, &choices[user].pieces});
    const Sharding stored = storageOf(problem, tensor, cut);
    const Source from{.tensor = tensor, .left = stored, .own = stored, .bytes = parameter.elementBytes};
    std::vector<Passage> passages{{tensor, tensor, parameter.rounds}};
    if (first[users.front()] && users.size() == 1 && problem.operators[users.front()].rounds == parameter.rounds)
      passages = {{tensor, tensor, 1, Rounds::First, Rounds::First}, {tensor, tensor, parameter.rounds - 1}};
    for (const Passage &passage : passages) {
      addPrices(from, passage);
      addInstances(from, {passage.times, {passage}, passage.made});
    }
  }

  /// Of `rounds` instances of a value, or as many as are read: those that the same passages take. What a repeat hands on to its next rounds
  /// comes before what it gives.
  static std::vector<Instances> instancesOf(std::vector<Passage> passages, int64_t rounds) {
    if (passages.empty() && rounds > 0)
      return {{rounds, {}, Rounds::All}};
    if (passages.size() == 1 && passages.front().times >= rounds)
      return {{passages.front().times, passages, passages.front().made}};
    std::ranges::stable_sort(passages, {}, [](const Passage &passage) {
      return std::tuple(isHandedOn(passage), isHandedOn(passage) ? -passage.times : 0, passage.made != Rounds::First);
    });
    std::vector<std::vector<Passage>> tracks; // each takes instances one after the other
    std::vector<int64_t> lengths;
    for (const Passage &passage : passages)
      rounds = std::max(rounds, passage.times);
    for (const Passage &passage : passages) {
      size_t track = 0;
      while (track < tracks.size() && (isHandedOn(tracks[track].front()) != isHandedOn(passage) || lengths[track] + passage.times > rounds))
        ++track;
      if (track == tracks.size()) {
        tracks.emplace_back();
        lengths.push_back(0);
      }
      tracks[track].push_back(passage);
      lengths[track] += passage.times;
    }
    std::vector<Instances> all;
    for (int64_t at = 0; at < rounds; at += all.back().times) {
      Instances &next = all.emplace_back(Instances{.times = rounds - at, .passages = {}});
      for (const std::vector<Passage> &track : tracks) {
        int64_t end = 0;
        for (const Passage &passage : track) {
          const int64_t begin = std::exchange(end, end + passage.times);
          if (at < begin || at >= end)
            continue;
          next.times = std::min(next.times, end - at);
          next.passages.push_back(passage);
          if (passage.made == Rounds::First)
            next.made = Rounds::First;
        }
      }
    }
    return all;
  }

  /// Every sharding is paid once for all who read one tensor, unless who makes it asks for it, too.
  void addPrices(const Source &from, const Passage &passage) {
    const Shape &shape = problem.tensors[from.tensor].shape;
    const int32_t maker = uses.producer[from.tensor];
    ItemShardings there;
    if (maker >= 0)
      there = askedByMaker(placedIn(maker, passage.made).results[resultOf(maker, from.tensor)], from.isAgain);
    for (int32_t reader : uses.readers[passage.tensor])
      for (const Item &item : itemsOf(from, passage, reader)) {
        const bool isGradient = item.kind == Item::Gradient;
        if (!isNew(there[item.kind], item.sharding) || item.sharding == (isGradient ? from.own : from.left))
          continue;
        if (isGradient)
          addPrice(item.sharding, {from.own}, shape, item.bytes, passage.times);
        else
          addPrice(from.left, {item.sharding}, shape, from.bytes, passage.times);
      }
  }

  std::vector<Item> itemsOf(const Source &from, const Passage &passage, int32_t reader) const {
    std::vector<Item> items = askedByReader(problem.operators[reader], placedIn(reader, passage.read), passage.tensor, from.isAgain,
                                            model.isComputedAgain(reader, passage.read));
    std::erase_if(items, [&](const Item &item) { return item.kind == Item::Gradient && from.isInput; });
    return items;
  }

  static bool isNew(std::vector<Sharding> &list, const Sharding &sharding) {
    if (std::ranges::find(list, sharding) != list.end())
      return false;
    list.push_back(sharding);
    return true;
  }

  /// A gradient that an operator gives.
  struct Contribution {
    Item item;
    Passage passage;
    int32_t reader = 0;
  };

  void addInstances(const Source &from, const Instances &of) {
    const Shape &shape = problem.tensors[from.tensor].shape;
    ValueMoves original{shape, from.bytes, of.times, {}}, copy = original;
    std::vector<Contribution> contributions;
    addMaker(from, of.made, original, copy);
    for (const Passage &passage : of.passages)
      for (int32_t reader : uses.readers[passage.tensor]) {
        const int64_t line = problem.operators[reader].line + (isHandedOn(passage) ? linesOfRound : 0);
        for (const Item &item : itemsOf(from, passage, reader))
          if (item.kind == Item::Gradient)
            contributions.push_back({item, passage, reader});
          else
            (item.kind == Item::OfOriginal ? original : copy)
                .demands.push_back({item.isBackward ? ValueMoves::backward(line) : ValueMoves::forward(line), from.left, item.sharding, item.isBackward});
      }
    if (from.statistic != StatisticsOfStep::none)
      noteStatistic(from.statistic, std::move(original));
    else
      addMoves(std::move(original));
    addMoves(std::move(copy));
    if (contributions.size() == 1)
      addOnly(from, contributions.front(), of);
    else
      addSum(from, contributions, of);
  }

  /// What the operator that makes the value asks of it.
  void addMaker(const Source &from, Rounds made, ValueMoves &original, ValueMoves &copy) {
    const int32_t maker = uses.producer[from.tensor];
    if (maker < 0)
      return;
    const int64_t line = problem.operators[maker].line;
    const size_t result = resultOf(maker, from.tensor);
    const PlacedResult &at = placedIn(maker, made).results[result];
    const ItemShardings asked = model.askedWhereMade(maker, result, at, made);
    for (const Sharding &sharding : asked[Item::OfOriginal]) {
      const auto wanted = std::ranges::find(at.wanted, sharding, &Wanted::sharding);
      const bool isBackward = wanted != at.wanted.end() && !wanted->forward;
      original.demands.push_back({isBackward ? ValueMoves::backward(line) : ValueMoves::forward(line), from.left, sharding, isBackward});
    }
    for (const Sharding &sharding : asked[Item::OfCopy])
      copy.demands.push_back({ValueMoves::backward(line), from.left, sharding, /*isBackward=*/true});
  }

  ValueMoves gradientOf(const Source &from, const Contribution &of, int64_t times, const ValueMoves::When &when) const {
    return {problem.tensors[from.tensor].shape, of.item.bytes, times, {{when, of.item.sharding, from.own, /*isBackward=*/true}}};
  }

  static bool isHandedOn(const Passage &passage) { return passage.source != passage.tensor; }

  /// `isFirst`: in a first round of its own; `isSometimes`: as HandedOn.
  void noteGradient(int32_t name, bool isFirst, bool isSometimes, ValueMoves gradient) {
    if (!gradient.moves())
      return;
    HandedOn &to = gradients[{name, gradient.bytes, isFirst}];
    const int64_t times = gradient.times;
    if (isSometimes)
      to.sometimes.push_back(std::move(gradient));
    else
      note(to.always, times, std::move(gradient));
  }

  /// The gradient of the value as it comes, which who makes the value may hand on.
  void noteWhole(const Source &from, const Instances &of, ValueMoves gradient) {
    noteGradient(from.tensor, of.made == Rounds::First, std::ranges::any_of(of.passages, isHandedOn), std::move(gradient));
  }

  void addOnly(const Source &from, const Contribution &only, const Instances &of) {
    const Passage &passage = only.passage;
    const ProblemOperator &op = problem.operators[only.reader];
    const auto operand = static_cast<int32_t>(std::ranges::find(op.operands, passage.tensor) - op.operands.begin());
    const int32_t name = nameOf(only.reader, passage.read, only.item.value);
    const int64_t line = op.line + (name == none && isHandedOn(passage) ? linesOfRound : 0);
    ValueMoves gradient = gradientOf(from, only, of.times, ValueMoves::handedOn(line, operand));
    if (const int64_t statistic = statisticOf(only.reader, passage.read, only.item.value); statistic != StatisticsOfStep::none)
      noteStatistic(statistic, std::move(gradient));
    else if (name != none)
      noteGradient(name, passage.read == Rounds::First, isHandedOn(passage), std::move(gradient));
    else
      noteWhole(from, of, std::move(gradient));
  }

  /// Those that lie alike are added where they lie, and others where the value lies.
  void addSum(const Source &from, const std::vector<Contribution> &contributions, const Instances &of) {
    const int32_t maker = uses.producer[from.tensor];
    const int64_t line = maker < 0 ? 0 : problem.operators[maker].line;
    std::vector<const Contribution *> kinds;
    auto shardingOf = [](const Contribution *of) { return of->item.sharding; };
    for (const Contribution &contribution : contributions)
      if (std::ranges::find(kinds, contribution.item.sharding, shardingOf) == kinds.end())
        kinds.push_back(&contribution);
    if (kinds.size() == 1)
      return noteWhole(from, of, gradientOf(from, *kinds.front(), of.times, ValueMoves::added(line)));
    for (const Contribution *kind : kinds) {
      const Passage &passage = kind->passage;
      const bool isAlone = std::ranges::count(contributions, kind->item.sharding, [](const Contribution &other) { return other.item.sharding; }) == 1;
      const int32_t name = isAlone ? nameOf(kind->reader, passage.read, kind->item.value) : none;
      ValueMoves gradient = gradientOf(from, *kind, of.times, ValueMoves::added(line - (isHandedOn(passage) ? linesOfRound : 0)));
      if (name == none)
        addMoves(std::move(gradient));
      else
        noteGradient(name, passage.read == Rounds::First, isHandedOn(passage), std::move(gradient));
    }
  }
};

} // namespace

Prediction predictionOf(const Problem &problem, const StepModel &model, const Choices &choices, dist::ReshardPlanner &planner) {
  return Predicting(problem, model, choices, planner).run();
}

} // namespace msc::passes
