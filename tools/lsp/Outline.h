// What a text defines, and in what its end stands: from tokens alone, so that it works while a line is being written.
#pragma once

#include "frontend/Lexer.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <string>
#include <vector>

namespace msc::lsp {

/// A stretch of the text, in bytes.
struct Span {
  size_t begin = 0, end = 0;
  bool contains(size_t offset) const { return begin <= offset && offset <= end; }
};

/// A name that is defined.
struct Symbol {
  enum class Kind { Value, Parameter, Input, Counter, Formal, Constant, Cell, Network, Block, Import };
  Kind kind;
  std::string name; ///< without the '%'; of an import its path
  Span span;        ///< of the name, with the '%' or the quotes
  size_t scope;     ///< index of the scope in which it is known
  size_t body = 0;  ///< of a cell, a network and a block: its own scope
  bool isValue() const { return kind == Kind::Value || kind == Kind::Parameter || kind == Kind::Input; }
};

/// Where names are known: the file, or what stands between the brackets of a cell, a network, a repeat, a branch.
struct Scope {
  Span span;
  size_t parent = 0;
};

/// What the innermost open bracket is.
enum class Role {
  File,       ///< there is none
  Body,       ///< of a cell, a network, a repeat, a branch
  Formals,    ///< of a cell or a network
  Arguments,  ///< of a call; also the braces behind it
  Attributes, ///< of a parameter
  Block,      ///< train {...}
  Other,
};

struct Context {
  Role role = Role::File;
  std::string name; ///< of the operator, the cell or the block
};

class Outline {
public:
  /// Reads as far as `limit`.
  explicit Outline(llvm::StringRef text, size_t limit = llvm::StringRef::npos);

  const std::vector<Symbol> &symbols() const { return found; }
  const std::vector<Scope> &scopes() const { return all; }
  /// Where the text was left at `limit`.
  const Context &context() const { return end; }
  /// Tokens up to the limit, and the spans of them.
  llvm::ArrayRef<frontend::Token> tokens() const { return llvm::ArrayRef(lexed.tokens).take_front(count); }
  Span spanOf(const frontend::Token &token) const;

  /// The definition that a name means at an offset: of the innermost scope; null if there is none.
  const Symbol *resolve(llvm::StringRef name, bool isValue, size_t offset) const;
  /// All that are known at an offset.
  std::vector<const Symbol *> visible(size_t offset) const;

private:
  friend class OutlineReader;
  llvm::StringRef text;
  frontend::Tokens lexed;
  size_t count = 0;
  std::vector<Symbol> found;
  std::vector<Scope> all;
  Context end;
};

} // namespace msc::lsp
