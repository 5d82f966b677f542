#include "passes/sharding/Problem.h"

#include <algorithm>
#include <limits>

namespace msc::passes {

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
