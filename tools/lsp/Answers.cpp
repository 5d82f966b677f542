// Hover, definitions, completion, symbols, layout.
#include "tools/lsp/Server.h"

#include "compiler/Layers.h"
#include "frontend/Formatter.h"
#include "runtime/messages/Catalogue.h"
#include "tools/Ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cctype>

namespace msc::lsp {

using frontend::Token;
using frontend::TokenKind;
using Kind = Symbol::Kind;

namespace {

// Kinds of the protocol.
constexpr int completesFunction = 3, completesVariable = 6, completesProperty = 10, completesValue = 12,
              completesKeyword = 14, completesConstant = 21, completesClass = 7;

/// Attributes that msc gives a meaning everywhere.
struct CommonAttribute {
  const char *name, *help;
};
constexpr CommonAttribute ofCalls[] = {
    {"in_strategy", "pieces per dimension, one tuple per operand: ((2, 4), (4, 1))"},
    {"out_strategy", "pieces per dimension, one tuple per result"},
    {"sharding", "axes of a mesh per dimension of the result: (data, None)"},
};
constexpr CommonAttribute ofParameters[] = {
    {"requires_grad", "false: state that is not trained"},
    {"sharding", "axes of a mesh per dimension: (None, model)"},
};

/// The token that a cursor touches; of two, the one behind it.
const Token *tokenAt(const Outline &outline, size_t offset) {
  const Token *best = nullptr;
  for (const Token &token : outline.tokens())
    if (Span span = outline.spanOf(token); span.contains(offset) && span.begin != span.end)
      best = &token;
  return best;
}

/// "Linear(%x, out: int, bias: bool = true)": the line that defines a cell.
std::string headOf(llvm::StringRef text, const Symbol &symbol) {
  return text.drop_front(symbol.span.begin).take_until([](char c) { return c == '{' || c == '\n'; }).trim().str();
}

Json markdown(const std::string &text) {
  return {{"kind", "markdown"}, {"value", text}};
}

std::string fenced(const std::string &code) {
  return "```mir\n" + code + "\n```\n";
}

std::string describe(const compiler::OperatorDescription &op) {
  std::string text = fenced(tools::signature(op)) + op.description + "\n";
  for (const std::string &formula : op.formulas)
    text += "\n    " + formula + "\n";
  return text;
}

std::string describe(const compiler::OperatorAttribute &attribute) {
  std::string type = attribute.words.empty() ? attribute.type : llvm::join(attribute.words, " | ");
  return fenced(attribute.name + ": " + type + (attribute.defaultText ? " = " + *attribute.defaultText : "")) +
         attribute.summary;
}

/// `text` begins with a formal: that, up to the comma or the parenthesis behind it.
std::string formalText(llvm::StringRef text) {
  int depth = 0;
  return text
      .take_until([&](char c) {
        depth += (c == '(') - (c == ')');
        return c == '\n' || depth < 0 || (c == ',' && depth == 0);
      })
      .rtrim()
      .str();
}

} // namespace

const std::vector<compiler::OperatorDescription> &Server::operators() {
  if (!described) {
    Result<std::vector<compiler::OperatorDescription>> all = compiler::describeOperators();
    described = all ? std::move(*all) : std::vector<compiler::OperatorDescription>();
  }
  return *described;
}

const compiler::OperatorDescription *Server::operatorOf(const std::string &name) {
  auto found = llvm::find_if(operators(), [&](const auto &op) { return op.name == name; });
  return found == operators().end() ? nullptr : &*found;
}

/// "%h: f32[16, 16]", the operator, its strategy and who decided it.
std::string Server::valueText(const Document &document, const Symbol &symbol) const {
  const auto &values = document.analysis->values;
  auto found = values.find(symbol.span.begin);
  const char *what = symbol.kind == Kind::Parameter ? "param " : "";
  if (found == values.end())
    return fenced(what + ("%" + symbol.name));
  const compiler::ValueFacts &facts = found->second;
  std::string text;
  for (const std::string &type : facts.types)
    text += (text.empty() ? "" : "\n") + std::string(what) + "%" + symbol.name + ": " + type;
  text = fenced(text);
  if (!facts.op.empty())
    text += "\n" + facts.op + (facts.instance.empty() ? "" : " @ \"" + facts.instance + "\"");
  if (!facts.inStrategy.empty())
    text += "\n\n`in_strategy: " + facts.inStrategy + "`" + (facts.origin.empty() ? "" : " — " + facts.origin);
  if (!facts.outStrategy.empty())
    text += "\n\n`out_strategy: " + facts.outStrategy + "`";
  if (facts.copies > 1)
    text += "\n\n" + messages::translated(std::to_string(facts.copies) + " of them; the first is shown");
  return text;
}

Server::Answer Server::hover(const Document &document, const std::string &path, size_t offset) {
  const std::string &content = document.text.content();
  Outline outline(content);
  const Token *token = tokenAt(outline, offset);
  if (!token)
    return Json();
  Span span = outline.spanOf(*token);
  auto shown = [&](const std::string &text) -> Answer {
    return Json{{"contents", markdown(text)}, {"range", rangeOf(document.text, span)}};
  };
  std::string name = token->text.str();
  if (token->kind == TokenKind::Value) {
    const Symbol *symbol = outline.resolve(llvm::StringRef(name).drop_front(), /*isValue=*/true, offset);
    return symbol ? shown(valueText(document, *symbol)) : Answer(Json());
  }
  if (token->kind != TokenKind::Ident)
    return Json();
  const Context around = Outline(content, span.begin).context();
  bool isKey = token + 1 != outline.tokens().end() && token[1].kind == TokenKind::Colon;
  bool isCallee = token + 1 != outline.tokens().end() && token[1].kind == TokenKind::LParen;
  if (isKey && (around.role == Role::Arguments || around.role == Role::Attributes)) {
    if (const auto *op = operatorOf(around.name))
      for (const compiler::OperatorAttribute &attribute : op->attributes)
        if (attribute.name == name)
          return shown(describe(attribute));
    for (const CommonAttribute &common :
         around.role == Role::Arguments ? llvm::ArrayRef(ofCalls) : llvm::ArrayRef(ofParameters))
      if (common.name == name)
        return shown(fenced(name) + common.help);
  }
  if (isKey && around.role == Role::Block && around.name == "context")
    for (const compiler::ContextOption &option : compiler::contextOptions())
      if (option.name == name)
        return shown(fenced(name) + option.help);
  if (const auto *op = isCallee ? operatorOf(name) : nullptr)
    return shown(describe(*op));
  if (const Symbol *symbol = outline.resolve(name, /*isValue=*/false, offset); symbol && symbol->kind == Kind::Formal)
    return shown(fenced(formalText(llvm::StringRef(content).drop_front(symbol->span.begin))));
  else if (symbol)
    return shown(fenced(llvm::StringRef(content)
                            .drop_front(symbol->span.begin)
                            .take_until([](char c) { return c == '\n'; })
                            .rtrim(" {")
                            .str()) +
                 (symbol->kind == Kind::Cell ? compiler::commentAbove(content, symbol->span.begin) : ""));
  if (isCallee)
    for (const Library &library : readImports(outline, path, compiler::libraryFolder())) {
      Outline other(library.content);
      if (const Symbol *symbol = other.resolve(name, /*isValue=*/false, 0))
        return shown(fenced("cell " + headOf(library.content, *symbol)) + compiler::commentAbove(library.content, symbol->span.begin) + "\n\n" + library.path);
    }
  return Json();
}

Server::Answer Server::definition(const Document &document, const std::string &uri, const std::string &path,
                                  size_t offset) {
  Outline outline(document.text.content());
  const Token *token = tokenAt(outline, offset);
  if (!token)
    return Json();
  std::vector<Library> libraries = readImports(outline, path, compiler::libraryFolder());
  if (token->kind == TokenKind::String) {
    for (const Symbol &symbol : outline.symbols())
      if (symbol.kind == Kind::Import && symbol.span.contains(offset))
        for (const Library &library : libraries)
          if (llvm::StringRef(library.path).ends_with(symbol.name))
            return Json{{"uri", uriOf(library.path)}, {"range", rangeOf(Text("", inBytes), {0, 0})}};
    return Json();
  }
  bool isValue = token->kind == TokenKind::Value;
  llvm::StringRef name = isValue ? token->text.drop_front() : token->text;
  if (const Symbol *symbol = outline.resolve(name, isValue, offset))
    return Json{{"uri", uri}, {"range", rangeOf(document.text, symbol->span)}};
  for (const Library &library : libraries) {
    Outline other(library.content);
    if (const Symbol *symbol = isValue ? nullptr : other.resolve(name, /*isValue=*/false, 0))
      return Json{{"uri", uriOf(library.path)}, {"range", rangeOf(Text(library.content, inBytes), symbol->span)}};
  }
  return Json();
}

Server::Answer Server::completion(const Document &document, const std::string &path, size_t offset) {
  llvm::StringRef content = document.text.content();
  size_t begin = offset; // of the word that is being typed
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(content[begin - 1])) ||
                       llvm::StringRef("_.%").contains(content[begin - 1])))
    --begin;
  bool isValue = begin < content.size() && content[begin] == '%';
  Outline before(content, begin);
  const Context &around = before.context();
  auto previous = [&](size_t distance) {
    llvm::ArrayRef<Token> tokens = before.tokens();
    return tokens.size() >= distance ? tokens[tokens.size() - distance] : Token();
  };
  Outline outline(content);
  Json items = Json::array();
  auto add = [&](const std::string &label, int kind, const std::string &detail, const std::string &text,
                 const std::string &insert) {
    Json item = {{"label", label}, {"kind", kind}};
    if (!detail.empty())
      item["detail"] = detail;
    if (!text.empty())
      item["documentation"] = markdown(text);
    item["textEdit"] = {{"range", rangeOf(document.text, {begin, offset})},
                        {"newText", insert.empty() ? label : insert}};
    items.push_back(std::move(item));
  };
  auto addVisible = [&](bool values) {
    for (const Symbol *symbol : outline.visible(offset))
      if (symbol->isValue() == values && symbol->kind != Kind::Cell && symbol->kind != Kind::Network)
        add((values ? "%" : "") + symbol->name, values ? completesVariable : completesConstant, "", "", "");
  };
  auto addCells = [&](const Outline &other, llvm::StringRef text) {
    for (const Symbol &symbol : other.symbols())
      if (symbol.kind == Kind::Cell)
        add(symbol.name, completesClass, headOf(text, symbol), "", "");
  };
  Token last = previous(1);
  if (isValue) {
    addVisible(/*values=*/true);
  } else if (around.role == Role::Arguments && last.kind == TokenKind::Colon) {
    if (const auto *op = operatorOf(around.name))
      for (const compiler::OperatorAttribute &attribute : op->attributes)
        if (attribute.name == previous(2).text)
          for (const std::string &word : attribute.words)
            add(word, completesValue, attribute.name, "", "");
    addVisible(/*values=*/false);
  } else if (around.role == Role::Arguments) {
    if (const auto *op = operatorOf(around.name))
      for (const compiler::OperatorAttribute &attribute : op->attributes)
        add(attribute.name, completesProperty, attribute.type, describe(attribute), attribute.name + ": ");
    for (const CommonAttribute &common : ofCalls)
      add(common.name, completesProperty, "", common.help, common.name + std::string(": "));
    addVisible(/*values=*/true);
    addVisible(/*values=*/false);
  } else if (around.role == Role::Attributes) {
    for (const CommonAttribute &common : ofParameters)
      add(common.name, completesProperty, "", common.help, common.name + std::string(": "));
  } else if (around.role == Role::Block && around.name == "context" && last.kind != TokenKind::Colon) {
    for (const compiler::ContextOption &option : compiler::contextOptions())
      if (!option.help.empty())
        add(option.name, completesProperty, "", option.help, option.name + ": ");
  } else if (around.role == Role::Body && last.kind == TokenKind::Equal) {
    for (const compiler::OperatorDescription &op : operators())
      if (op.differentiable)
        add(op.name, completesFunction, tools::signature(op), describe(op), "");
    addCells(outline, content);
    for (const Library &library : readImports(outline, path, compiler::libraryFolder()))
      addCells(Outline(library.content), library.content);
    add("repeat", completesKeyword, "", "", "");
    add("if", completesKeyword, "", "", "");
  } else if (around.role == Role::Body) {
    for (const char *word : {"param", "const", "return", "yield"})
      add(word, completesKeyword, "", "", "");
  } else if (around.role == Role::File) {
    for (const char *word : {"network", "cell", "const", "mesh", "import", "dataset", "train", "checkpoint", "context"})
      add(word, completesKeyword, "", "", "");
  }
  return Json{{"isIncomplete", false}, {"items", items}};
}

