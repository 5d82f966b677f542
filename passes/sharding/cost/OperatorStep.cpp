#include "passes/sharding/cost/OperatorStep.h"

#include "passes/partition/Inherit.h"

#include <algorithm>

namespace msc::passes {
namespace {

/// Every operator of a step in order, each under the axes that the partitioner would give it.
class Placing {
public:
  /// `trace`: is told what runs, and nothing is priced; null: prices.
  Placing(const OperatorStep &step, int64_t devices, TracedStep *trace = nullptr)
      : step(step), devices(devices), trace(trace), values(step.values.size()) {
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
      Value &value = values[resultOf(forward, i)];
      if (!out.empty() && completed(value.left) != out[i])
        value.own = out[i];
      ownOfResults.push_back(value.own);
    }
    for (size_t i = 0; i < values.size(); ++i)
      if (step.values[i].kind == StepValue::Kind::ResultGradient)
        values[i].left = values[i].own = ownOfResults[step.values[i].number];
    for (size_t i = 1; i < step.operators.size(); ++i)
      inherit(step.operators[i], own);
    finish(forward);
    if (trace)
      endTrace(forward);
    return std::move(placed);
  }

private:
  struct Value {
    Sharding left, own;
    std::vector<Sharding> wanted;
    bool isBackward = false;
    bool isResult = false;  ///< of the forward operator: who wants it is told, not priced
    bool isReadThere = false; ///< somebody reads it as it was left
  };

  const OperatorStep &step;
  int64_t devices;
  TracedStep *trace;
  std::vector<Value> values;
  net::Assignment own;              ///< of the forward operator
  std::vector<Sharding> used;       ///< of its operands
  std::vector<Sharding> ownOfResults;
  PlacedStep placed;

  static void add(std::vector<Sharding> &list, const Sharding &sharding) {
    if (std::ranges::find(list, sharding) == list.end())
      list.push_back(sharding);
  }

  static int32_t resultOf(const StepOperator &op, size_t i) {
    return op.parts.empty() ? op.results[i] : op.standIns[i];
  }

  void want(int32_t value, const Sharding &target) {
    if (step.values[value].kind == StepValue::Kind::Operand)
      add(placed.wanted[step.values[value].number], target);
    else if (values[value].left == target)
      values[value].isReadThere = true;
    else if (step.values[value].kind != StepValue::Kind::Constant)
      add(values[value].wanted, target);
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
      want(op.operands[i], at.operands[i]);
    }
    if (!op.parts.empty())
      return placeParts(op, assignment, at);
    TracedOperator traced{op.kind, op.isEpilogue, op.isBackward, {}, {}};
    for (size_t i = 0; trace && i < op.operands.size(); ++i)
      traced.reads.push_back({op.operands[i], at.operands[i]});
    for (size_t i = 0; i < op.results.size(); ++i) {
      Value &value = values[op.results[i]];
      value.left = resultSharding(op.facts.rule, assignment, i).canonical();
      value.own = completed(value.left);
      value.isBackward = op.isBackward;
      if (op.exchange) {
        at.partialResults.push_back(value.left);
        at.results.push_back(value.own);
      }
      if (trace)
        traced.writes.push_back({op.results[i], value.left});
    }
    if (trace)
      trace->operators.push_back(std::move(traced));
    price(op, at);
  }

  void placeParts(const StepOperator &op, const net::Assignment &assignment, const Placement &at) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      Value &value = values[op.brought[i]];
      value.left = value.own = at.operands[i];
      value.isBackward = op.isBackward;
      if (trace)
        trace->operators.push_back({StepKind::View, false, op.isBackward, {{op.operands[i], at.operands[i]}}, {{op.brought[i], at.operands[i]}}});
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
    if (trace) {
      TracedOperator &traced = trace->operators.emplace_back(TracedOperator{op.kind, op.isEpilogue, true, {}, {{op.results[0], first}}});
      for (int32_t term : op.operands)
        traced.reads.push_back({term, first});
    }
    Placement at{{op.operands.size(), first}, {}, {}};
    if (op.exchange) {
      at.partialResults.push_back(first);
      at.results.push_back(value.own);
    }
    price(op, at);
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

  /// The results in `at` are those that an exchange asks for.
  void price(const StepOperator &op, const Placement &at) {
    if (trace)
      return;
    if (op.localUs) {
      std::vector<Shape> operands, results;
      for (size_t i = 0; i < op.operands.size(); ++i)
        operands.push_back(at.operands[i].capacity(op.facts.operandShapes[i]));
      for (size_t i = 0; i < op.results.size(); ++i)
        results.push_back(values[op.results[i]].own.capacity(op.facts.resultShapes[i]));
      placed.computeUs += op.localUs(operands, results);
    }
    if (!op.exchange)
      return;
    OwnExchange exchange = op.exchange(at);
    placed.exchangeUs += exchange.us;
    if (!exchange.groupAxes.empty())
      placed.exchanges.emplace_back(op.isBackward, std::move(exchange));
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
    return std::ranges::find(at.wanted, at.own) == at.wanted.end() ? at.left : at.own;
  }

  /// Where the gradient of a result is brought: to the result, unless all who read it want it elsewhere.
  Sharding gradientTarget(size_t result) {
    for (size_t i = 0; i < values.size(); ++i) {
      Value &value = values[i];
      if (step.values[i].kind != StepValue::Kind::ResultGradient || step.values[i].number != static_cast<int32_t>(result) ||
          value.isReadThere || value.wanted.empty())
        continue;
      value.left = value.wanted.front();
      value.wanted.erase(value.wanted.begin());
      return value.left;
    }
    return ownOfResults[result];
  }

  void endTrace(const StepOperator &forward) {
    for (size_t i = 0; i < forward.results.size(); ++i)
      trace->results.push_back(resultOf(forward, i));
    for (const Value &value : values)
      trace->own.push_back(value.own);
  }

  void finish(const StepOperator &forward) {
    for (size_t i = 0; i < forward.results.size(); ++i) {
      Value &value = values[resultOf(forward, i)];
      value.isResult = true;
      placed.results.push_back({value.left, gradientTarget(i), value.wanted, step.values[resultOf(forward, i)].partialBytes});
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Value &value = values[i];
      if (value.wanted.empty() || value.isResult)
        continue;
      const StepValue &facts = step.values[i];
      size_t bytes = value.left.isPartial() ? facts.partialBytes : facts.elementBytes;
      placed.moves.push_back({value.isBackward || facts.kind == StepValue::Kind::ResultGradient, value.left, value.wanted,
                              facts.shape, bytes});
    }
    for (auto [operand, value] : step.gradients)
      if (std::optional<Sharding> left = gradientLeft(value))
        placed.gradients.push_back({operand, *left, step.values[value].partialBytes});
  }
};

} // namespace

PlacedStep placeStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices) {
  return Placing(step, devices).run(pieces, out);
}

TracedStep traceStep(const OperatorStep &step, const Pieces &pieces, const std::vector<Sharding> &out, int64_t devices) {
  TracedStep trace;
  trace.placed = Placing(step, devices, &trace).run(pieces, out);
  return trace;
}

} // namespace msc::passes
