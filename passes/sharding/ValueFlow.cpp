#include "passes/sharding/Problem.h"

#include <algorithm>
#include <limits>

namespace msc::passes {

TensorUses::TensorUses(const Problem &problem, const std::function<bool(size_t)> &runs)
    : producer(problem.tensors.size(), -1), readers(problem.tensors.size()) {
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    if (!runs(i))
      continue;
    const auto op = static_cast<int32_t>(i);
    for (int32_t tensor : problem.operators[i].results)
      producer[tensor] = op;
    for (int32_t tensor : problem.operators[i].operands)
      if (readers[tensor].empty() || readers[tensor].back() != op)
        readers[tensor].push_back(op);
  }
}

ValueFlow::ValueFlow(const Problem &problem) : before(problem.tensors.size()), behind(problem.tensors.size()) {
  for (const ProblemHandover &handover : problem.handovers) {
    before[handover.to].push_back({handover.from, handover.times, handover.crossesBorder});
    behind[handover.from].push_back({handover.to, handover.times, handover.crossesBorder});
  }
}

std::vector<Handover> ValueFlow::reach(int32_t tensor, const Edges &edges) const {
  std::vector<Handover> found{{tensor, std::numeric_limits<int64_t>::max(), false}};
  for (size_t at = 0; at < found.size(); ++at)
    for (const Handover &next : edges[found[at].tensor])
      if (std::ranges::none_of(found, [&](const Handover &known) { return known.tensor == next.tensor; }))
        found.push_back({next.tensor, std::min(found[at].times, next.times),
                         found[at].crossesBorder || next.crossesBorder});
  return found;
}

} // namespace msc::passes
