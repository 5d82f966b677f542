// Text to syntax tree. The first mistake ends the parse; there is no recovery, so one mistake is one error.
#pragma once

#include "frontend/Ast.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <variant>

namespace msc::frontend {

/// How deeply expressions, types and bodies may nest.
inline constexpr int maximumNesting = 256;

/// The first mistake in a text.
struct SyntaxError {
  std::string message;
  llvm::SMLoc place;
  std::string note; ///< a second place, e.g. the bracket that is not closed; empty: none
  llvm::SMLoc notePlace;
  std::string help; ///< empty: no repair to offer
};

/// Parses a whole file. The tree's places point into `text`, which has to outlive them.
std::variant<ast::File, SyntaxError> parseText(llvm::StringRef text);

/// Parses one expression, e.g. the value of `-D name=value`.
std::variant<ast::Expr, SyntaxError> parseExpression(llvm::StringRef text);

} // namespace msc::frontend
