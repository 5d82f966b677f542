// Tokens, expressions and the entry points. Statements are in ParseStatements.cpp, items in ParseItems.cpp.
#include "frontend/ParserImpl.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

using namespace llvm;

namespace msc::frontend {
using namespace ast;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

Parser::Parser(StringRef text) : tokens(lex(text)) {}

const Token &Parser::peek(size_t ahead) const {
  return tokens.tokens[std::min(at + ahead, tokens.tokens.size() - 1)];
}

bool Parser::isWord(StringRef word, size_t ahead) const {
  return peek(ahead).kind == TokenKind::Ident && peek(ahead).text == word;
}

bool Parser::accept(TokenKind kind) {
  if (!is(kind))
    return false;
  take();
  return true;
}

Place Parser::placeOf(const Token &token) {
  return {SMLoc::getFromPointer(token.text.begin()), SMLoc::getFromPointer(token.text.end())};
}

Place Parser::from(const Token &first) const {
  const Token &last = tokens.tokens[at == 0 ? 0 : at - 1];
  return {SMLoc::getFromPointer(first.text.begin()), SMLoc::getFromPointer(last.text.end())};
}

bool Parser::failAt(const Token &token, const Twine &message) {
  error = {};
  error.message = message.str();
  if (token.kind == TokenKind::Bad) { // that is the mistake, not what is missing
    auto isBad = [](const Token &t) { return t.kind == TokenKind::Bad; };
    size_t index = count_if(make_filter_range(tokens.tokens, isBad),
                            [&](const Token &t) { return t.text.data() < token.text.data(); });
    error.message = tokens.errors[index];
    if (token.text.starts_with(";"))
      error.help = "statements need nothing between them: leave out ';'";
  }
  error.place = SMLoc::getFromPointer(token.text.begin());
  return false;
}

bool Parser::fail(const Twine &message) { return failAt(peek(), message); }

bool Parser::expected(StringRef what) {
  if (is(TokenKind::End))
    return fail("expected " + what + " before the end of the file");
  fail("expected " + what + ", found '" + peek().text.take_front(40) + "'");
  const Token &last = tokens.tokens[at == 0 ? 0 : at - 1];
  if (is(TokenKind::LBrace) && last.kind == TokenKind::Value && last.text.end() == peek().text.begin())
    error.help = ("names of values take no braces: in a repeat every round has a " + last.text + " of its own").str();
  return false;
}

bool Parser::expect(TokenKind kind, StringRef what) { return accept(kind) || expected(what); }

bool Parser::expectClosing(TokenKind kind, StringRef what, const Token &open) {
  if (accept(kind))
    return true;
  expected(what);
  if (!is(TokenKind::Bad)) {
    error.note = ("to close this '" + open.text + "'").str();
    error.notePlace = SMLoc::getFromPointer(open.text.begin());
  }
  return false;
}

bool Parser::closeEntries(TokenKind kind, StringRef what, const Token &open) {
  if (expectClosing(kind, what, open))
    return true;
  if (startsStatement()) // nothing closes the list
    return false;
  size_t words = is(TokenKind::String); // of the next key
  if (words == 0)
    while (peek(words).kind == TokenKind::Ident)
      ++words;
  if (words > 0 && peek(words).kind == TokenKind::Colon)
    error.help = ("commas separate entries: write ',' in front of " + peek().text).str();
  return false;
}

Origin Parser::takeOrigin() {
  Origin origin;
  while (nextRemark < tokens.remarks.size() && tokens.remarks[nextRemark].after < at)
    ++nextRemark;
  for (; nextRemark < tokens.remarks.size() && tokens.remarks[nextRemark].after == at; ++nextRemark) {
    const Remark &remark = tokens.remarks[nextRemark];
    if (remark.isScope) {
      origin.scope = remark.text.str();
    } else if (origin.file.empty()) { // MindSpore prints the innermost frame first
      auto [file, line] = splitFileRemark(remark.text);
      if (line) {
        origin.file = file.str();
        origin.line = line;
      }
    }
  }
  return origin;
}

//===----------------------------------------------------------------------===//
// Recovery
//===----------------------------------------------------------------------===//

bool Parser::startsLine(size_t ahead) const {
  const Token &token = peek(ahead);
  const char *start = tokens.tokens.front().text.data(); // nothing but blanks and comments stands before it
  for (const char *c = token.text.data(); c != start && c[-1] != '\n'; --c)
    if (c[-1] != ' ' && c[-1] != '\t')
      return false;
  return true;
}

/// "let %y = ...", as other languages define a name.
bool Parser::startsDefinition() const {
  static const StringRef words[] = {"let", "var", "val", "auto", "mut"};
  const TokenKind name = peek(1).kind;
  return is(TokenKind::Ident) && is_contained(words, peek().text) && (name == TokenKind::Value || name == TokenKind::Ident);
}

bool Parser::startsStatement() const {
  static const StringRef words[] = {"const", "param", "return", "yield", "Return"};
  if (!startsLine())
    return false;
  if (is(TokenKind::Ident))
    return is_contained(words, peek().text) || startsDefinition();
  return is(TokenKind::Value) && is_contained({TokenKind::Equal, TokenKind::Comma, TokenKind::Colon, TokenKind::DebugName},
                                              peek(1).kind);
}

/// Items stand at the very beginning of a line; so do statements of some, but those begin with a value.
bool Parser::startsItem() const {
  static const StringRef words[] = {"import", "const", "mesh", "cell", "network", "subgraph"};
  if (is(TokenKind::Header))
    return true;
  bool first = startsLine() && (at == 0 || tokens.tokens[at].text.data()[-1] == '\n');
  if (!first || !is(TokenKind::Ident))
    return false;
  bool isBlock = peek(1).kind == TokenKind::LBrace || (peek(1).kind == TokenKind::Ident && peek(2).kind == TokenKind::LBrace);
  return is_contained(words, peek().text) || (isBlock && !isKeyword(peek().text));
}

bool Parser::rememberError() {
  if (!error.message.empty())
    errors.push_back(std::exchange(error, {}));
  return !hopeless && errors.size() < maximumSyntaxErrors;
}

bool Parser::recoverInBody(size_t first) {
  if (startsItem()) // the body does not end
    return false;
  if (!rememberError())
    return false;
  auto change = [](const Token &token) { return token.kind == TokenKind::LBrace ? 1 : token.kind == TokenKind::RBrace ? -1 : 0; };
  int own = 0; // braces of attributes, in which the mistake is
  for (; first < at; ++first)
    own += change(tokens.tokens[first]);
  for (int open = own; !is(TokenKind::End); take()) {
    if (open <= own && (startsStatement() || (is(TokenKind::RBrace) && (open <= 0 || startsLine()))))
      return true;
    if (startsItem())
      return false;
    open += change(peek());
  }
  return false;
}

bool Parser::recoverInFile() {
  allItems = false;
  if (!rememberError())
    return false;
  while (!is(TokenKind::End) && !startsItem())
    take();
  return !is(TokenKind::End);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Precedence of a binary operator, 1 is the weakest; 0: it is none.
static unsigned precedenceOf(TokenKind kind) {
  switch (kind) {
  case TokenKind::OrOr: return 1;
  case TokenKind::AndAnd: return 2;
  case TokenKind::EqualEqual:
  case TokenKind::NotEqual:
  case TokenKind::Less:
  case TokenKind::Greater:
  case TokenKind::LessEqual:
  case TokenKind::GreaterEqual: return 3;
  case TokenKind::Plus:
  case TokenKind::Minus: return 4;
  case TokenKind::Star:
  case TokenKind::Slash:
  case TokenKind::Percent: return 5;
  default: return 0;
  }
}

bool Parser::parseExpr(Expr &expr) {
  Nesting level(*this);
  return !level.tooDeep() && parseChain(expr, 1);
}

/// An operand and the operators behind it that bind at least as tightly as `weakest`: those of one precedence are one chain.
bool Parser::parseChain(Expr &expr, unsigned weakest) {
  Token first = peek();
  if (!parseUnary(expr))
    return false;
  for (unsigned level = precedenceOf(peek().kind); level >= weakest && level != 0; level = precedenceOf(peek().kind)) {
    Expr chain;
    chain.kind = Expr::Kind::Chain;
    chain.items.push_back({"", std::move(expr), {}});
    while (precedenceOf(peek().kind) == level) {
      Token op = take();
      Arg &link = chain.items.emplace_back();
      link.key = op.text.str();
      link.keyPlace = placeOf(op);
      if (!parseChain(link.value, level + 1))
        return false;
    }
    chain.place = from(first);
    expr = std::move(chain);
  }
  return true;
}

bool Parser::parseUnary(Expr &expr) {
  if (!is(TokenKind::Minus))
    return parsePrimary(expr);
  Nesting level(*this);
  if (level.tooDeep())
    return false;
  Token minus = take();
  expr.kind = Expr::Kind::Negate;
  if (!parseUnary(expr.items.emplace_back().value))
    return false;
  expr.place = from(minus);
  return true;
}

bool Parser::parsePrimary(Expr &expr) {
  auto leaf = [&](Expr::Kind kind, size_t front = 0, size_t back = 0) {
    Token token = take();
    expr.kind = kind;
    expr.text = token.text.drop_front(front).drop_back(back).str();
    expr.place = placeOf(token);
    return true;
  };
  Token open = peek();
  switch (open.kind) {
  case TokenKind::Value: return leaf(Expr::Kind::Value, 1);
  case TokenKind::Outer: return leaf(Expr::Kind::Outer, 2, 1);
  case TokenKind::Int: return leaf(Expr::Kind::Int);
  case TokenKind::Float: return leaf(Expr::Kind::Float);
  case TokenKind::String: return leaf(Expr::Kind::String, 1, 1);
  case TokenKind::Word: return leaf(Expr::Kind::Word);
  case TokenKind::Graph: return leaf(Expr::Kind::Graph, 1);
  case TokenKind::Ident:
    if (isKeyword(open.text))
      return expected("an expression");
    return peek(1).kind == TokenKind::LParen ? parseCallExpr(expr) : leaf(Expr::Kind::Word);
  case TokenKind::LBrace:
    expr.kind = Expr::Kind::Map;
    if (!parseMap(expr.items))
      return false;
    break;
  case TokenKind::LParen:
    take();
    expr.kind = Expr::Kind::Tuple;
    if (!parseArgs(expr.items, TokenKind::RParen, "')'", open))
      return false;
    break;
  case TokenKind::LBracket:
    take();
    expr.kind = Expr::Kind::List;
    if (!parseArgs(expr.items, TokenKind::RBracket, "']'", open))
      return false;
    break;
  default:
    return expected("an expression");
  }
  expr.place = from(open);
  return true;
}

bool Parser::parseCallExpr(Expr &expr) {
  Token callee = take(), open = take();
  expr.kind = Expr::Kind::Call;
  expr.text = callee.text.str();
  if (!parseArgs(expr.items, TokenKind::RParen, "')'", open))
    return false;
  expr.place = from(callee);
  return true;
}

bool Parser::parseArgs(std::vector<Arg> &args, TokenKind close, StringRef closeText, const Token &open) {
  while (!is(close)) {
    Arg &arg = args.emplace_back();
    if (is(TokenKind::Ident) && peek(1).kind == TokenKind::Colon) {
      Token key = take();
      take();
      arg.key = key.text.str();
      arg.keyPlace = placeOf(key);
    }
    if (!parseExpr(arg.value))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  if (is(TokenKind::Equal) && args.back().key.empty() && args.back().value.kind == Expr::Kind::Word) {
    expected("','");
    error.help = "names of arguments end in a colon: write " + args.back().value.text + ": ...";
    return false;
  }
  return closeEntries(close, closeText, open);
}

bool Parser::parseKey(Arg &field) {
  Token first = peek();
  if (is(TokenKind::String)) {
    field.key = take().text.str(); // keeps its quotes: only they tell it from words
  } else if (is(TokenKind::Ident)) {
    for (; is(TokenKind::Ident); take())
      field.key += (field.key.empty() ? "" : " ") + peek().text.str();
  } else {
    return expected("a key");
  }
  field.keyPlace = from(first);
  return true;
}

bool Parser::parseColon(StringRef key) {
  if (expect(TokenKind::Colon, "':' behind a key"))
    return true;
  auto [name, value] = key.rsplit(' ');
  const bool isOpen = is(TokenKind::LParen) || is(TokenKind::LBracket);
  if (value.empty() && (isOpen || is(TokenKind::Int) || is(TokenKind::Float) || is(TokenKind::String)))
    value = isOpen ? "..." : peek().text;
  if (!value.empty() && !is(TokenKind::Bad) && !is(TokenKind::Equal))
    error.help = ("write " + name + ": " + value).str();
  else if (is(TokenKind::Equal))
    error.help = ("write " + key + ": ...").str();
  return false;
}

std::string Parser::helpForTuples(const Arg &field) const {
  const char *begin = field.value.place.begin.getPointer(), *end = nullptr;
  int open = 0;
  for (size_t i = 0; peek(i).kind != TokenKind::End && peek(i).kind != TokenKind::Bad; ++i) {
    const TokenKind kind = peek(i).kind;
    open += kind == TokenKind::LParen ? 1 : kind == TokenKind::RParen ? -1 : 0;
    if (open == 0 && kind == TokenKind::RParen)
      end = peek(i).text.end();
    else if (open == 0 && kind != TokenKind::Comma)
      break;
  }
  const StringRef tuples(begin, end ? end - begin : 0);
  return end && !tuples.contains('\n') ? ("several tuples take parentheses of their own: write " + field.key + ": (" + tuples + ")").str() : "";
}

bool Parser::parseMap(std::vector<Arg> &fields) {
  Nesting level(*this);
  if (level.tooDeep())
    return false;
  Token open = peek();
  if (!expect(TokenKind::LBrace, "'{'"))
    return false;
  while (!is(TokenKind::RBrace)) {
    if (is(TokenKind::LParen) && !fields.empty() && fields.back().value.kind == Expr::Kind::Tuple) {
      expected("a key");
      error.help = helpForTuples(fields.back());
      return false;
    }
    Arg &field = fields.emplace_back();
    if (!parseKey(field) || !parseColon(field.key) || !parseExpr(field.value))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  return closeEntries(TokenKind::RBrace, "'}'", open);
}

bool Parser::parseLoneExpr(Expr &expr) {
  return parseExpr(expr) && (is(TokenKind::End) || expected("the end"));
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

Parsed parseTolerantly(StringRef text) {
  Parser parser(text);
  Parsed parsed;
  parser.parseFile(parsed.file);
  parsed.errors = parser.takeErrors();
  parsed.hasAllItems = parser.hasAllItems();
  return parsed;
}

std::variant<File, SyntaxError> parseText(StringRef text) {
  Parsed parsed = parseTolerantly(text);
  if (parsed.errors.empty())
    return std::move(parsed.file);
  return std::move(parsed.errors.front());
}

std::variant<Expr, SyntaxError> parseExpression(StringRef text) {
  Parser parser(text);
  Expr expr;
  if (parser.parseLoneExpr(expr))
    return expr;
  return parser.takeError();
}

} // namespace msc::frontend
