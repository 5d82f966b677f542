// How an operator that copies regions runs: on every rank alone, or as an exchange within the group of the axes that cut a
// dimension along which elements move. Plain data, no IR.
#pragma once

#include "dialects/net/ops/support/Regions.h"
#include "runtime/machine/MachineModel.h"

namespace msc::net {

/// What one operand gives to one result.
struct RegionTensor {
  unsigned operand = 0, result = 0;
  CopyEnds ends;
  int64_t received = 0; ///< elements that the busiest rank receives
};

struct RegionExchange {
  std::vector<RegionTensor> tensors; ///< by result, then operand; only pairs that have regions
  std::vector<bool> fills;           ///< of each result, whether some element is written by no region
  std::vector<int64_t> groupMatrix;  ///< the group of a rank, as in dist.collective
  std::vector<int32_t> groupAxes;    ///< none: every rank holds what it needs

  bool communicates() const { return !groupAxes.empty(); }
  int64_t received() const; ///< in all
};

/// Sets the group: axes that cut a moved dimension of some operand, over a matrix that refines those of all operands.
void findExchangeGroup(const std::vector<bool> &moved, const std::vector<Sharding> &operands, RegionExchange &exchange);

/// The shardings are of operands and results under one axis assignment.
RegionExchange regionExchange(const RegionCopy &copy, const std::vector<Sharding> &operands,
                              const std::vector<Sharding> &results);

/// Modelled time of the exchange; 0 if nothing is exchanged.
double exchangeUs(const RegionExchange &exchange, size_t elementBytes, const MachineModel &machine);

} // namespace msc::net
