#include "tools/lsp/Outline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

using namespace llvm;

namespace msc::lsp {

using frontend::Token;
using frontend::TokenKind;
using Kind = Symbol::Kind;

/// One pass over the tokens with a stack of brackets. Items at the beginning of a line, and statements, close what was
/// left open in front of them.
class OutlineReader {
public:
  OutlineReader(Outline &outline) : outline(outline), tokens(outline.lexed.tokens) {}

  void run() {
    outline.all.push_back({{0, outline.text.size()}, 0});
    for (at = 0; at < outline.count; ++at) {
      if (startsItem())
        closeTo(0);
      else if (startsStatement())
        while (!stack.empty() && stack.back().role != Role::Body)
          close();
      step();
    }
    if (!stack.empty())
      outline.end = {stack.back().role, stack.back().name};
  }

private:
  struct Open {
    Role role;
    std::string name;
    bool isBrace;
    size_t scope; ///< that was current in front of it
  };

  const Token &token(size_t index) const { return tokens[std::min(index, tokens.size() - 1)]; }
  bool is(size_t index, TokenKind kind) const { return token(index).kind == kind; }
  bool isWord(size_t index, StringRef word) const { return is(index, TokenKind::Ident) && token(index).text == word; }
  StringRef before(size_t distance) const { return at >= distance ? tokens[at - distance].text : ""; }
  Span span(const Token &token) const { return outline.spanOf(token); }

  bool startsLine(bool atFirstColumn) const {
    StringRef front = outline.text.take_front(span(token(at)).begin);
    return (atFirstColumn ? front : front.rtrim(" \t")).ends_with("\n") || front.empty();
  }

  /// `IDENT {` or `IDENT IDENT {`.
  bool isBlock() const {
    return is(at, TokenKind::Ident) && !frontend::isKeyword(token(at).text) &&
           (is(at + 1, TokenKind::LBrace) || (is(at + 1, TokenKind::Ident) && is(at + 2, TokenKind::LBrace)));
  }

  bool startsItem() const {
    static const StringRef words[] = {"import", "mesh", "cell", "network", "subgraph"};
    return is(at, TokenKind::Ident) && startsLine(/*atFirstColumn=*/true) &&
           (is_contained(words, token(at).text) || isBlock());
  }

  bool startsStatement() const {
    static const StringRef words[] = {"const", "param", "return", "yield"};
    bool begins = is(at, TokenKind::Ident) ? is_contained(words, token(at).text) : isDefinition();
    return begins && startsLine(/*atFirstColumn=*/false);
  }

  /// `%a, %b: f32[2] = ...` stands at `at`.
  bool isDefinition() const {
    for (size_t i = at; is(i, TokenKind::Value); ++i) {
      i += is(i + 1, TokenKind::DebugName) ? 2 : 1;
      if (is(i, TokenKind::Colon)) {
        i += 2;
        if (is(i, TokenKind::LBracket))
          while (!is(i, TokenKind::End) && !is(i++, TokenKind::RBracket)) {
          }
      }
      if (is(i, TokenKind::Equal))
        return true;
      if (!is(i, TokenKind::Comma))
        return false;
    }
    return false;
  }

  void define(Kind kind, const Token &name, size_t scopeOf) {
    StringRef text = name.text;
    if (name.kind == TokenKind::Value)
      text = text.drop_front();
    if (name.kind == TokenKind::String)
      text = text.drop_front().drop_back();
    outline.found.push_back({kind, text.str(), span(name), scopeOf});
  }

  /// Known in the body that comes next.
  void defineAhead(Kind kind, const Token &name) {
    define(kind, name, scope);
    ahead.push_back(outline.found.size() - 1);
  }

  void open(Role role, StringRef name) {
    stack.push_back({role, name.str(), is(at, TokenKind::LBrace), scope});
    if (role != Role::Body && role != Role::Block)
      return;
    outline.all.push_back({{span(token(at)).begin, outline.text.size()}, scope});
    scope = outline.all.size() - 1;
    if (role == Role::Block)
      return;
    for (size_t symbol : ahead)
      outline.found[symbol].scope = scope;
    if (!ahead.empty()) // formals are known among themselves
      outline.all[scope].span.begin = outline.found[ahead.front()].span.begin;
    ahead.clear();
    if (graph) {
      outline.found[*graph].body = scope;
      graph.reset();
    }
    bodyComes = isWith = isParam = false;
    callee.clear();
  }

  void close() {
    if (stack.back().role == Role::Body || stack.back().role == Role::Block)
      outline.all[scope].span.end = span(token(at)).end;
    scope = stack.back().scope;
    bodyComes |= stack.back().role == Role::Formals;
    stack.pop_back();
  }

  void closeTo(size_t depth) {
    while (stack.size() > depth)
      close();
    bodyComes = isWith = isParam = false;
    ahead.clear();
    graph.reset();
  }

  bool inBody() const { return !stack.empty() && stack.back().role == Role::Body; }

  void openParen() {
    StringRef name = before(1), word = before(2);
    bool isNamed = at >= 1 && (is(at - 1, TokenKind::Ident) || is(at - 1, TokenKind::Graph));
    if (isNamed && (word == "cell" || word == "network" || word == "subgraph"))
      return open(Role::Formals, name);
    if (!isNamed || name == "mesh" || word == "mesh" || frontend::isKeyword(name))
      return open(Role::Other, "");
    if (inBody())
      callee = name.str();
    open(Role::Arguments, name);
  }

