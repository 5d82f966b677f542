// Runs what `lowerToLinalg` builds, element by element: linalg.generic, linalg.fill, tensor.empty and scalar bodies in
// arith and math. For tests of lowerings against the reference.
#pragma once

#include "test/reference/Tensor.h"

#include "dialects/net/NetOps.h"

namespace msc::reference {

/// Lowers the operator for these local operands and result shapes and runs the result. f32 constants and operations are
/// computed in f64. Reports operators that it does not know.
llvm::FailureOr<std::vector<Tensor>> runLowered(mlir::Operation *op, const std::vector<Tensor> &operands,
                                                const std::vector<std::vector<int64_t>> &resultShapes);

} // namespace msc::reference
