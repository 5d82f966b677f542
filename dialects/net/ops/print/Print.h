// The operator Print, and the results of a network that msrun prints after every step; apart from NetOps.h, as few speak of it.
#pragma once

#include "dialects/net/Network.h"

#define GET_OP_CLASSES
#include "dialects/net/ops/print/Print.h.inc"

namespace msc::net {

/// Adds what the operators Print show to the results of the network, under their instance names.
void returnPrinted(NetworkOp network);

/// The message of the Print that made the result with this name; null for all others.
mlir::StringAttr messageOf(NetworkOp network, mlir::Attribute result);

} // namespace msc::net
