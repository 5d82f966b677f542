// What ranks gather of the operands of an operator whose windows reach over the boundaries of pieces. Plain data, no IR.
//
// The windows of all ranks, one behind the other along every dimension where some rank lacks something, are a tensor of their
// own: as large a window for every rank as the largest, so that the operand's sharding cuts it between windows. A rank's
// window begins with the first index that it needs; a shorter one ends in zeros, which nobody reads.
#pragma once

#include "dialects/net/RegionExchange.h"

namespace msc::net {

/// The windows of one operand.
struct HaloWindows {
  unsigned operand = 0;
  Sharding sharding;                ///< of the operand, and of the tensor of its windows
  std::vector<int64_t> shape;       ///< of the operand
  std::vector<int64_t> windowShape; ///< of the tensor of all windows
  std::vector<int64_t> windowed;    ///< per dimension: its size where windows are made, else 0
  std::vector<std::vector<Range>> needs; ///< [dimension][piece]: what ranks need, empty ranges among them; of all dimensions
                                         ///< that carry a factor with halo, else nothing

  /// One region per window.
  CopyRegions regions() const;
  /// Some window is shorter than the largest.
  bool fills() const;
  bool operator==(const HaloWindows &) const = default;
};

/// Of an operator with HaloInterface: the operands of which some rank needs more than it has. `rule` is the operator's.
std::vector<HaloWindows> halosOf(mlir::Operation *op, const ShardingRule &rule, const std::vector<Sharding> &operands);
std::vector<HaloWindows> halosOf(mlir::Operation *op, const std::vector<Sharding> &operands);

/// The exchange that fills the windows; tensor i is that of windows[i], without its regions.
RegionExchange haloExchange(llvm::ArrayRef<HaloWindows> windows);

} // namespace msc::net
