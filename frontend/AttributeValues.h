// Values of operators' attributes: what users write, as operators store it.
#pragma once

#include "dialects/net/NetInterfaces.h"

#include "mlir/IR/Builders.h"

namespace msc::frontend {

/// "a whole number": what an attribute of that kind expects.
llvm::StringRef kindText(net::AttributeKind kind);
/// The attribute that the operator stores, or null if the value does not fit.
mlir::Attribute convertAttribute(net::AttributeKind kind, mlir::Attribute value, mlir::Builder &builder);
/// How the attribute spells a word that is written with other letter cases, such as MindSpore's pad_mode: SAME; empty if it has none like it.
llvm::StringRef knownWord(const net::AttributeSpec &spec, llvm::StringRef word);
/// Repair for an operator that is called where an attribute or an operand is expected.
void addNestingHelp(mlir::InFlightDiagnostic &diagnostic, mlir::Attribute call);

} // namespace msc::frontend
