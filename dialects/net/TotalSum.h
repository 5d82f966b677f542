// Sums of all elements of large tensors.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace msc::net {

/// Dimensions that are summed first where a sum or mean runs over all of a tensor: a kernel of one sum is one task, those of rows are
/// many. None where the tensor is small, or has one dimension with more than one element.
llvm::SmallVector<int64_t> innerDimensions(mlir::Value value);

} // namespace msc::net
