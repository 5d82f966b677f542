// What gradients and expansions of operators share. All functions build `net` operators on global tensors.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallBitVector.h"

namespace msc::net {

/// Sums `value` over the dimensions that broadcasting from `target` added or repeated; the result has the shape of
/// `target`.
mlir::Value sumTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type target);

/// Gives operand `i`, if its gradient is wanted, the one that `make` builds, summed over what broadcasting repeated.
void giveSummed(mlir::OpBuilder &builder, mlir::Operation *op, const llvm::SmallBitVector &wanted,
                llvm::MutableArrayRef<mlir::Value> gradients, unsigned i, llvm::function_ref<mlir::Value()> make);

/// Gradients of an operator that is `Expanded`: those of its parts, which are computed again. What is computed again and
/// not needed is dead. For operators whose parts cost little.
llvm::LogicalResult expansionGradient(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange resultGradients,
                                      const llvm::SmallBitVector &wanted,
                                      llvm::MutableArrayRef<mlir::Value> gradients);

/// A scalar tensor of `like`'s element type.
mlir::Value scalarLike(mlir::OpBuilder &builder, mlir::Location loc, double splat, mlir::Value like);

/// value * factor.
mlir::Value scaled(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, double factor);

/// The value under another shape with as many elements; the value itself if the shape is its own.
mlir::Value reshaped(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// value minus its maximum along `dim`: exponentials of it do not overflow.
mlir::Value shiftedByMaximum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim);

} // namespace msc::net
