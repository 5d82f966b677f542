// Operators that may compute with the terms of a sum instead of the sum.
#pragma once

#include "mlir/IR/Operation.h"

namespace msc::passes {

/// True if the operator's result, applied to the terms of a sum in this operand (all other operands whole), is the terms of
/// its result.
bool isLinearIn(mlir::Operation *op, unsigned operand);

/// True for operators that may add partial values without completing them: the sum of partial sums is the partial sum.
bool addsPartials(mlir::Operation *op);

} // namespace msc::passes
