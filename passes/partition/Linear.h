// Operators that may compute with the terms of a sum instead of the sum.
#pragma once

#include "runtime/plan/Sharding.h"

#include "mlir/IR/Operation.h"

#include <optional>
#include <vector>

namespace msc::passes {

/// True if the operator's result, applied to the terms of a sum in this operand (all other operands whole), is the terms of
/// its result.
bool isLinearIn(mlir::Operation *op, unsigned operand);

/// True for operators that may add partial values without completing them: the sum of partial sums is the partial sum.
bool addsPartials(mlir::Operation *op);

/// `result`, partial by sum over the axes over which `operand` is: what a linear operator makes of terms. Nothing if the result is
/// partial itself, or if an axis cuts the result or another operand: then the terms do not belong to the same piece.
std::optional<Sharding> partialResult(const Sharding &result, const Sharding &operand, const std::vector<Sharding> &others);

} // namespace msc::passes
