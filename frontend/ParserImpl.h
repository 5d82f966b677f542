// The recursive-descent parser; private to the frontend. Every method returns false after reporting through `fail`.
#pragma once

#include "frontend/Lexer.h"
#include "frontend/Parser.h"

#include "llvm/ADT/Twine.h"

namespace msc::frontend {

class Parser {
public:
  explicit Parser(llvm::StringRef text);

  void parseFile(ast::File &file);
  /// One expression and nothing behind it.
  bool parseLoneExpr(ast::Expr &expr);
  SyntaxError takeError() { return std::move(error); }
  std::vector<SyntaxError> takeErrors() { return std::move(errors); }
  bool hasAllItems() const { return allItems; }

private:
  // Tokens.
  const Token &peek(size_t ahead = 0) const;
  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool isWord(llvm::StringRef word, size_t ahead = 0) const;
  Token take() { return tokens.tokens[at < tokens.tokens.size() - 1 ? at++ : at]; }
  bool accept(TokenKind kind);
  bool expect(TokenKind kind, llvm::StringRef what);
  /// Expects the bracket that closes the one at `open`; the error shows both.
  bool expectClosing(TokenKind kind, llvm::StringRef what, const Token &open);
  /// The same behind the entries of a list; tells the usual mistake, a missing comma.
  bool closeEntries(TokenKind kind, llvm::StringRef what, const Token &open);
  static ast::Place placeOf(const Token &token);
  ast::Place from(const Token &first) const;
  bool fail(const llvm::Twine &message);
  bool failAt(const Token &token, const llvm::Twine &message);
  bool expected(llvm::StringRef what);

  // Recovery: each remembers the mistake and skips to where the next thing may begin; false if there is no such place.
  bool startsLine(size_t ahead = 0) const;
  bool startsStatement() const;
  bool startsDefinition() const;
  bool startsItem() const;
  /// In a statement that begins with token `first`.
  bool recoverInBody(size_t first);
  bool recoverInFile();
  bool rememberError();

  // Items.
  bool parseItem(ast::File &file);
  bool parseImport(ast::Import &item);
  bool parseConst(ast::Const &item);
  bool parseMesh(ast::Mesh &item);
  bool parseGraph(ast::Graph &item);
  bool parseFormal(ast::Formal &formal);
  bool parseBlock(ast::Block &block);
  bool parseHeader(ast::Header &header);
  bool parseDumpParam(ast::DumpParam &param);
  bool parseSubgraph(ast::Subgraph &graph);

  // Statements.
  bool parseBody(ast::Body &body);
  bool parseStatement(ast::Statement &statement);
  bool parseParam(ast::Param &param);
  bool parseAssign(ast::Assign &assign);
  bool parseResult(ast::Result &result);
  bool parseReturn(ast::Return &result);
  bool parseDumpReturn(ast::Return &result);
  bool parseCallRhs(ast::Call &call);
  bool parseRepeat(ast::Repeat &repeat);
  bool parseIf(ast::If &branches);
  bool parseAttributeLists(std::vector<ast::Attributes> &lists);
  bool parseOptionalSignature(std::optional<ast::Signature> &signature);
  bool parseTypeList(std::vector<ast::Type> &types);
  bool parseType(ast::Type &type);

  // Expressions.
  bool parseExpr(ast::Expr &expr);
  bool parseChain(ast::Expr &expr, unsigned weakest);
  bool parseUnary(ast::Expr &expr);
  bool parsePrimary(ast::Expr &expr);
  bool parseCallExpr(ast::Expr &expr);
  bool parseMap(std::vector<ast::Arg> &fields);
  bool parseKey(ast::Arg &field);
  bool parseColon(llvm::StringRef key);
  /// The help for tuples behind the one that a key has.
  std::string helpForTuples(const ast::Arg &field) const;
  bool parseArgs(std::vector<ast::Arg> &args, TokenKind close, llvm::StringRef closeText, const Token &open);

  /// Reads the comments `# scope:` and `# In file` that stand right behind the last token.
  ast::Origin takeOrigin();

  struct Nesting; // counts depth, see Parser.cpp
  Tokens tokens;
  size_t at = 0;
  size_t nextRemark = 0;
  int depth = 0;
  SyntaxError error;
  std::vector<SyntaxError> errors; ///< those that were recovered from
  bool allItems = true;
  bool hopeless = false; ///< nested too deeply: no recovery
};

/// Guards one level of nesting: `Nesting level(*this); if (level.tooDeep()) return false;`.
struct Parser::Nesting {
  explicit Nesting(Parser &parser) : parser(parser) { ++parser.depth; }
  ~Nesting() { --parser.depth; }
  bool tooDeep() {
    return parser.depth > maximumNesting &&
           !(parser.hopeless = true, parser.fail("nested too deeply: more than " + llvm::Twine(maximumNesting) + " levels"));
  }
  Parser &parser;
};

} // namespace msc::frontend
