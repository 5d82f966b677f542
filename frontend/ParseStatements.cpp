// Bodies and what stands in them.
#include "frontend/ForeignNames.h"
#include "frontend/ParserImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace msc::frontend {
using namespace ast;

bool Parser::parseBody(Body &body) {
  Nesting level(*this);
  if (level.tooDeep())
    return false;
  Token open = peek();
  if (!expect(TokenKind::LBrace, "'{'"))
    return false;
  while (!is(TokenKind::RBrace) && !is(TokenKind::End)) {
    bool isBlock = is(TokenKind::Ident) && peek(1).kind == TokenKind::LBrace; // the brace of the body is missing
    if (isBlock)
      return expectClosing(TokenKind::RBrace, "'}'", open);
    Statement &statement = body.statements.emplace_back();
    const size_t first = at;
    if (parseStatement(statement))
      continue;
    statement.broken = true;
    if (!recoverInBody(first))
      return false;
  }
  body.close = placeOf(peek());
  return expectClosing(TokenKind::RBrace, "'}'", open);
}

/// Signs that numbers have, and the operators that do the same to tensors.
static StringRef operatorOf(TokenKind sign) {
  switch (sign) {
  case TokenKind::Plus: return "Add";
  case TokenKind::Minus: return "Sub";
  case TokenKind::Star: return "Mul";
  case TokenKind::Slash: return "RealDiv";
  default: return "";
  }
}

static bool isLoop(StringRef word) { return word == "for" || word == "while"; }
constexpr const char *loopHelp = "what a loop makes gets a name: write %y = repeat i in 0..4 with %h = %x { ... yield %b }";

static bool isSign(TokenKind kind) { return !operatorOf(kind).empty(); }

bool Parser::parseStatement(Statement &statement) {
  if (isWord("const"))
    return parseConst(statement.node.emplace<Const>());
  if (isWord("param"))
    return parseParam(statement.node.emplace<Param>());
  if (isWord("return") || isWord("yield"))
    return parseReturn(statement.node.emplace<Return>());
  if (isWord("Return"))
    return parseDumpReturn(statement.node.emplace<Return>());
  if (is(TokenKind::Value))
    return parseAssign(statement.node.emplace<Assign>());
  if (is(TokenKind::Ident) && peek(1).kind == TokenKind::LParen) {
    expected("a statement");
    error.help = ("give the result a name: %y = " + peek().text + "(...)").str();
    return false;
  }
  if (is(TokenKind::Ident) && (peek(1).kind == TokenKind::Equal || peek(1).kind == TokenKind::Comma)) {
    expected("a statement");
    error.help = ("names of values begin with '%': write %" + peek().text).str();
    Assign &meant = statement.node.emplace<Assign>();
    for (; is(TokenKind::Ident); accept(TokenKind::Comma)) {
      Result &result = meant.results.emplace_back();
      result.place = placeOf(peek());
      result.name = take().text.str();
    }
    return false;
  }
  expected("a statement");
  if (startsDefinition()) {
    const StringRef name = peek(1).text;
    error.help = ("a value is defined by its name alone: write " + Twine(name.starts_with("%") ? "" : "%") + name + " = ...").str();
    take();
    Assign &meant = statement.node.emplace<Assign>();
    for (; is(TokenKind::Value) || is(TokenKind::Ident); accept(TokenKind::Comma)) {
      Result &result = meant.results.emplace_back();
      result.place = placeOf(peek());
      result.name = take().text.ltrim('%').str();
    }
    return false;
  }
  if (isLoop(peek().text) || isWord("repeat"))
    error.help = loopHelp;
  else if (isWord("if"))
    error.help = "what is chosen gets a name: write %y = if ... { ... yield %a } else { ... yield %b }";
  else if (is(TokenKind::At))
    error.help = "the instance name stands in front of the attributes: Op(...) @ \"name\" {...}";
  else if (is(TokenKind::Slash) && (peek(1).kind == TokenKind::Slash || peek(1).kind == TokenKind::Star))
    error.help = "comments begin with '#'";
  else if (isSign(peek().kind))
    error.help = ("tensors have no signs, such as '" + peek().text + "': write %y = " + operatorOf(peek().kind) +
                  "(...) of named values")
                     .str();
  return false;
}

