// `msc fmt`: the one way to lay out a file.
#pragma once

#include "frontend/Parser.h"

namespace msc::frontend {

/// Longest line; longer ones are broken at commas and before braces.
inline constexpr size_t formattedWidth = 120;

/// The same file with its blanks and lines in order, or its first mistake. Comments stay where they are; so do line breaks
/// behind commas and brackets, single blank lines, and bodies of one statement that stand on one line. Lines of dumps are
/// never broken. Formatting what this returns changes nothing.
std::variant<std::string, SyntaxError> formatText(llvm::StringRef text);

/// The same for a text that was parsed.
std::string formatParsed(llvm::StringRef text, const ast::File &file);

} // namespace msc::frontend
