#include "passes/optimize/Passes.h"

#include "passes/partition/MoveSteps.h"

#include <map>

using namespace mlir;

namespace msc::passes {

Communication communicationOf(net::NetworkOp network) {
  const MachineModel &machine = dist::machineOf(network);
  Communication sum;
  std::map<int64_t, SmallVector<Operation *>> together;
  for (Operation &op : network.getBody().front()) {
    if (!isMoveStep(&op))
      continue;
    if (auto collective = dyn_cast<dist::CollectiveOp>(op))
      sum.bytes += dist::receivedBytes(collective);
    if (std::optional<int64_t> fusion = dist::fusionOf(&op))
      together[*fusion].push_back(&op);
    else
      sum.us += dist::stepUs(&op, machine);
  }
  for (const auto &[number, ops] : together)
    sum.us += dist::stepsUs(ops, machine);
  return sum;
}

} // namespace msc::passes
