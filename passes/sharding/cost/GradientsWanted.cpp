#include "passes/sharding/cost/GradientsWanted.h"

#include <algorithm>

namespace msc::passes {
namespace {

/// From one round to the next.
bool isCarried(const ProblemHandover &handover) { return !handover.crossesBorder; }

/// Marks of tensors, brought along operators and what repeats hand on until nothing changes.
class Marks {
public:
  explicit Marks(const Problem &problem) : problem(&problem), marks(problem.tensors.size()) {}

  void mark(int32_t tensor) { marks[tensor] = true; }
  bool operator[](int32_t tensor) const { return marks[tensor]; }

  void forward(bool carries = true) {
    do {
      changed = false;
      forwardOnce(carries);
    } while (changed);
  }
  void backward() {
    do {
      changed = false;
      backwardOnce();
    } while (changed);
  }

private:
  const Problem *problem;
  std::vector<bool> marks; ///< of each tensor
  bool changed = false;

  void set(int32_t tensor) {
    changed |= !marks[tensor];
    marks[tensor] = true;
  }
  bool any(const std::vector<int32_t> &tensors) const {
    return std::ranges::any_of(tensors, [&](int32_t t) { return marks[t]; });
  }

  void forwardOnce(bool carries) {
    for (const ProblemOperator &op : problem->operators)
      if (any(op.operands))
        for (int32_t result : op.results)
          if (problem->tensors[result].isFloat)
            set(result);
    for (const ProblemHandover &handover : problem->handovers)
      if (marks[handover.from] && (carries || !isCarried(handover)))
        set(handover.to);
  }
  void backwardOnce() {
    for (const ProblemHandover &handover : problem->handovers)
      if (marks[handover.to])
        set(handover.from);
    for (size_t i = problem->operators.size(); i-- > 0;)
      if (any(problem->operators[i].results))
        for (int32_t operand : problem->operators[i].operands)
          set(operand);
  }
};

/// What depends on a trained parameter.
Marks activeIn(const Problem &problem) {
  Marks active(problem);
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    if (problem.tensors[t].isTrained)
      active.mark(static_cast<int32_t>(t));
  active.forward();
  return active;
}

} // namespace

std::vector<GradientsWanted> gradientsWanted(const Problem &problem) {
  Marks active(problem), needed(problem), returned(problem);
  for (int32_t result : problem.results)
    returned.mark(result);
  returned.backward();
  if (problem.loss >= 0) {
    active = activeIn(problem);
    needed.mark(problem.loss);
    needed.backward();
  }
  std::vector<GradientsWanted> wanted;
  for (const ProblemOperator &op : problem.operators) {
    GradientsWanted &of = wanted.emplace_back();
    of.trains = problem.loss >= 0;
    of.runs = std::ranges::any_of(op.results, [&](int32_t result) { return returned[result]; });
    for (int32_t operand : op.operands)
      of.ofOperands.push_back(active[operand] && needed[operand]);
    for (int32_t result : op.results)
      of.ofResults.push_back(active[result] && needed[result]);
  }
  return wanted;
}

std::vector<GradientsWanted> wantedInFirstRound(const Problem &problem, std::vector<GradientsWanted> wanted) {
  if (problem.loss < 0 || problem.repeats.empty())
    return wanted;
  const Marks always = activeIn(problem);
  std::vector<bool> isArgument(problem.tensors.size());
  for (const ProblemHandover &handover : problem.handovers)
    if (isCarried(handover))
      isArgument[handover.to] = true;
  Marks active(problem);
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    if (problem.tensors[t].isTrained)
      active.mark(static_cast<int32_t>(t));
  for (const ProblemHandover &handover : problem.handovers) // out of a last round
    if (!isArgument[handover.to] && always[handover.to])
      active.mark(handover.to);
  active.forward(/*carries=*/false);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ProblemOperator &op = problem.operators[i];
    if (op.repeats.size() != 1)
      continue;
    for (size_t operand = 0; operand < op.operands.size(); ++operand)
      wanted[i].ofOperands[operand] = wanted[i].ofOperands[operand] && active[op.operands[operand]];
    for (size_t result = 0; result < op.results.size(); ++result)
      wanted[i].ofResults[result] = wanted[i].ofResults[result] && active[op.results[result]];
  }
  return wanted;
}

/// Tensors to which a gradient of the loss flows.
static std::vector<bool> reached(const Problem &problem, const std::vector<std::vector<int32_t>> &given) {
  std::vector<bool> flows(problem.tensors.size());
  if (problem.loss >= 0)
    flows[problem.loss] = true;
  for (bool changed = true; changed;) {
    changed = false;
    auto set = [&](int32_t tensor) {
      changed |= !flows[tensor];
      flows[tensor] = true;
    };
    for (const ProblemHandover &handover : problem.handovers)
      if (flows[handover.to])
        set(handover.from);
    for (size_t i = problem.operators.size(); i-- > 0;)
      if (std::ranges::any_of(problem.operators[i].results, [&](int32_t r) { return flows[r]; }))
        for (int32_t operand : given[i])
          set(problem.operators[i].operands[operand]);
  }
  return flows;
}

/// Tensors whose gradients flow on to a trained parameter.
static std::vector<bool> useful(const Problem &problem, const std::vector<std::vector<int32_t>> &given) {
  std::vector<bool> flows(problem.tensors.size());
  for (size_t t = 0; t < flows.size(); ++t)
    flows[t] = problem.tensors[t].isTrained;
  for (bool changed = true; changed;) {
    changed = false;
    auto set = [&](int32_t tensor) {
      changed |= !flows[tensor];
      flows[tensor] = true;
    };
    for (size_t i = 0; i < problem.operators.size(); ++i)
      if (std::ranges::any_of(given[i], [&](int32_t operand) { return flows[problem.operators[i].operands[operand]]; }))
        for (int32_t result : problem.operators[i].results)
          set(result);
    for (const ProblemHandover &handover : problem.handovers)
      if (flows[handover.from])
        set(handover.to);
  }
  return flows;
}

bool dropZeroGradients(const Problem &problem, const std::vector<std::vector<int32_t>> &given,
                       std::vector<GradientsWanted> &wanted) {
  std::vector<bool> arrives = reached(problem, given), matters = useful(problem, given);
  bool dropped = false;
  auto drop = [&](std::vector<bool> &list, const std::vector<int32_t> &tensors, const std::vector<bool> &flows) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i] && !flows[tensors[i]]) {
        list[i] = false;
        dropped = true;
      }
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    drop(wanted[i].ofResults, problem.operators[i].results, arrives);
    drop(wanted[i].ofOperands, problem.operators[i].operands, matters);
  }
  return dropped;
}

} // namespace msc::passes
