// Text to syntax tree. Behind a mistake the parser goes on with the next statement or item that begins a line, so one
// mistake is one error and all of them are found.
#pragma once

#include "frontend/Ast.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <variant>

namespace msc::frontend {

/// How deeply expressions, types and bodies may nest.
inline constexpr int maximumNesting = 256;

/// A mistake in a text.
struct SyntaxError {
  std::string message;
  llvm::SMLoc place;
  std::string note; ///< a second place, e.g. the bracket that is not closed; empty: none
  llvm::SMLoc notePlace;
  std::string help; ///< empty: no repair to offer
};

/// More mistakes of one text are not reported.
inline constexpr size_t maximumSyntaxErrors = 20;

/// What could be read, and what could not.
struct Parsed {
  ast::File file;                  ///< statements with a mistake are marked `broken`
  std::vector<SyntaxError> errors; ///< empty: the file is as written
  bool hasAllItems = true;         ///< false: a whole item is missing, so names may be unknown
};

/// Parses a whole file, over its mistakes. The tree's places point into `text`, which has to outlive them.
Parsed parseTolerantly(llvm::StringRef text);

/// The same, up to the first mistake.
std::variant<ast::File, SyntaxError> parseText(llvm::StringRef text);

/// Parses one expression, e.g. the value of `-D name=value`.
std::variant<ast::Expr, SyntaxError> parseExpression(llvm::StringRef text);

} // namespace msc::frontend
