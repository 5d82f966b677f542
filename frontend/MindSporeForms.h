// What MindSpore writes in another way than we do.
#pragma once

#include "dialects/net/Network.h"

#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <utility>

namespace msc::frontend {

/// Strategies of operands and results for an in_strategy in a form of MindSpore's that differs from ours: that of OneHot is one of its result,
/// with an empty tuple for each of the two numbers that MindSpore gives as operands. None: it is in our form, or in none.
std::optional<std::pair<net::Strategy, net::Strategy>> strategiesOfMindSpore(mlir::Operation *op, const net::Strategy &in);

/// Attributes that MindSpore's dumps print and that say nothing here: names of operands, internals of collectives.
bool isDumpNoise(llvm::StringRef key);

/// What to write instead of an attribute of MindSpore's that no operator has, or the one of `own`, else of `ofAll`, that may be meant.
void addAttributeHelp(mlir::InFlightDiagnostic &diagnostic, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> own, llvm::ArrayRef<llvm::StringRef> ofAll);

/// The repair for what is no value in a list of operands.
void addListHelp(mlir::InFlightDiagnostic diagnostic, llvm::StringRef callee);

} // namespace msc::frontend
