// The order in which contributions to one gradient, or scalars of all gradients, are added.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace msc::passes {

/// An addition of contributions to one gradient: terms that come from other forward operators. `rootOf`: of a term that was moved, what it was.
bool isAccumulation(mlir::Operation *op, llvm::function_ref<mlir::Value(mlir::Value)> rootOf);

/// `first` is an addition of two contributions to a gradient, others may add one more each behind it. Puts those that lie alike,
/// the most of one kind, in front of the others: they are added where they are and moved once. `typeOf`: as which a term is added; null:
/// somebody has moved it. `settled`: additions of such terms, which are not looked at again.
void addAlikeTermsFirst(mlir::Operation *first, llvm::function_ref<mlir::Type(mlir::Value)> typeOf, llvm::DenseSet<mlir::Operation *> &settled);

/// `first` is an addition of two scalars in the update, others may add one more each behind it: the norm of all gradients. Those that
/// lie alike are added first, each kind on its own, so that each is completed once.
void addScalarsByKind(mlir::Operation *first, llvm::function_ref<bool(mlir::Value)> mayStay);

} // namespace msc::passes
