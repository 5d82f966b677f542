// Cuts the text of networks and dumps into tokens. The rules are those of the language reference, section "Lexical".
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::frontend {

enum class TokenKind : uint8_t {
  End,
  Value,     ///< %x
  DebugName, ///< (equiv[CNode]520), glued to the value before it
  Outer,     ///< $(@g:%x)
  Int,
  Float,
  String,    ///< with its quotes
  Ident,
  Word,      ///< data.model, 0-1-2-3
  Graph,     ///< @name
  DumpType,  ///< <Tensor[Float32], (16, 32)>
  Header,    ///< a whole line: #IR entry : @net
  AttrLine,  ///< a whole line below #attrs
  At,
  LParen, RParen, LBrace, RBrace, LBracket, RBracket,
  Comma, Colon, Equal, Arrow, DotDot,
  Plus, Minus, Star, Slash, Percent,
  OrOr, AndAnd, EqualEqual, NotEqual, Less, Greater, LessEqual, GreaterEqual,
  Bad, ///< the rest of a line that is no token; Tokens::errors says why
};

struct Token {
  TokenKind kind = TokenKind::End;
  llvm::StringRef text;
};

/// A comment that says something: `# scope: (...)` or `# In file F(L)`. It stands behind token `after`.
struct Remark {
  size_t after = 0; ///< number of tokens before the comment
  bool isScope = false;
  llvm::StringRef text; ///< the scope without parentheses, or what follows "In file "
};

/// A comment as written, from '#' to the end of its line.
struct Comment {
  size_t after = 0; ///< number of tokens before it
  llvm::StringRef text;
};

/// What was read.
struct Tokens {
  std::vector<Token> tokens;       ///< ends in an End token
  std::vector<Remark> remarks;     ///< ascending by `after`
  std::vector<Comment> comments;   ///< all of them, remarks too, ascending by `after`
  std::vector<std::string> errors; ///< one per Bad token, in order
};

Tokens lex(llvm::StringRef text);

/// Length of the token that starts at `text`, for carets; at least 1.
size_t tokenLength(llvm::StringRef text);

/// "F(L)" or MindSpore's "F(L)/ source /": file and line; line 0 if it does not have this form.
std::pair<llvm::StringRef, int64_t> splitFileRemark(llvm::StringRef text);

/// True for words of the grammar; they cannot name operators and cells.
bool isKeyword(llvm::StringRef word);
/// True if the text is one Ident token.
bool isIdent(llvm::StringRef text);
/// True if the text reads back as one Ident or Word token.
bool isBareWord(llvm::StringRef text);
/// True if '%' and the text read back as one Value token.
bool isValueName(llvm::StringRef text);

} // namespace msc::frontend
