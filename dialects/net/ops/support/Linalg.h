// The shared builders behind `lowerToLinalg`: scalar bodies wrapped in linalg.generic over local tensors.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace msc::net {

/// Maps the elements of the operands to one element per result.
using ScalarBody =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ImplicitLocOpBuilder &, mlir::ValueRange elements)>;

/// One parallel linalg.generic over the shape of the results, which all have one shape. Operands are aligned at the
/// right; dimensions of size 1 are repeated. `maps` overrides the indexing maps of the operands.
llvm::SmallVector<mlir::Value> buildPointwise(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange operands,
                                              mlir::TypeRange resultTypes, ScalarBody body,
                                              llvm::ArrayRef<mlir::AffineMap> maps = {});

/// Combines an accumulator with the element that `ScalarBody` made.
using Combine = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::Value accumulator, mlir::Value)>;

/// Reduces over `dims` of operands of one shape: a linalg.fill with `identity` and one linalg.generic. `resultType`
/// lacks the reduced dimensions or holds them with size 1.
mlir::Value buildReduction(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange operands,
                           mlir::RankedTensorType resultType, llvm::ArrayRef<int64_t> dims, mlir::TypedAttr identity,
                           ScalarBody body, Combine combine);

/// An arith.constant of the type of `like` (float or integer).
mlir::Value number(mlir::ImplicitLocOpBuilder &b, double value, mlir::Type element);
mlir::TypedAttr numberAttr(mlir::Type element, double value);

/// a + b, a - b, a * b for floats and integers.
mlir::Value add(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
mlir::Value sub(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
mlir::Value mul(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
/// x / y for floats.
mlir::Value div(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
/// x > y; false if one is NaN.
mlir::Value greater(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
/// x == y; false if one is NaN.
mlir::Value equal(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
/// The larger of both; NaN if one is NaN.
mlir::Value maximum(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
/// The smaller of both; NaN if one is NaN.
mlir::Value minimum(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value y);
/// 1 / (1 + exp(-x)).
mlir::Value logistic(mlir::ImplicitLocOpBuilder &b, mlir::Value x);

} // namespace msc::net
