// Operators in whose place others stand after the partition.
#pragma once

#include "mlir/IR/Operation.h"

namespace msc::passes {

/// What reports say of an operator that is not there any more: its names, types, strategies and place. `operands` are those that it had.
mlir::DictionaryAttr recordOf(mlir::Operation *op, mlir::ValueRange operands);

} // namespace msc::passes