bool Parser::parseParam(Param &param) {
  take();
  Token name = peek();
  if (!expect(TokenKind::Value, "the name of a parameter, such as %w"))
    return false;
  param.name = name.text.drop_front().str();
  param.place = placeOf(name);
  if (!expect(TokenKind::Colon, "':' and a type") || !parseType(param.type))
    return false;
  if (accept(TokenKind::Equal)) {
    if (!is(TokenKind::Ident) || isKeyword(peek().text) || peek(1).kind != TokenKind::LParen) {
      expected("an initializer such as Normal(0.01)");
      if (is(TokenKind::Ident) && !isKeyword(peek().text))
        error.help = ("add its arguments, or (): write " + peek().text + "()").str();
      return false;
    }
    if (!parseCallExpr(param.initializer.emplace()))
      return false;
  }
  if (accept(TokenKind::At)) {
    if (!is(TokenKind::String))
      return expected("the old name in quotes behind '@'");
    param.drawName = take().text.drop_front().drop_back().str();
  }
  if (!parseAttributeLists(param.attributes))
    return false;
  param.origin = takeOrigin();
  return true;
}

bool Parser::parseResult(Result &result) {
  Token name = peek();
  if (!expect(TokenKind::Value, "the name of a value, such as %y"))
    return false;
  result.name = name.text.drop_front().str();
  if (is(TokenKind::DebugName))
    result.debugName = take().text.drop_front().drop_back().str();
  result.place = placeOf(name);
  return !accept(TokenKind::Colon) || parseType(result.type.emplace());
}

bool Parser::parseAssign(Assign &assign) {
  do {
    if (!parseResult(assign.results.emplace_back()))
      return false;
  } while (accept(TokenKind::Comma));
  if (!expect(TokenKind::Equal, "'='"))
    return false;
  if (isWord("repeat"))
    return parseRepeat(assign.rhs.emplace<Repeat>());
  if (isWord("if"))
    return parseIf(assign.rhs.emplace<If>());
  return parseCallRhs(assign.rhs.emplace<Call>());
}

bool Parser::parseCallRhs(Call &call) {
  call.hasWord = isWord("call") && peek(1).kind == TokenKind::Graph;
  if (call.hasWord)
    take();
  Token callee = peek();
  call.graph = is(TokenKind::Graph);
  if (!call.graph && (!is(TokenKind::Ident) || isKeyword(callee.text))) {
    expected("the name of an operator or cell");
    const bool isOfNumber = peek(2).kind == TokenKind::Int || peek(2).kind == TokenKind::Float;
    bool isSum = is(TokenKind::Value) && isSign(peek(1).kind) && (peek(2).kind == TokenKind::Value || isOfNumber);
    if (isSum)
      error.help = ("tensors have no signs, such as '" + peek(1).text + "': write %y = " +
                    operatorOf(peek(1).kind) + "(" + callee.text + ", " + peek(2).text + ")")
                       .str();
    else if (auto [value, method] = callee.text.rsplit('.');
             is(TokenKind::Value) && isIdent(method) && (peek(1).kind == TokenKind::LParen || peek(1).kind == TokenKind::DebugName)) {
      const bool isAll = peek(1).text == "()" || peek(2).kind == TokenKind::RParen; // a name in parentheses is one token behind a value
      error.help = "operators stand in front of what they read: write " + calledHere(method) + "(" + value.str() + (isAll ? ")" : ", ...)");
    } else if (StringRef name = callee.text.rsplit('.').second; is(TokenKind::Word) && isIdent(name) && peek(1).kind == TokenKind::LParen)
      error.help = "cells of an import have no prefix: write " + calledHere(name) + "(...)";
    return false;
  }
  take();
  call.callee = callee.text.drop_front(call.graph ? 1 : 0).str();
  call.place = placeOf(callee);
  Token open = peek();
  if (!is(TokenKind::LParen)) {
    expected("'('");
    if (isLoop(callee.text))
      error.help = loopHelp;
    else if (!call.graph)
      error.help = ("values are results of operators and cells: write " + callee.text + "(...)").str();
    return false;
  }
  take();
  if (!parseArgs(call.args, TokenKind::RParen, "')'", open))
    return false;
  if (accept(TokenKind::At)) {
    Token name = peek();
    if (!expect(TokenKind::String, "the instance name in quotes behind '@'"))
      return false;
    call.instance = name.text.drop_front().drop_back().str();
    call.instancePlace = placeOf(name);
  }
  if (!parseAttributeLists(call.attributes) || !parseOptionalSignature(call.signature))
    return false;
  call.origin = takeOrigin();
  return true;
}

bool Parser::parseAttributeLists(std::vector<Attributes> &lists) {
  while (is(TokenKind::LBrace) || (is(TokenKind::Ident) && peek(1).kind == TokenKind::Colon &&
                                   peek(2).kind == TokenKind::LBrace)) {
    Attributes &list = lists.emplace_back();
    Token first = peek();
    if (is(TokenKind::Ident)) {
      list.label = take().text.str();
      take();
    }
    if (!parseMap(list.fields))
      return false;
    list.place = from(first);
  }
  return true;
}

