// Forward operators whose results are not kept for the backward pass, but computed again there.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace msc::net {

/// True of a forward operator that the user marked `{recompute: true}`, itself or through its cell.
inline bool isRecomputed(mlir::Operation *op) { return op->hasAttr("net.recompute"); }
inline void setRecomputed(mlir::Operation *op) { op->setAttr("net.recompute", mlir::UnitAttr::get(op->getContext())); }

/// True of the copy of a forward operator in the backward pass. Its forward operator is that of `getForwardId`; it is split
/// like that one.
inline bool isCopy(mlir::Operation *op) { return op->hasAttr("net.copy"); }
inline void setCopy(mlir::Operation *op) {
  op->removeAttr("net.recompute");
  op->setAttr("net.copy", mlir::UnitAttr::get(op->getContext()));
}

/// True of operators that make each element by one sum, product, cast or copy: a kernel that reads what they read computes them again in the time that
/// it would take to load what they made.
bool isCheap(mlir::Operation *op);

} // namespace msc::net
