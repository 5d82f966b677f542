#include "frontend/Lexer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

using namespace llvm;

namespace msc::frontend {

static bool isWordStart(char c) { return isAlpha(c) || c == '_'; }

/// Letters, digits and '_', looked up: most characters of a dump ask.
static constexpr std::array<bool, 256> wordChars = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c)
    table[static_cast<size_t>(c)] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return table;
}();
static bool isWordChar(char c) { return wordChars[static_cast<unsigned char>(c)]; }

static const StringRef headers[] = {"#IR entry",   "#attrs",           "#Total params",
                                    "#Total subgraph", "subgraph attr:", "subgraph instance:"};

namespace {
class Lexer {
public:
  explicit Lexer(StringRef text) : text(text) {}
  Tokens run();
  /// Reads one token at the current place; false at the end.
  bool next();
  size_t position() const { return at; }
  Tokens out;

private:
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  bool atLineStart() const { return at == 0 || text[at - 1] == '\n'; }
  StringRef line() const { return text.slice(at, text.find('\n', at)); }
  /// What starts here is no token: neither is the rest of the line.
  bool fail(const Twine &message) {
    out.errors.push_back(message.str());
    return add(TokenKind::Bad, std::max<size_t>(1, line().rtrim("\r").size()));
  }
  bool add(TokenKind kind, size_t length) {
    out.tokens.push_back({kind, text.substr(at, length)});
    at += length;
    return true;
  }
  bool takeHeader();
  void takeComment();
  bool takeValue();
  bool takeNumber();
  bool takeWord();
  bool takeString();
  bool takeOuter();
  bool takeDumpType();
  bool takePunctuation();
  /// Offset just behind the bracket that closes the one at `from`, or npos. Strings are skipped when `quotes`.
  size_t closing(size_t from, char open, char close) const;

  StringRef text;
  size_t at = 0;
};
} // namespace

size_t Lexer::closing(size_t from, char open, char close) const {
  size_t depth = 0;
  for (size_t i = from; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n')
      return StringRef::npos; // these forms never span lines; keeps a lost bracket from swallowing the file
    if (c == open)
      ++depth;
    else if (c == close && !(close == '>' && i > from && text[i - 1] == '-') && --depth == 0)
      return i + 1;
  }
  return StringRef::npos;
}

bool Lexer::takeHeader() {
  bool attrs = line().starts_with("#attrs") || line().starts_with("subgraph attr:");
  add(TokenKind::Header, line().rtrim("\r").size());
  while (attrs && at < text.size()) {
    at += peek() == '\r';
    at += peek() == '\n';
    StringRef whole = line();
    if (whole.trim().empty() || whole.starts_with("subgraph ") || whole.starts_with("#"))
      break;
    add(TokenKind::AttrLine, whole.rtrim("\r").size());
  }
  return true;
}

void Lexer::takeComment() {
  StringRef whole = line();
  at += whole.size();
  out.comments.push_back({out.tokens.size(), whole.rtrim("\r")});
  StringRef inside = whole.drop_front().trim();
  if (inside.consume_front("scope:")) {
    inside = inside.trim();
    if (inside.consume_front("("))
      inside.consume_back(")");
    out.remarks.push_back({out.tokens.size(), true, inside});
  } else if (inside.consume_front("In file ")) {
    out.remarks.push_back({out.tokens.size(), false, inside.trim()});
  }
}

bool Lexer::takeValue() {
  size_t length = 1;
  auto wordAt = [&](size_t i) { return isWordChar(peek(i)); };
  while (wordAt(length) || (peek(length) == '.' && wordAt(length + 1)))
    ++length;
  add(TokenKind::Value, length);
  if (peek() != '(')
    return true;
  size_t end = closing(at, '(', ')');
  if (end == StringRef::npos)
    return fail("this '(' behind a value opens a debug name that does not end on this line");
  return add(TokenKind::DebugName, end - at);
}