  void openBrace() {
    if (stack.empty() && !bodyComes) {
      bool isNamed = at >= 2 && is(at - 2, TokenKind::Ident) && startsBlock(at - 2);
      open(Role::Block, isNamed ? before(2) : before(1));
      if (block)
        outline.found[*block].body = scope;
      block.reset();
      return;
    }
    if (bodyComes || before(1) == "else")
      return open(Role::Body, "");
    if (!inBody())
      return open(Role::Other, "");
    open(isParam ? Role::Attributes : Role::Arguments, isParam ? "param" : callee);
  }

  bool startsBlock(size_t index) const {
    StringRef front = outline.text.take_front(span(token(index)).begin);
    return front.empty() || front.ends_with("\n");
  }

  void step() {
    const Token &now = token(at);
    switch (now.kind) {
    case TokenKind::LParen:
      return openParen();
    case TokenKind::LBrace:
      return openBrace();
    case TokenKind::LBracket:
      return open(Role::Other, "");
    case TokenKind::RParen:
    case TokenKind::RBracket:
      if (!stack.empty() && !stack.back().isBrace)
        close();
      return;
    case TokenKind::RBrace:
      while (!stack.empty() && !stack.back().isBrace)
        close();
      if (!stack.empty())
        close();
      return;
    case TokenKind::Value:
      return value(now);
    case TokenKind::Ident:
      return word(now);
    default:
      return;
    }
  }

  void value(const Token &now) {
    if (!stack.empty() && stack.back().role == Role::Formals)
      return defineAhead(Kind::Input, now);
    if (isWith && inBody() && is(at + 1, TokenKind::Equal))
      return defineAhead(Kind::Value, now);
    if (stack.empty() && is(at + 1, TokenKind::Colon)) // of a dump
      return define(Kind::Input, now, 0);
    if (!inBody() || isWith)
      return;
    if (before(1) == "param") {
      isParam = true;
      return define(Kind::Parameter, now, scope);
    }
    if (before(1) != "=" && isDefinition()) {
      isParam = false;
      define(Kind::Value, now, scope);
    }
  }

  void word(const Token &now) {
    const Token &next = token(at + 1);
    bool isNamed = next.kind == TokenKind::Ident;
    if (!stack.empty() && stack.back().role == Role::Formals && next.kind == TokenKind::Colon)
      return defineAhead(Kind::Formal, now);
    if (stack.empty() && isNamed && (now.text == "cell" || now.text == "network")) {
      define(now.text == "cell" ? Kind::Cell : Kind::Network, next, 0);
      graph = outline.found.size() - 1;
    } else if (stack.empty() && now.text == "import" && next.kind == TokenKind::String) {
      define(Kind::Import, next, 0);
    } else if ((stack.empty() || inBody()) && isNamed && now.text == "const") {
      define(Kind::Constant, next, scope);
    } else if (stack.empty() && isBlock() && !bodyComes) {
      define(Kind::Block, now, 0);
      block = outline.found.size() - 1;
    } else if (inBody() && now.text == "repeat") {
      bodyComes = true;
      isParam = false;
      if (isNamed)
        defineAhead(Kind::Counter, next);
    } else if (inBody() && now.text == "if") {
      bodyComes = true;
      isParam = false;
    } else if (inBody() && now.text == "with") {
      isWith = true;
    }
  }

  Outline &outline;
  ArrayRef<Token> tokens;
  size_t at = 0;
  size_t scope = 0;
  std::vector<Open> stack;
  std::vector<size_t> ahead;          ///< symbols of the body that comes next
  std::optional<size_t> graph, block; ///< whose body comes next
  bool bodyComes = false, isWith = false, isParam = false;
  std::string callee; ///< of the statement
};

Span Outline::spanOf(const Token &token) const {
  size_t begin = token.kind == TokenKind::End ? text.size() : static_cast<size_t>(token.text.data() - text.data());
  return {begin, begin + token.text.size()};
}

Outline::Outline(StringRef text, size_t limit) : text(text), lexed(frontend::lex(text)) {
  while (count + 1 < lexed.tokens.size() && spanOf(lexed.tokens[count]).begin < limit)
    ++count;
  OutlineReader(*this).run();
}

const Symbol *Outline::resolve(StringRef name, bool isValue, size_t offset) const {
  const Symbol *best = nullptr;
  for (const Symbol &symbol : found)
    if (symbol.name == name && symbol.isValue() == isValue && symbol.kind != Kind::Import &&
        symbol.kind != Kind::Block && all[symbol.scope].span.contains(offset) &&
        (!best || all[symbol.scope].span.begin > all[best->scope].span.begin))
      best = &symbol;
  return best;
}

std::vector<const Symbol *> Outline::visible(size_t offset) const {
  StringMap<const Symbol *> innermost;
  for (const Symbol &symbol : found) {
    if (symbol.kind == Kind::Import || symbol.kind == Kind::Block || !all[symbol.scope].span.contains(offset))
      continue;
    const Symbol *&best = innermost[(symbol.isValue() ? "%" : "") + symbol.name];
    if (!best || all[symbol.scope].span.begin > all[best->scope].span.begin)
      best = &symbol;
  }
  std::vector<const Symbol *> result;
  for (const auto &entry : innermost)
    result.push_back(entry.second);
  llvm::sort(result, [](const Symbol *a, const Symbol *b) { return a->span.begin < b->span.begin; });
  return result;
}

} // namespace msc::lsp
