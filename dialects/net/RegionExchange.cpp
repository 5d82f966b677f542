#include "dialects/net/RegionExchange.h"

#include "runtime/plan/LocalRegions.h"
#include "runtime/plan/Refinement.h"

#include <algorithm>

namespace msc::net {

int64_t RegionExchange::received() const {
  int64_t sum = 0;
  for (const RegionTensor &tensor : tensors)
    sum += tensor.received;
  return sum;
}

void findExchangeGroup(const std::vector<bool> &moved, const std::vector<Sharding> &operands, RegionExchange &exchange) {
  std::vector<int64_t> matrix;
  for (const Sharding &operand : operands)
    if (auto refined = commonRefinement({&matrix, &operand.axes}))
      matrix = *refined;
  std::vector<bool> inGroup(matrix.size(), false);
  for (const Sharding &operand : operands)
    for (size_t dim = 0; dim < moved.size(); ++dim)
      for (int32_t axis : moved[dim] ? refineAxes(operand.axes, operand.dims[dim], matrix) : std::vector<int32_t>())
        inGroup[axis] = true;
  for (size_t axis = 0; axis < inGroup.size(); ++axis)
    if (inGroup[axis])
      exchange.groupAxes.push_back(static_cast<int32_t>(axis));
  exchange.groupMatrix = std::move(matrix);
}

RegionExchange regionExchange(const RegionCopy &copy, const std::vector<Sharding> &operands,
                              const std::vector<Sharding> &results) {
  RegionExchange exchange;
  findExchangeGroup(copy.movedDimensions(), operands, exchange);
  for (unsigned result = 0; result < results.size(); ++result) {
    exchange.fills.push_back(!coverTarget(copy.regions[result], copy.results[result]));
    for (unsigned operand = 0; operand < operands.size(); ++operand) {
      CopyEnds ends{operands[operand], copy.operands[operand], results[result], copy.results[result], {}};
      for (const CopyRegion &region : copy.regions[result])
        if (region.operand == operand)
          ends.regions.push_back({0, region.ranges});
      if (!ends.regions.empty())
        exchange.tensors.push_back({operand, result, std::move(ends)});
    }
  }
  if (exchange.communicates() && std::all_of(exchange.tensors.begin(), exchange.tensors.end(),
                                             [](const RegionTensor &tensor) { return staysOnRanks(tensor.ends); }))
    exchange.groupAxes.clear();
  if (!exchange.communicates())
    return exchange;
  std::vector<CopyEnds> ends;
  for (const RegionTensor &tensor : exchange.tensors)
    ends.push_back(tensor.ends);
  std::vector<int64_t> received = receivedElements(ends);
  for (size_t i = 0; i < received.size(); ++i)
    exchange.tensors[i].received = received[i];
  return exchange;
}

double exchangeUs(const RegionExchange &exchange, size_t elementBytes, const MachineModel &machine) {
  if (!exchange.communicates())
    return 0;
  return machine.moveUs(MoveKind::Exchange, groupShape(exchange.groupMatrix, exchange.groupAxes),
                        static_cast<double>(exchange.received()) * static_cast<double>(elementBytes));
}

} // namespace msc::net