bool Parser::parseOptionalSignature(std::optional<Signature> &signature) {
  if (!accept(TokenKind::Colon))
    return true;
  Signature read;
  if (!parseTypeList(read.operands))
    return false;
  if (accept(TokenKind::Arrow) && !parseTypeList(read.results.emplace()))
    return false;
  signature = std::move(read);
  return true;
}

bool Parser::parseTypeList(std::vector<Type> &types) {
  Token open = peek();
  if (!expect(TokenKind::LParen, "'(' and types"))
    return false;
  while (!is(TokenKind::RParen)) {
    if (!parseType(types.emplace_back()))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  return expectClosing(TokenKind::RParen, "')'", open);
}

bool Parser::parseType(Type &type) {
  Token first = peek();
  if (is(TokenKind::DumpType)) {
    type.dump = take().text.str();
    type.place = placeOf(first);
    return true;
  }
  if (!is(TokenKind::Ident) || isKeyword(first.text))
    return expected("a type such as f32[16, 32]");
  type.element = take().text.str();
  Token open = peek();
  if (!expect(TokenKind::LBracket, "'[' and the sizes of the dimensions"))
    return false;
  while (!is(TokenKind::RBracket)) {
    if (!parseExpr(type.dims.emplace_back()))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  if (!expectClosing(TokenKind::RBracket, "']'", open))
    return false;
  type.place = from(first);
  return true;
}

bool Parser::parseReturn(Return &result) {
  Token first = take();
  result.kind = first.text == "yield" ? Return::Kind::Yield : Return::Kind::Return;
  result.place = placeOf(first);
  do {
    Arg &arg = result.args.emplace_back();
    if (is(TokenKind::Ident) && peek(1).kind == TokenKind::Colon) {
      Token key = take();
      take();
      arg.key = key.text.str();
      arg.keyPlace = placeOf(key);
    }
    if (!is(TokenKind::Value)) {
      expected("a value such as %y");
      if (is(TokenKind::Ident))
        error.help = ("names of values begin with '%': write %" + peek().text).str();
      return false;
    }
    Token value = take();
    arg.value.kind = Expr::Kind::Value;
    arg.value.text = value.text.drop_front().str();
    arg.value.place = placeOf(value);
  } while (accept(TokenKind::Comma));
  result.origin = takeOrigin();
  return true;
}

bool Parser::parseDumpReturn(Return &result) {
  Token first = take(), open = peek();
  result.kind = Return::Kind::Dump;
  result.place = placeOf(first);
  if (!expect(TokenKind::LParen, "'('") || !parseArgs(result.args, TokenKind::RParen, "')'", open) ||
      !parseOptionalSignature(result.signature))
    return false;
  result.origin = takeOrigin();
  return true;
}

bool Parser::parseRepeat(Repeat &repeat) {
  repeat.place = placeOf(take());
  Token variable = peek();
  if (!expect(TokenKind::Ident, "the name of the counter"))
    return false;
  repeat.variable = variable.text.str();
  if (!isWord("in"))
    return expected("'in'");
  take();
  if (!parseExpr(repeat.from))
    return false;
  if (!accept(TokenKind::DotDot)) {
    expected("'..'");
    const std::vector<Arg> &items = repeat.from.items;
    const bool isRange = repeat.from.kind == Expr::Kind::Call && repeat.from.text == "range" && items.size() == 1 && items.front().value.items.empty();
    if (isRange || repeat.from.kind == Expr::Kind::Int)
      error.help = "write repeat " + repeat.variable + " in 0.." + (isRange ? items.front().value.text : repeat.from.text);
    return false;
  }
  if (!parseExpr(repeat.to))
    return false;
  if (!isWord("with"))
    return expected("'with'");
  take();
  do {
    Carried &carried = repeat.carried.emplace_back();
    Token name = peek();
    if (!expect(TokenKind::Value, "a value such as %h") || !expect(TokenKind::Equal, "'='"))
      return false;
    Token initial = peek();
    if (!expect(TokenKind::Value, "a value such as %h0"))
      return false;
    carried.name = name.text.drop_front().str();
    carried.initial = initial.text.drop_front().str();
    carried.place = placeOf(name);
    carried.initialPlace = placeOf(initial);
  } while (accept(TokenKind::Comma));
  return parseBody(repeat.body);
}

bool Parser::parseIf(If &branches) {
  branches.place = placeOf(peek());
  while (true) {
    take(); // if
    Branch &branch = branches.branches.emplace_back();
    if (!parseExpr(branch.condition.emplace()) || !parseBody(branch.body))
      return false;
    if (!isWord("else"))
      return expected("'else', since both sides give a value");
    take();
    if (isWord("if"))
      continue;
    return parseBody(branches.branches.emplace_back().body);
  }
}

} // namespace msc::frontend