bool Lexer::takeNumber() {
  size_t length = 0;
  auto digits = [&] {
    while (isDigit(peek(length)))
      ++length;
  };
  digits();
  TokenKind kind = TokenKind::Int;
  if (peek(length) == '-' && isDigit(peek(length + 1))) { // 0-1-2-3: the ranks of a group
    while (peek(length) == '-' && isDigit(peek(length + 1))) {
      ++length;
      digits();
    }
    kind = TokenKind::Word;
  } else {
    if (peek(length) == '.' && isDigit(peek(length + 1))) {
      kind = TokenKind::Float;
      ++length;
      digits();
    }
    size_t exponent = length + 1 + (peek(length + 1) == '-' || peek(length + 1) == '+');
    if ((peek(length) == 'e' || peek(length) == 'E') && isDigit(peek(exponent))) {
      kind = TokenKind::Float;
      length = exponent;
      digits();
    }
  }
  if (!isWordStart(peek(length)))
    return add(kind, length);
  size_t end = length;
  while (isWordChar(peek(end)))
    ++end;
  return fail("cannot read the number '" + text.substr(at, end) + "'");
}

bool Lexer::takeWord() {
  size_t length = 0;
  TokenKind kind = TokenKind::Ident;
  while (isWordChar(peek(length)))
    ++length;
  while (peek(length) == '.' && isWordChar(peek(length + 1))) {
    kind = TokenKind::Word;
    ++length;
    while (isWordChar(peek(length)))
      ++length;
  }
  return add(kind, length);
}

bool Lexer::takeString() {
  for (size_t length = 1; at + length < text.size(); ++length) {
    char c = peek(length);
    if (c == '\n')
      break;
    if (c == '\\' && peek(length + 1) != '\n')
      ++length;
    else if (c == '"')
      return add(TokenKind::String, length + 1);
  }
  return fail("this string does not end on its line");
}

bool Lexer::takeOuter() {
  size_t end = closing(at + 1, '(', ')');
  if (end == StringRef::npos)
    return fail("'$(' without ')' on the same line");
  return add(TokenKind::Outer, end - at);
}

bool Lexer::takeDumpType() {
  size_t end = closing(at, '<', '>');
  if (end == StringRef::npos)
    return fail("'<' without '>' on the same line");
  return add(TokenKind::DumpType, end - at);
}

bool Lexer::takePunctuation() {
  /// One of two characters, if the second one follows, else of one.
  auto addLonger = [&](char second, TokenKind longer, TokenKind shorter) {
    bool isLonger = peek(1) == second;
    return add(isLonger ? longer : shorter, isLonger ? 2 : 1);
  };
  switch (peek()) {
  case '(': return add(TokenKind::LParen, 1);
  case ')': return add(TokenKind::RParen, 1);
  case '{': return add(TokenKind::LBrace, 1);
  case '}': return add(TokenKind::RBrace, 1);
  case '[': return add(TokenKind::LBracket, 1);
  case ']': return add(TokenKind::RBracket, 1);
  case ',': return add(TokenKind::Comma, 1);
  case ':': return add(TokenKind::Colon, 1);
  case '+': return add(TokenKind::Plus, 1);
  case '*': return add(TokenKind::Star, 1);
  case '/': return add(TokenKind::Slash, 1);
  case '%': return add(TokenKind::Percent, 1);
  case '@': return add(TokenKind::At, 1);
  case '-': return addLonger('>', TokenKind::Arrow, TokenKind::Minus);
  case '=': return addLonger('=', TokenKind::EqualEqual, TokenKind::Equal);
  case '<': return addLonger('=', TokenKind::LessEqual, TokenKind::Less);
  case '>': return addLonger('=', TokenKind::GreaterEqual, TokenKind::Greater);
  default: break;
  }
  static const std::pair<StringRef, TokenKind> pairs[] = {
      {"..", TokenKind::DotDot}, {"||", TokenKind::OrOr}, {"&&", TokenKind::AndAnd}, {"!=", TokenKind::NotEqual}};
  for (auto [mark, kind] : pairs)
    if (text.substr(at).starts_with(mark))
      return add(kind, mark.size());
  if (isPrint(peek()))
    return fail("unexpected character '" + Twine(peek()) + "'");
  return fail("unexpected byte " + Twine(static_cast<int>(static_cast<unsigned char>(peek()))));
}

