#include "passes/sharding/cost/StatisticsOfStep.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

namespace msc::passes {

/// Goes over all operators forward, and over their gradients backward.
class StatisticsOfStep::Numbering {
public:
  Numbering(const Problem &problem, const StepModel &model, const Choices &choices, Rounds rounds, std::vector<Body> &bodies)
      : problem(problem), model(model), choices(choices), rounds(rounds), bodies(bodies), instances(problem.operators.size()),
        traces(problem.operators.size()), contributions(problem.tensors.size()), isHandedOn(problem.tensors.size()) {}

  std::vector<Instance> run() {
    for (const ProblemHandover &handover : problem.handovers)
      isHandedOn[handover.from] = isHandedOn[handover.to] = 1;
    if (problem.loss >= 0)
      isHandedOn[problem.loss] = 1; // its gradient is given
    for (size_t i = 0; i < instances.size(); ++i)
      if (model.runs(i))
        runForward(i);
    for (size_t i = instances.size(); i-- > 0;)
      if (model.runs(i))
        runBackward(i);
    return std::move(instances);
  }

private:
  const Problem &problem;
  const StepModel &model;
  const Choices &choices;
  Rounds rounds;
  std::vector<Body> &bodies;
  std::vector<Instance> instances;
  std::vector<std::shared_ptr<const TracedStep>> traces; ///< of each operator
  std::map<std::tuple<const OperatorStep *, Pieces, std::vector<Pieces>>, std::shared_ptr<const TracedStep>> known; ///< what is alike, once
  std::map<std::vector<int32_t>, size_t> bodyOf; ///< by the repeats
  std::vector<int64_t> contributions;            ///< to the gradient of each tensor
  std::vector<char> isHandedOn;                  ///< other gradients come from elsewhere

  const OperatorStep &stepOf(size_t op) const { return model.step(op, choices[op].pieces, rounds); }

  void runForward(size_t op) {
    const ProblemOperator &of = problem.operators[op];
    const OperatorStep &step = stepOf(op);
    const auto [at, isNew] = bodyOf.try_emplace(of.repeats, bodies.size());
    if (isNew)
      bodies.emplace_back(problem.tensors.size());
    Body &body = bodies[at->second];
    instances[op] = {at->second, body.numbers.begin(step.values)};
    for (size_t v = 0; v < step.values.size(); ++v)
      if (step.values[v].kind == StepValue::Kind::Operand) {
        int32_t &number = body.tensors[of.operands[step.values[v].number]];
        instances[op].numbers[v] = number = number < 0 ? body.numbers.add() : number;
      }
    const Pieces &pieces = choices[op].pieces;
    std::shared_ptr<const TracedStep> &trace = known[{&step, pieces, of.wantedOut}];
    if (!trace)
      trace = std::make_shared<TracedStep>(traceStep(step, pieces, outOf(of, pieces, problem.devices), problem.devices));
    traces[op] = trace;
    runOperators(op, /*isBackward=*/false);
    for (size_t r = 0; r < of.results.size(); ++r)
      body.tensors[of.results[r]] = instances[op].numbers[trace->results[r]];
  }

  void runBackward(size_t op) {
    const ProblemOperator &of = problem.operators[op];
    const OperatorStep &step = stepOf(op);
    Body &body = bodies[instances[op].body];
    for (size_t v = 0; v < step.values.size(); ++v)
      if (step.values[v].kind == StepValue::Kind::ResultGradient) {
        const int32_t tensor = of.results[step.values[v].number];
        if (contributions[tensor] == 1 && !isHandedOn[tensor] && body.gradients[tensor] >= 0)
          instances[op].numbers[v] = body.gradients[tensor];
      }
    runOperators(op, /*isBackward=*/true);
    for (auto [operand, value] : step.gradients) {
      ++contributions[of.operands[operand]];
      body.gradients[of.operands[operand]] = instances[op].numbers[value];
    }
  }

  void runOperators(size_t op, bool isBackward) {
    for (const TracedOperator &traced : traces[op]->operators)
      if (traced.isBackward == isBackward)
        bodies[instances[op].body].numbers.run(traced, stepOf(op).values, instances[op].numbers);
  }
};

StatisticsOfStep::StatisticsOfStep(const Problem &problem, const StepModel &model, const Choices &choices) {
  all = Numbering(problem, model, choices, Rounds::All, bodies).run();
  bool hasFirst = false;
  for (size_t i = 0; i < problem.operators.size(); ++i)
    hasFirst |= model.hasOwnFirstRound(i);
  if (hasFirst)
    first = Numbering(problem, model, choices, Rounds::First, bodies).run();
}

int64_t StatisticsOfStep::numberOf(size_t op, Rounds rounds, int32_t value) const {
  const Instance &at = rounds == Rounds::First && !first.empty() ? first[op] : all[op];
  const int32_t number = at.numbers[value];
  if (number < 0 || !bodies[at.body].numbers.isStatistic(number))
    return none;
  return static_cast<int64_t>(number) * static_cast<int64_t>(bodies.size()) + static_cast<int64_t>(at.body);
}

} // namespace msc::passes
