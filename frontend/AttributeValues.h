// Values of operators' attributes: what users write, as operators store it.
#pragma once

#include "dialects/net/NetInterfaces.h"

#include "mlir/IR/Builders.h"

namespace msc::frontend {

/// "a whole number": what an attribute of that kind expects.
llvm::StringRef kindText(net::AttributeKind kind);
/// The attribute that the operator stores, or null if the value does not fit.
mlir::Attribute convertAttribute(net::AttributeKind kind, mlir::Attribute value, mlir::Builder &builder);

} // namespace msc::frontend
