// What stands at the top level of a file.
#include "frontend/ParserImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace msc::frontend {
using namespace ast;

void Parser::parseFile(File &file) {
  while (!is(TokenKind::End)) {
    bool isDumpParam = is(TokenKind::Value) && peek(1).kind == TokenKind::Colon && peek(2).kind == TokenKind::DumpType;
    if (!allItems && !isDumpParam && !startsItem()) { // the rest of an item that was lost
      take();
      continue;
    }
    size_t items = file.items.size();
    if (parseItem(file))
      continue;
    file.items.resize(items);
    if (!recoverInFile())
      break;
  }
  file.isDump = any_of(file.items, [](const Item &item) {
    const auto *header = std::get_if<Header>(&item);
    return header && StringRef(header->text).starts_with("#IR entry");
  });
}

bool Parser::parseItem(File &file) {
  auto add = [&]<typename T>(T) -> T & { return std::get<T>(file.items.emplace_back(T())); };
  if (is(TokenKind::Header))
    return parseHeader(add(Header()));
  if (is(TokenKind::Value))
    return parseDumpParam(add(DumpParam()));
  if (isWord("import"))
    return parseImport(add(Import()));
  if (isWord("const"))
    return parseConst(add(Const()));
  if (isWord("mesh"))
    return parseMesh(add(Mesh()));
  if (isWord("cell") || isWord("network"))
    return parseGraph(add(Graph()));
  if (isWord("subgraph"))
    return parseSubgraph(add(Subgraph()));
  if (is(TokenKind::Ident) && !isKeyword(peek().text))
    return parseBlock(add(Block()));
  return expected("a network, a cell, a constant or a block such as 'train {...}'");
}

bool Parser::parseImport(Import &item) {
  take();
  Token path = peek();
  if (!expect(TokenKind::String, "the path of a file in quotes")) {
    error.help = "layers such as Linear are those of import \"nn.mir\"";
    return false;
  }
  item.path = path.text.drop_front().drop_back().str();
  item.place = placeOf(path);
  return true;
}

bool Parser::parseConst(Const &item) {
  take();
  Token name = peek();
  if (!is(TokenKind::Ident) || isKeyword(name.text))
    return expected("the name of a constant");
  take();
  item.name = name.text.str();
  item.place = placeOf(name);
  if (!expect(TokenKind::Equal, "'='"))
    return false;
  return startsStatement() ? expected("an expression") : parseExpr(item.value); // not the value of the next line
}

bool Parser::parseMesh(Mesh &item) {
  item.place = placeOf(take());
  if (is(TokenKind::Ident))
    item.name = take().text.str();
  Token open = peek();
  if (!expect(TokenKind::LParen, "'('") || !parseArgs(item.axes, TokenKind::RParen, "')'", open))
    return false;
  item.origin = takeOrigin();
  return true;
}

bool Parser::parseFormal(Formal &formal) {
  Token name = peek();
  formal.place = placeOf(name);
  if (accept(TokenKind::Value)) {
    formal.isValue = true;
    formal.name = name.text.drop_front().str();
    return !accept(TokenKind::Colon) || parseType(formal.type.emplace());
  }
  if (!is(TokenKind::Ident) || isKeyword(name.text))
    return expected("a formal such as '%x' or 'channels: int'");
  take();
  formal.name = name.text.str();
  if (!expect(TokenKind::Colon, "':' and int, float, bool or string"))
    return false;
  if (!isWord("int") && !isWord("float") && !isWord("bool") && !isWord("string")) {
    expected("int, float, bool or string");
    if (is(TokenKind::Ident) && peek(1).kind == TokenKind::LBracket)
      error.help = "names of tensors begin with '%': write %" + formal.name;
    return false;
  }
  formal.kind = take().text.str();
  return !accept(TokenKind::Equal) || parseExpr(formal.defaultValue.emplace());
}

bool Parser::parseGraph(Graph &item) {
  item.isNetwork = take().text == "network";
  Token name = peek();
  if (!is(TokenKind::Ident) || isKeyword(name.text))
    return expected(item.isNetwork ? "the name of the network" : "the name of the cell");
  take();
  item.name = name.text.str();
  item.place = placeOf(name);
  Token open = peek();
  if (!expect(TokenKind::LParen, "'('"))
    return false;
  while (!is(TokenKind::RParen)) {
    if (!parseFormal(item.formals.emplace_back()))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  if (!expectClosing(TokenKind::RParen, "')'", open) || !parseBody(item.body))
    return false;
  item.origin = takeOrigin();
  return true;
}

bool Parser::parseBlock(Block &block) {
  Token kind = take();
  block.kind = kind.text.str();
  block.place = placeOf(kind);
  if (is(TokenKind::Ident) && !isKeyword(peek().text))
    block.name = take().text.str();
  if (!is(TokenKind::LBrace)) {
    expected("'{' behind '" + block.kind + "'");
    for (llvm::StringRef word : {"network", "cell", "const", "mesh", "import"})
      if (word != block.kind && word.equals_insensitive(block.kind))
        error.help = ("write " + word).str();
    return false;
  }
  if (!parseMap(block.fields))
    return false;
  block.origin = takeOrigin();
  return true;
}

bool Parser::parseHeader(Header &header) {
  Token line = take();
  header.text = line.text.str();
  header.place = placeOf(line);
  while (is(TokenKind::AttrLine))
    header.lines.push_back(take().text.trim().str());
  return true;
}

bool Parser::parseDumpParam(DumpParam &param) {
  Token name = take();
  param.name = name.text.drop_front().str();
  param.place = placeOf(name);
  if (!expect(TokenKind::Colon, "':' and the type of a dump's parameter"))
    return false;
  if (!is(TokenKind::DumpType))
    return expected("a type such as <Tensor[Float32], (16, 32)>");
  if (!parseType(param.type))
    return false;
  if (accept(TokenKind::Colon)) {
    if (!isWord("has_default"))
      return expected("'has_default'");
    take();
    param.hasDefault = true;
  }
  param.origin = takeOrigin();
  return true;
}

bool Parser::parseSubgraph(Subgraph &graph) {
  take();
  Token name = peek();
  if (!expect(TokenKind::Graph, "'@' and the name of the graph"))
    return false;
  graph.name = name.text.drop_front().str();
  graph.place = placeOf(name);
  graph.origin = takeOrigin();
  if (isWord("parent")) {
    take();
    if (!expect(TokenKind::Colon, "':'") || !expect(TokenKind::LBracket, "'['") || !isWord("subgraph"))
      return error.message.empty() ? expected("'subgraph'") : false;
    take();
    graph.parent = is(TokenKind::Graph) ? take().text.drop_front().str() : "";
    if (!expect(TokenKind::RBracket, "']'"))
      return false;
  }
  Token open = peek();
  if (!expect(TokenKind::LParen, "'('"))
    return false;
  while (!is(TokenKind::RParen)) {
    if (!parseResult(graph.params.emplace_back()))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  if (!expectClosing(TokenKind::RParen, "')'", open) || !parseBody(graph.body))
    return false;
  Origin below = takeOrigin();
  if (graph.origin.file.empty())
    graph.origin = below;
  return true;
}

} // namespace msc::frontend
