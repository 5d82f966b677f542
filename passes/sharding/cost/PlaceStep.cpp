#include "passes/sharding/cost/PlaceStep.h"

#include "passes/partition/Inherit.h"
#include "passes/partition/PartialSums.h"
#include "passes/sharding/cost/ValueNumbers.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <unordered_map>

namespace msc::passes {
namespace {

/// Every operator of a step in order, each under the axes that the partitioner would give it.
class Placing {
public:
  /// `planner`: prices, as the step runs behind all passes; null: nothing is priced, and none but `msc-reuse-statistics` has run.
  Placing(const OperatorStep &step, int64_t devices, dist::ReshardPlanner *planner)
      : step(step), devices(devices), planner(planner), values(step.values.size()), standIns(step.values.size()) {
    std::iota(standIns.begin(), standIns.end(), 0);
    for (size_t i = 0; i < values.size(); ++i)
      if (step.values[i].kind == StepValue::Kind::Constant)
        values[i].left = values[i].own = Sharding::replicated(devices, step.values[i].shape.size()).canonical();
  }

  PlacedStep run(const Pieces &pieces, const std::vector<Sharding> &out) {
    const StepOperator &forward = step.operators.front();
    own = assignmentOf(forward.facts.rule, pieces, devices);
    placed.wanted.resize(forward.operands.size());
    for (size_t i = 0; i < forward.operands.size(); ++i)
      used.push_back(operandSharding(forward.facts.rule, own, i).canonical());
    place(forward, own);
    for (size_t i = 0; i < forward.results.size(); ++i) {
      Value &value = values[step.resultOf(i)];
      value.isResult = true;
      if (!out.empty() && completed(value.left) != out[i])
        value.own = out[i];
      ownOfResults.push_back(value.own);
    }
    for (size_t i = 0; i < values.size(); ++i)
      if (step.values[i].kind == StepValue::Kind::ResultGradient)
        values[i].left = values[i].own = ownOfResults[step.values[i].number];
    for (size_t i = 1; i < step.operators.size(); ++i)
      inherit(step.operators[i], own);
    bool improves = step.mayRepeat && reuseStatistics();
    if (planner)
      improves |= keepPartials();
    if (improves)
      wantAnew();
    if (planner) {
      for (const Run &run : runs)
        if (run.isThere && run.op)
          price(run, placed.computeUs, placed.exchangeUs,
                [&](OwnExchange exchange) { placed.exchanges.emplace_back(run.isBackward, std::move(exchange)); });
      if (step.isRecomputed)
        computeAgain();
    }
    finish(forward);
    return std::move(placed);
  }

  TracedStep trace(const Pieces &pieces, const std::vector<Sharding> &out) {
    TracedStep trace;
    trace.placed = run(pieces, out);
    for (const Run &run : runs)
      trace.operators.push_back(traced(run));
    for (const PlacedResult &result : trace.placed.results)
      trace.results.push_back(result.value);
    for (const Value &value : values)
      trace.own.push_back(value.own);
    for (auto [operand, value] : step.gradients)
      trace.gradients.emplace_back(operand, standIns[value]);
    if (step.isRecomputed)
      markAgain(trace);
    return trace;
  }

private:
  struct Value {
    Sharding left, own;
    std::vector<Wanted> wanted;
    bool isBackward = false;
    bool isResult = false;  ///< of the forward operator: who wants it is told, not priced
    bool isStatistic = false; ///< as PlacedResult
    bool isReadThere = false; ///< somebody reads it as it was left
  };

  /// An operator that runs.
  struct Run {
    const StepOperator *op = nullptr; ///< null: an operand of something that expands is brought to where its parts want it
    Placement at;
    int32_t from = 0, brought = 0;    ///< that operand
    bool isBackward = false, isThere = true;
  };

  const OperatorStep &step;
  int64_t devices;
  dist::ReshardPlanner *planner;
  std::vector<Value> values;
  std::vector<int32_t> standIns; ///< of each value: the equal one that is there instead
  std::vector<Run> runs;
  net::Assignment own;              ///< of the forward operator
  std::vector<Sharding> used;       ///< of its operands
  std::vector<Sharding> ownOfResults;
  PlacedStep placed;

  static Wanted &in(std::vector<Wanted> &list, const Sharding &sharding) {
    auto found = std::ranges::find(list, sharding, &Wanted::sharding);
    return found == list.end() ? list.emplace_back(sharding) : *found;
  }

