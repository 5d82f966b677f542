// The order in which contributions to one gradient are added.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace msc::passes {

/// `first` is an addition of two contributions to a gradient, others may add one more each behind it. Puts those that lie alike,
/// the most of one kind, in front of the others: they are added where they are and moved once. `mayStay`: nobody has moved it yet.
void addAlikeTermsFirst(mlir::Operation *first, llvm::function_ref<bool(mlir::Value)> mayStay);

} // namespace msc::passes
