// From a partitioned network to units of execution in order.
//
// A unit is what becomes one step: a cluster of fused operators, a library call with its epilogue, a collective, a local slice, a view, a
// constant; or one operator that copies regions, in an exchange or in one step per result. Units are formed greedily: an operator joins the
// cluster of a producer, first the one of which it reads most bytes, if the kernel compiler can make one kernel of both and no path leads
// from the cluster through another unit back to the operator. A reduction in the backward pass that can join none may get copies of the operators that
// make what it sums; those that nobody reads then are erased.
#pragma once

#include "dialects/net/Network.h"
#include "runtime/machine/MachineModel.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <string>
#include <vector>

namespace msc::passes {

/// Operators that become one step of the plan.
struct Unit {
  /// Windowed: a cast that is not made, see isReadInWindows.
  enum class Kind { Cluster, MatMul, Call, View, Collective, Slice, Regions, Constant, Windowed };
  Kind kind = Kind::Cluster;
  /// In program order. MatMul: the product, then the epilogue (a bias, an activation), with casts around each where the product is narrow.
  llvm::SmallVector<mlir::Operation *> ops;

  /// Values from outside that the unit reads, in order of first use.
  llvm::SmallVector<mlir::Value> inputs() const;
  /// Results that somebody outside the unit uses.
  llvm::SmallVector<mlir::Value> outputs() const;
  /// What the unit reads for an operand of one of its operators that it casts for itself; else the operand.
  mlir::Value stored(mlir::Value operand) const;
  /// "Mul_Add_ReLU": the operators, at most four named, without the casts of a product.
  std::string name() const;
};

/// How far units grow.
struct UnitOptions {
  bool fusion = true;
  /// Largest number of operators in one cluster; more than about 20 live vectors spill.
  unsigned maxOperators = 24;
  /// Casts of narrow types to f32 that one fused operator reads are part of its cluster: what is stored is the narrow value.
  bool castsFollowReaders = false;
  /// A narrow product and its bias are one step from so many bytes on: an H200 reads and writes them in about the time of a launch.
  int64_t leastBytesOfNarrowSums = int64_t{4} << 20;
};

/// Units of the network's body in an order that respects data flow and lets every parameter be updated in place after
/// its last reader. `fits` says whether the operators can be one kernel; it is asked for growing candidates.
std::vector<Unit> formUnits(net::NetworkOp network, const UnitOptions &options,
                            llvm::function_ref<bool(const Unit &)> fits);

/// Bytes of a tensor on the rank that has most of it.
int64_t capacityBytes(mlir::Type tensor);

/// Work of an operator that has a cost, on the rank with the largest shards.
net::OperatorCost costOf(mlir::Operation *op);

/// Modelled time of an operator on the rank with the largest shards; 0 for one that computes nothing.
double operatorUs(mlir::Operation *op, const MachineModel &machine);

/// The net.update that writes `value` back into a parameter, if there is one.
net::UpdateOp updateOf(mlir::Value value);

} // namespace msc::passes
