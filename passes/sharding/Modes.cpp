// The parallel modes that need no search.
#include "passes/sharding/Problem.h"

#include <numeric>

namespace msc::passes {

Sharding completed(const Sharding &sharding) {
  Sharding whole = sharding;
  whole.partial.clear();
  return std::move(whole).canonical();
}

Placement placementOf(const OperatorFacts &facts, const Pieces &pieces, int64_t devices) {
  net::Assignment assignment = assignmentOf(facts.rule, pieces, devices);
  Placement placement;
  for (size_t i = 0; i < facts.rule.operands.size(); ++i)
    placement.operands.push_back(operandSharding(facts.rule, assignment, i).canonical());
  for (size_t i = 0; i < facts.rule.results.size(); ++i) {
    placement.partialResults.push_back(resultSharding(facts.rule, assignment, i).canonical());
    placement.results.push_back(completed(placement.partialResults.back()));
  }
  return placement;
}

Placement placementOf(const ProblemOperator &op, const Pieces &pieces, int64_t devices) {
  Placement placement = placementOf(op.facts, pieces, devices);
  if (std::vector<Sharding> out = outOf(op, pieces, devices); !out.empty())
    placement.results = std::move(out);
  return placement;
}

static Pieces allWhole(const ProblemOperator &op) {
  return Pieces(op.facts.rule.factors.size(), 1);
}

Choices standAlone(const Problem &problem, const std::string &origin) {
  Choices choices;
  for (const ProblemOperator &op : problem.operators)
    choices.push_back({allWhole(op), origin});
  return choices;
}

/// Cuts one factor into all devices: the one behind the first dimension of an operand that arrives cut. Where the batch
/// is smaller than the number of devices some ranks have no rows.
static Pieces followOperands(const ProblemOperator &op, const ValueFlow &flow,
                             const std::vector<std::optional<Sharding>> &arrives, int64_t devices) {
  for (size_t i = 0; i < op.operands.size(); ++i)
    for (const Handover &source : flow.sourcesOf(op.operands[i])) {
      const std::optional<Sharding> &sharding = arrives[source.tensor];
      if (!sharding)
        continue;
      for (size_t dim = 0; dim < sharding->dims.size(); ++dim)
        for (int32_t factor : op.facts.rule.operands[i][dim]) {
          Pieces pieces = allWhole(op);
          pieces[factor] = sharding->pieces(dim);
          if (pieces[factor] == devices && piecesPass(op.facts, pieces, /*mayBeEmpty=*/true))
            return pieces;
        }
    }
  return allWhole(op);
}

Choices dataParallel(const Problem &problem) {
  std::vector<std::optional<Sharding>> arrives; // parameters stay without: they are whole and ask for nothing
  for (const ProblemTensor &tensor : problem.tensors)
    arrives.push_back(tensor.dataset);
  ValueFlow flow(problem);
  Choices choices(problem.operators.size());
  // What later rounds carry is known when the first one is done.
  for (int pass = 0; pass < (problem.handovers.empty() ? 1 : 2); ++pass)
    for (size_t at = 0; at < choices.size(); ++at) {
      const ProblemOperator &op = problem.operators[at];
      choices[at] = {followOperands(op, flow, arrives, problem.devices), "data_parallel"};
      Placement placement = placementOf(op, choices[at].pieces, problem.devices);
      for (size_t i = 0; i < op.results.size(); ++i)
        arrives[op.results[i]] = placement.results[i];
    }
  return choices;
}

Choices semiAuto(const Problem &problem) {
  Choices choices;
  for (const ProblemOperator &op : problem.operators) {
    if (op.configured) {
      choices.push_back({*op.configured, "user"});
      continue;
    }
    const bool hasRows = !op.operands.empty() && !op.facts.operandShapes[0].empty() && op.facts.rule.operands[0][0].size() == 1;
    const int64_t rows = hasRows ? op.facts.operandShapes[0][0] : 0;
    const int32_t factor = hasRows ? op.facts.rule.operands[0][0][0] : 0;
    if (!op.among.empty()) { // a sharding leaves the rest open
      auto rowsCut = [&](const Pieces &pieces) { return hasRows && rows % pieces[factor] == 0 ? pieces[factor] : 0; };
      choices.push_back({*std::ranges::max_element(op.among, {}, rowsCut), "user"});
      continue;
    }
    Pieces pieces = allWhole(op);
    if (hasRows) {
      pieces[factor] = std::gcd(problem.devices, std::max<int64_t>(rows, 1));
      if (!piecesPass(op.facts, pieces))
        pieces = allWhole(op);
    }
    choices.push_back({pieces, "semi_auto default"});
  }
  return choices;
}

} // namespace msc::passes