  void want(int32_t value, const Sharding &target, bool isBackward) {
    Wanted *wanted = nullptr;
    if (step.values[value].kind == StepValue::Kind::Operand)
      wanted = &in(placed.wanted[step.values[value].number], target);
    else if (values[value].left == target)
      values[value].isReadThere = true;
    else if (step.values[value].kind != StepValue::Kind::Constant)
      wanted = &in(values[value].wanted, target);
    if (wanted)
      (isBackward ? wanted->backward : wanted->forward) = true;
  }

  /// `whole`: what the operator is a part of.
  void inherit(const StepOperator &op, const net::Assignment &whole) {
    if (addTerms(op))
      return;
    Inheritance inheritance(op.facts, devices);
    if (!op.resultFactors.empty())
      inheritance.take(/*isResult=*/true, 0, shardingBy(op.resultFactors, whole));
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (const Sharding *sharding = atHand(op, i))
        inheritance.take(/*isResult=*/false, i, *sharding);
    if (op.gradientOfOperand >= 0)
      inheritance.take(/*isResult=*/true, 0, used[op.gradientOfOperand]);
    place(op, std::move(inheritance).finish());
  }

  void place(const StepOperator &op, const net::Assignment &assignment) {
    Placement at;
    at.operands.reserve(op.operands.size());
    for (size_t i = 0; i < op.operands.size(); ++i) {
      at.operands.push_back(operandSharding(op.facts.rule, assignment, i).canonical());
      want(op.operands[i], at.operands[i], op.isBackward);
    }
    if (!op.parts.empty())
      return placeParts(op, assignment, at);
    for (size_t i = 0; i < op.results.size(); ++i) {
      Value &value = values[op.results[i]];
      value.left = resultSharding(op.facts.rule, assignment, i).canonical();
      value.own = completed(value.left);
      value.isBackward = op.isBackward;
      if (op.exchange) {
        at.partialResults.push_back(value.left);
        at.results.push_back(value.own);
      }
    }
    runs.push_back({&op, std::move(at), 0, 0, op.isBackward});
  }

  void placeParts(const StepOperator &op, const net::Assignment &assignment, const Placement &at) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      Value &value = values[op.brought[i]];
      value.left = value.own = at.operands[i];
      value.isBackward = op.isBackward;
      runs.push_back({nullptr, {{at.operands[i]}, {}, {}}, op.operands[i], op.brought[i], op.isBackward});
    }
    for (const StepOperator &part : op.parts)
      inherit(part, assignment);
  }

  /// Terms that are partial over the same axes are added while partial.
  bool addTerms(const StepOperator &op) {
    if (!op.addsTerms || !op.isBackward)
      return false;
    const Sharding &first = values[op.operands[0]].left;
    bool sums = first.isPartial() &&
                std::ranges::all_of(first.partial, [](const PartialAxis &p) { return p.kind == ReduceKind::Sum; });
    if (!sums || !std::ranges::all_of(op.operands, [&](int32_t term) {
          return step.values[term].kind == StepValue::Kind::Inner && values[term].left == first && values[term].wanted.empty();
        }))
      return false;
    Value &value = values[op.results[0]];
    value.left = first;
    value.own = completed(first);
    value.isBackward = true;
    Placement at{{op.operands.size(), first}, {}, {}};
    if (op.exchange) {
      at.partialResults.push_back(first);
      at.results.push_back(value.own);
    }
    runs.push_back({&op, std::move(at), 0, 0, true});
    return true;
  }

  static Sharding shardingBy(const std::vector<int64_t> &factors, const net::Assignment &assignment) {
    Sharding sharding{.axes = assignment.matrix};
    for (int64_t factor : factors)
      sharding.dims.push_back(factor < 0 ? std::vector<int32_t>() : assignment.factors[factor]);
    return sharding;
  }

  /// How an operand is there; null: in whatever way is asked for.
  const Sharding *atHand(const StepOperator &op, size_t i) const {
    const StepValue &facts = step.values[op.operands[i]];
    if (facts.kind == StepValue::Kind::Constant)
      return nullptr;
    if (facts.kind == StepValue::Kind::Operand)
      return &used[facts.number];
    if (op.isGradient && op.gradientOfResult[i] >= 0)
      return &ownOfResults[op.gradientOfResult[i]];
    return &values[op.operands[i]].own;
  }

