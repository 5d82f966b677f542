// What is known of a network while it is solved.
#pragma once

#include "passes/sharding/search/Elimination.h"

namespace msc::search {

/// The best assignment that was found, and what was spent. Keeps references.
class Progress {
public:
  Progress(Workspace &workspace, const CostNetwork &network, const SolveLimits &limits) : workspace(workspace), network(network), limits(limits) {
    solution.cost = infinity;
  }

  Workspace &workspace;
  const CostNetwork &network;
  const SolveLimits &limits;
  Solution solution;
  std::vector<int32_t> crowded; ///< variables in tables that are too large, those of most first

  int64_t operationsLeft() const { return limits.operations - solution.operations; }
  /// In numbers of the network's options. `isExact`: nothing near it is cheaper.
  void offer(Choice choice, bool isExact);
  /// Of a network with some of the options; what it stands for is offered.
  Elimination eliminated(const Lowered &part, EliminationLimits most, std::function<bool(double)> givesUp = nullptr);
};

} // namespace msc::search