Server::Answer Server::symbols(const Document &document) const {
  Outline outline(document.text.content());
  auto kindOf = [](Kind kind) {
    switch (kind) {
    case Kind::Network:
    case Kind::Cell:
      return 5; // class
    case Kind::Constant:
      return 14;
    case Kind::Parameter:
      return 8; // field
    case Kind::Block:
      return 3; // namespace
    default:
      return 13; // variable
    }
  };
  // Networks and cells hold their values; inner scopes belong to them.
  std::vector<Json> nodes;
  std::map<size_t, size_t> owner; // scope -> node
  Json top = Json::array();
  for (const Symbol &symbol : outline.symbols()) {
    bool isItem = symbol.scope == 0 && symbol.kind != Kind::Import && symbol.kind != Kind::Input;
    bool isChild = symbol.kind == Kind::Parameter || symbol.kind == Kind::Value || symbol.kind == Kind::Input;
    if (!isItem && !isChild)
      continue;
    Span whole = symbol.span;
    if (symbol.body != 0)
      whole.end = std::max(whole.end, outline.scopes()[symbol.body].span.end);
    Json node = {{"name", (symbol.isValue() ? "%" : "") + symbol.name},
                 {"kind", kindOf(symbol.kind)},
                 {"range", rangeOf(document.text, whole)},
                 {"selectionRange", rangeOf(document.text, symbol.span)}};
    if (isItem && !isChild) {
      if (symbol.body != 0) {
        owner[symbol.body] = nodes.size();
        node["children"] = Json::array();
      }
      nodes.push_back(std::move(node));
      continue;
    }
    size_t scope = symbol.scope;
    while (scope != 0 && !owner.count(scope))
      scope = outline.scopes()[scope].parent;
    if (scope == 0)
      nodes.push_back(std::move(node));
    else
      nodes[owner[scope]]["children"].push_back(std::move(node));
  }
  for (Json &node : nodes)
    top.push_back(std::move(node));
  return top;
}

Server::Answer Server::formatting(const Document &document) const {
  const std::string &content = document.text.content();
  auto formatted = frontend::formatText(content);
  const std::string *text = std::get_if<std::string>(&formatted);
  if (!text || *text == content) // mistakes are shown already
    return Json::array();
  return Json::array({{{"range", rangeOf(document.text, {0, content.size()})}, {"newText", *text}}});
}

} // namespace msc::lsp