  double localUs(const Run &run) const {
    const StepOperator &op = *run.op;
    if (!op.localUs)
      return 0;
    std::vector<Shape> operands, results;
    for (size_t i = 0; i < op.operands.size(); ++i)
      operands.push_back(run.at.operands[i].capacity(op.facts.operandShapes[i]));
    for (size_t i = 0; i < op.results.size(); ++i)
      results.push_back(values[op.results[i]].own.capacity(op.facts.resultShapes[i]));
    const bool isSummed = op.partialUs && values[op.results.front()].left.isPartial();
    return op.localUs(operands, results) + (isSummed ? op.partialUs(operands, results) : 0);
  }

  /// The results of a run with an exchange are those that it asks for.
  template <typename AddExchange> void price(const Run &run, double &computeUs, double &exchangeUs, AddExchange addExchange) const {
    computeUs += localUs(run);
    if (!run.op->exchange)
      return;
    OwnExchange exchange = run.op->exchange(run.at);
    exchangeUs += exchange.us;
    if (!exchange.groupAxes.empty())
      addExchange(std::move(exchange));
  }

  /// Which of the values of the forward operator `msc-reuse-statistics` finds to be statistics.
  std::vector<char> statistics() const {
    ValueNumbers numbers;
    std::vector<int32_t> of = numbers.begin(step.values);
    for (const Run &run : runs)
      if (!run.isBackward)
        numbers.run(traced(run), step.values, of);
    std::vector<char> are;
    for (int32_t number : of)
      are.push_back(number >= 0 && numbers.isStatistic(number));
    return are;
  }

  void markAgain(TracedStep &trace) const {
    trace.isStatistic = statistics();
    std::vector<char> isRead(values.size());
    for (int32_t result : trace.results)
      isRead[result] = 1;
    for (TracedOperator &traced : std::views::reverse(trace.operators)) {
      auto isMade = [&](const TracedOperator::Use &use) { return isRead[use.value] != 0 && trace.isStatistic[use.value] == 0; };
      traced.runsAgain = !traced.isBackward && traced.isThere && std::ranges::any_of(traced.writes, isMade);
      if (traced.runsAgain || (traced.isBackward && traced.isThere))
        for (const TracedOperator::Use &use : traced.reads)
          isRead[use.value] = 1;
    }
  }

