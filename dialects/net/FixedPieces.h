// Operators of which a user fixed how some factors are cut, and left the others open: a sharding with `auto`, or of a parameter
// alone, speaks of some factors.
#pragma once

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::net {

/// Pieces of each factor of the operator's rule, 0 where it is open; empty: nothing is fixed, or all is (getInStrategy).
std::vector<int64_t> getFixedPieces(mlir::Operation *op);
/// Where the sharding stands that fixes them, "net.mir:5"; empty: nowhere.
std::string getFixedPlace(mlir::Operation *op);
void setFixedPieces(mlir::Operation *op, llvm::ArrayRef<int64_t> pieces, llvm::StringRef place);

} // namespace msc::net
