// From a cluster of operators to the function that the kernel compiler takes, for the local sizes of one rank.
#pragma once

#include "passes/plan/Units.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace msc::passes {

/// What the pointers of a cluster's kernel are.
struct ClusterSignature {
  llvm::SmallVector<mlir::Value> inputs;  ///< read; in order of the function's arguments
  llvm::SmallVector<mlir::Value> outputs; ///< written; in order of the function's results
  /// For each output the input whose memory it takes over, or -1.
  llvm::SmallVector<int64_t> inPlaceOf;

  /// The kernel's pointers: all inputs, then the outputs with memory of their own.
  llvm::SmallVector<mlir::Value> pointers() const;
};

ClusterSignature signatureOf(const Unit &cluster);

/// The rank's own part of a tensor, without encoding.
mlir::RankedTensorType localType(mlir::Type type, int64_t rank);

/// A function of linalg operators on rank `rank`'s local tensors, in `module`. An argument whose memory takes a result
/// carries `msc.in_place = <result>`. Fails with a diagnostic if an operator cannot be lowered.
mlir::FailureOr<mlir::func::FuncOp> buildClusterFunction(mlir::ModuleOp module, const Unit &cluster,
                                                         const ClusterSignature &signature, int64_t rank);

} // namespace msc::passes
