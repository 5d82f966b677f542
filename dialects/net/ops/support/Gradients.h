// What gradients and expansions of operators share. All functions build `net` operators on global tensors.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace msc::net {

/// Sums `value` over the dimensions that broadcasting from `target` added or repeated; the result has the shape of
/// `target`.
mlir::Value sumTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type target);

/// A scalar tensor of `like`'s element type.
mlir::Value scalarLike(mlir::OpBuilder &builder, mlir::Location loc, double splat, mlir::Value like);

/// value * factor.
mlir::Value scaled(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, double factor);

/// The value under another shape with as many elements; the value itself if the shape is its own.
mlir::Value reshaped(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// value minus its maximum along `dim`: exponentials of it do not overflow.
mlir::Value shiftedByMaximum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim);

} // namespace msc::net