bool Lexer::next() {
  while (at < text.size()) {
    char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at;
      continue;
    }
    if ((c == '#' || c == 's') && atLineStart() && any_of(headers, [&](StringRef h) { return text.substr(at).starts_with(h); }))
      return takeHeader();
    if (c == '#') {
      takeComment();
      continue;
    }
    if (c == '%' && isWordChar(peek(1)))
      return takeValue();
    if (isDigit(c))
      return takeNumber();
    if (isWordStart(c))
      return takeWord();
    if (c == '"')
      return takeString();
    if (c == '$' && peek(1) == '(')
      return takeOuter();
    if (c == '<' && peek(1) >= 'A' && peek(1) <= 'Z')
      return takeDumpType();
    if (c == '@' && isWordChar(peek(1))) {
      size_t length = 1;
      while (isWordChar(peek(length)) || (peek(length) == '.' && isWordChar(peek(length + 1))))
        ++length;
      return add(TokenKind::Graph, length);
    }
    return takePunctuation();
  }
  return false;
}

Tokens Lexer::run() {
  out.tokens.reserve(text.size() / 6 + 1); // as in dumps
  while (next())
    ;
  out.tokens.push_back({TokenKind::End, text.substr(text.size())});
  return std::move(out);
}

Tokens lex(StringRef text) { return Lexer(text).run(); }

size_t tokenLength(StringRef text) {
  Lexer lexer(text.take_until([](char c) { return c == '\n'; }));
  if (text.starts_with("#") || text.starts_with(" ") || !lexer.next() || !lexer.out.errors.empty())
    return 1;
  return std::max<size_t>(1, lexer.out.tokens.front().text.size());
}

std::pair<StringRef, int64_t> splitFileRemark(StringRef text) {
  auto numbered = [&](size_t open, size_t close) -> std::pair<StringRef, int64_t> {
    int64_t line = 0;
    if (close <= open || text.slice(open + 1, close).getAsInteger(10, line) || line < 0 || line > INT32_MAX)
      return {text, 0};
    return {text.take_front(open), line};
  };
  if (text.ends_with(")")) // our own form; the path itself may hold parentheses
    return numbered(text.rfind('('), text.size() - 1);
  for (size_t close = text.find(")/"); close != StringRef::npos; close = text.find(")/", close + 1))
    if (auto found = numbered(text.take_front(close).rfind('('), close); found.second)
      return found;
  return {text, 0};
}

bool isKeyword(StringRef word) {
  static const StringRef keywords[] = {"import", "const",  "mesh", "cell", "network", "param", "return",
                                       "yield",  "Return", "repeat", "in", "with",    "if",    "else", "subgraph"};
  return !word.empty() && any_of(keywords, [&](StringRef k) { return k.front() == word.front() && k == word; });
}

bool isIdent(StringRef text) {
  return !text.empty() && isWordStart(text.front()) && all_of(text, isWordChar);
}

bool isBareWord(StringRef text) {
  if (text.empty())
    return false;
  Tokens tokens = lex(text);
  TokenKind kind = tokens.tokens.front().kind;
  return tokens.tokens.size() == 2 && tokens.tokens.front().text == text &&
         (kind == TokenKind::Ident || kind == TokenKind::Word);
}

bool isValueName(StringRef text) {
  if (text.empty() || !isWordChar(text.front()) || !isWordChar(text.back()))
    return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (!isWordChar(text[i]) && !(text[i] == '.' && isWordChar(text[i + 1])))
      return false;
  return true;
}

} // namespace msc::frontend