  /// Operators that copies of the forward operator run.
  void computeAgain() {
    const std::vector<char> are = statistics();
    auto isStatistic = [&](int32_t value) { return are[value] != 0; };
    std::vector<char> isRead(values.size());
    for (size_t i = 0; i < step.operators.front().results.size(); ++i)
      isRead[step.resultOf(i)] = 1;
    std::vector<const Run *> again;
    for (const Run &run : std::views::reverse(runs)) {
      auto isMade = [&](int32_t value) { return isRead[value] != 0 && !isStatistic(value); };
      if (run.isBackward || !run.isThere || std::ranges::none_of(writesOf(run), isMade))
        continue;
      again.push_back(&run);
      for (size_t i = 0; i < readCount(run); ++i)
        isRead[readOf(run, i)] = 1;
    }
    std::vector<std::vector<Sharding>> wanted(values.size());
    for (const Run *run : std::views::reverse(again)) {
      if (run->op)
        price(*run, placed.again.computeUs, placed.again.exchangeUs,
              [&](OwnExchange exchange) { placed.again.exchanges.push_back(std::move(exchange)); });
      for (size_t i = 0; i < readCount(*run); ++i)
        wantAgain(readOf(*run, i), run->at.operands[i], wanted);
    }
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].isStatistic = isStatistic(static_cast<int32_t>(i)); !wanted[i].empty() && !values[i].isStatistic)
        placed.again.moves.push_back(moveOf(i, std::move(wanted[i])));
  }

  /// `inner`: of each value that is neither an operand nor a result.
  void wantAgain(int32_t value, const Sharding &target, std::vector<std::vector<Sharding>> &inner) {
    const StepValue &facts = step.values[value];
    if (facts.kind == StepValue::Kind::Operand)
      in(placed.wanted[facts.number], target).again = true;
    else if (facts.kind == StepValue::Kind::Constant || values[value].left == target)
      return;
    else if (values[value].isResult)
      in(values[value].wanted, target).again = true;
    else if (std::ranges::find(inner[value], target) == inner[value].end())
      inner[value].push_back(target);
  }

  StepMove moveOf(size_t value, std::vector<Sharding> wanted) const {
    const StepValue &facts = step.values[value];
    const size_t bytes = values[value].left.isPartial() ? facts.partialBytes : facts.elementBytes;
    return {static_cast<int32_t>(value), values[value].isBackward || facts.kind == StepValue::Kind::ResultGradient, values[value].left,
            std::move(wanted), facts.shape, bytes};
  }

  /// How the gradient of an operand is handed on.
  std::optional<Sharding> gradientLeft(int32_t value) const {
    switch (step.values[value].kind) {
    case StepValue::Kind::Constant: return std::nullopt;
    case StepValue::Kind::Operand: return used[step.values[value].number];
    case StepValue::Kind::ResultGradient: return values[value].own;
    case StepValue::Kind::Inner: break;
    }
    const Value &at = values[value];
    return std::ranges::find(at.wanted, at.own, &Wanted::sharding) == at.wanted.end() ? at.left : at.own;
  }

  /// Where the gradient of a result is brought: to the result, unless all who read it want it elsewhere.
  Sharding gradientTarget(size_t result) {
    for (size_t i = 0; i < values.size(); ++i) {
      Value &value = values[i];
      if (step.values[i].kind != StepValue::Kind::ResultGradient || step.values[i].number != static_cast<int32_t>(result) ||
          value.isReadThere || value.wanted.empty())
        continue;
      value.left = value.wanted.front().sharding;
      value.wanted.erase(value.wanted.begin());
      return value.left;
    }
    return ownOfResults[result];
  }

  //===-- passes behind the partitioner -----------------------------------===//

  TracedOperator traced(const Run &run) const {
    if (!run.op)
      return {StepKind::View, false, run.isBackward, TracedOperator::brings, run.isThere, false, {{readOf(run, 0), run.at.operands[0]}}, {{run.brought, run.at.operands[0]}}, nullptr};
    TracedOperator traced{run.op->kind, run.op->isEpilogue, run.isBackward, run.op->computes, run.isThere, false, {}, {}, run.op};
    for (size_t i = 0; i < run.op->operands.size(); ++i)
      traced.reads.push_back({readOf(run, i), run.at.operands[i]});
    for (int32_t result : run.op->results)
      traced.writes.push_back({result, values[result].left});
    return traced;
  }

  size_t readCount(const Run &run) const { return run.op ? run.op->operands.size() : 1; }
  int32_t readOf(const Run &run, size_t i) const { return standIns[run.op ? run.op->operands[i] : run.from]; }
  std::span<const int32_t> writesOf(const Run &run) const {
    return run.op ? std::span<const int32_t>(run.op->results) : std::span(&run.brought, 1);
  }

  /// As `msc-reuse-statistics`. False: there are none.
  bool reuseStatistics() {
    ValueNumbers numbers;
    std::vector<int32_t> of = numbers.begin(step.values);
    std::unordered_map<int32_t, int32_t> firstWith; // value, by number
    bool reuses = false;
    for (Run &run : runs) {
      run.isThere = !numbers.run(traced(run), step.values, of);
      reuses |= !run.isThere;
      for (int32_t value : writesOf(run))
        if (const int32_t first = firstWith.try_emplace(of[value], value).first->second; !run.isThere)
          standIns[value] = first;
    }
    if (reuses)
      dropUnread();
    return reuses;
  }

  /// What only led to statistics that are there already.
  void dropUnread() {
    std::vector<char> isRead(values.size());
    for (int32_t value : valuesOutside())
      isRead[value] = 1;
    for (Run &run : std::views::reverse(runs)) {
      run.isThere = run.isThere && std::ranges::any_of(writesOf(run), [&](int32_t value) { return isRead[value] != 0; });
      for (size_t i = 0; run.isThere && i < readCount(run); ++i)
        isRead[readOf(run, i)] = 1;
    }
  }

  /// What others than the operators of the step may read.
  std::vector<int32_t> valuesOutside() const {
    std::vector<int32_t> outside;
    for (size_t i = 0; i < step.operators.front().results.size(); ++i)
      outside.push_back(step.resultOf(i));
    for (auto [operand, value] : step.gradients)
      outside.push_back(standIns[value]);
    return outside;
  }

  /// As `msc-keep-partials`, of values that only operators of the step read. False: none are kept.
  bool keepPartials() {
    bool keeps = false;
    for (Run &run : runs) {
      if (!run.isThere || !run.op || run.op->results.size() != 1)
        continue;
      bool kept = run.op->addsTerms && addKept(run);
      for (size_t i = 0; i < run.op->operands.size() && !kept; ++i)
        kept = run.op->isLinearIn[i] && applyToTerms(run, i);
      keeps |= kept;
    }
    return keeps;
  }

  /// A sum that is completed for this operand alone.
  bool isCompletedFor(const Run &run, size_t operand) const {
    const int32_t value = readOf(run, operand);
    const Value &of = values[value];
    if (step.values[value].kind != StepValue::Kind::Inner || !of.left.isPartial() || of.own != completed(of.left) ||
        run.at.operands[operand] == of.left)
      return false;
    int64_t readers = std::ranges::count(valuesOutside(), value);
    for (const Run &other : runs)
      for (size_t i = 0; other.isThere && i < readCount(other); ++i)
        readers += readOf(other, i) == value && other.at.operands[i] != of.left;
    auto isSum = [](const PartialAxis &partial) { return partial.kind == ReduceKind::Sum; };
    return readers == 1 && std::ranges::all_of(of.left.partial, isSum);
  }

  Terms termsOf(int32_t value, const Sharding &left) const { return {left, step.values[value].shape, step.values[value].partialBytes}; }

  /// f(AllReduce(a)) = AllReduce(f(a)).
  bool applyToTerms(Run &run, size_t operand) {
    if (!isCompletedFor(run, operand))
      return false;
    const int32_t terms = readOf(run, operand), result = run.op->results[0];
    if (run.at.operands[operand] != values[terms].own || step.values[terms].partialBytes != step.values[terms].elementBytes)
      return false;
    std::vector<Sharding> others;
    for (size_t i = 0; i < run.op->operands.size(); ++i)
      if (i != operand)
        others.push_back(run.at.operands[i]);
    std::optional<Sharding> partial = partialResult(values[result].left, values[terms].left, others);
    if (!partial || !completesSooner(termsOf(result, *partial), termsOf(terms, values[terms].left), planner->machine()))
      return false;
    run.at.operands[operand] = values[terms].left;
    values[result].left = *partial;
    return true;
  }

  /// AllReduce(a) + AllReduce(b) = AllReduce(a + b).
  bool addKept(Run &run) {
    const int32_t first = readOf(run, 0), result = run.op->results[0];
    const Sharding partial = values[first].left, wanted = values[result].left;
    for (size_t i = 0; i < run.op->operands.size(); ++i)
      if (!isCompletedFor(run, i) || values[readOf(run, i)].left != partial || run.at.operands[i] != wanted ||
          step.values[readOf(run, i)].partialBytes != step.values[readOf(run, i)].elementBytes)
        return false;
    if (!addsSooner(termsOf(first, partial), wanted, run.op->operands.size(), *planner))
      return false;
    std::ranges::fill(run.at.operands, partial);
    values[result].left = partial;
    return true;
  }

  /// What is read now.
  void wantAnew() {
    for (Value &value : values) {
      value.wanted.clear();
      value.isReadThere = false;
    }
    for (std::vector<Wanted> &wanted : placed.wanted)
      wanted.clear();
    for (const Run &run : runs)
      for (size_t i = 0; run.isThere && i < readCount(run); ++i)
        want(readOf(run, i), run.at.operands[i], run.isBackward);
  }

  void finish(const StepOperator &forward) {
    for (size_t i = 0; i < forward.results.size(); ++i) {
      Value &value = values[step.resultOf(i)];
      placed.results.push_back({step.resultOf(i), value.left, gradientTarget(i), value.wanted, step.values[step.resultOf(i)].partialBytes,
                                value.isStatistic});
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Value &value = values[i];
      if (value.wanted.empty() || value.isResult)
        continue;
      std::vector<Sharding> wanted;
      std::ranges::transform(value.wanted, std::back_inserter(wanted), &Wanted::sharding);
      placed.moves.push_back(moveOf(i, std::move(wanted)));
    }
    for (auto [operand, value] : step.gradients)
      if (std::optional<Sharding> left = gradientLeft(standIns[value]))
        placed.gradients.push_back({operand, value, *left, left->isPartial() ? step.values[value].partialBytes : step.values[value].elementBytes});
  }
};

} // namespace

PlacedStep placeStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices,
                     dist::ReshardPlanner &planner) {
  return Placing(step, devices, &planner).run(pieces, out);
}

TracedStep traceStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices) {
  return Placing(step, devices, /*planner=*/nullptr).trace(pieces, out);
}

} // namespace msc::passes
