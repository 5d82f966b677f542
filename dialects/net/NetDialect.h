// The net dialect: networks on global tensors. Operators are in NetOps.h.
#pragma once

#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectRegistry.h"

#include "dialects/net/NetDialect.h.inc"

namespace msc::net {

/// Makes the net dialect known, with the dialects that its operators lower to.
void registerNetDialect(mlir::DialectRegistry &registry);

} // namespace msc::net
