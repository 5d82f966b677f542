// What the definitions (.td) say about operators, kept for users: `msc ops`.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace msc::net {

struct Documentation {
  llvm::StringRef summary;       ///< one line
  llvm::StringRef description;   ///< Markdown, indented as in the definition; formulas stand in backquotes
  llvm::StringRef exampleInputs; ///< "%x: f32[16, 32], %b: f32[32]"; f32 stands for any element type the operator takes
  llvm::StringRef exampleCall;   ///< "%output = BiasAdd(%x, %b)"
};

/// Specialized for each operator by the code that is generated from its definition.
template <typename Op> Documentation documentationOf();

/// The operator called `mnemonic` ("MatMul"); nothing for a name that is no operator.
std::optional<Documentation> documentationOf(llvm::StringRef mnemonic);

} // namespace msc::net
