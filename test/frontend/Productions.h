// Counts which productions of the grammar a syntax tree uses.
#pragma once

#include "frontend/Ast.h"
#include "frontend/Lexer.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>

namespace msc::test {

/// Number of uses by production, e.g. "stmt: param" or "expr: a * b". Those that never occurred stand there with 0.
class Productions {
public:
  Productions() {
    for (const char *name :
         {"item: import", "item: const", "item: mesh", "item: named mesh", "item: cell", "item: network", "item: block",
          "item: named block", "item: header", "item: header with attributes", "item: parameter of a dump",
          "item: parameter with has_default", "item: subgraph", "item: subgraph with parent", "item: subgraph with named parent",
          "formal: value", "formal: typed value", "formal: int", "formal: float", "formal: bool", "formal: string",
          "formal: default", "stmt: const", "stmt: param", "stmt: param with initializer", "stmt: param with old name",
          "stmt: param with attributes", "stmt: assign", "stmt: several results", "stmt: return", "stmt: yield",
          "stmt: Return", "ret: named", "result: debug name", "result: type", "rhs: call", "rhs: call of a graph", "rhs: call @graph",
          "rhs: instance name", "rhs: attributes", "rhs: labelled attributes", "rhs: repeat", "rhs: several carried values",
          "rhs: if", "rhs: else if", "sig: operands", "sig: results", "type: written", "type: scalar", "type: of a dump",
          "key: word", "key: words", "key: keyword", "key: string", "arg: named", "map: empty", "args: empty",
          "origin: scope", "origin: file", "expr: value", "expr: outer", "expr: int", "expr: float", "expr: string",
          "expr: word", "expr: graph", "expr: call", "expr: map", "expr: tuple", "expr: list", "expr: -a", "expr: a || b",
          "expr: a && b", "expr: a == b", "expr: a != b", "expr: a < b", "expr: a > b", "expr: a <= b", "expr: a >= b",
          "expr: a + b", "expr: a - b", "expr: a * b", "expr: a / b", "expr: a % b"})
      counts[name] = 0;
  }

  void count(const frontend::ast::File &file) {
    for (const frontend::ast::Item &item : file.items)
      std::visit([&](const auto &alternative) { visit(alternative); }, item);
  }

  std::map<std::string, int> counts;

private:
  using Arg = frontend::ast::Arg;
  using Expr = frontend::ast::Expr;

  void add(const std::string &production) { ++counts[production]; }
  void addIf(bool used, const std::string &production) { counts[production] += used; }

  void visit(const frontend::ast::Import &) { add("item: import"); }
  void visit(const frontend::ast::Const &item) { add("item: const"), visit(item.value); }
  void visit(const frontend::ast::Mesh &item) {
    add(item.name.empty() ? "item: mesh" : "item: named mesh");
    args(item.axes);
    visit(item.origin);
  }
  void visit(const frontend::ast::Block &item) {
    add(item.name.empty() ? "item: block" : "item: named block");
    fields(item.fields);
    visit(item.origin);
  }
  void visit(const frontend::ast::Header &item) {
    add(item.lines.empty() ? "item: header" : "item: header with attributes");
  }
  void visit(const frontend::ast::DumpParam &item) {
    add(item.hasDefault ? "item: parameter with has_default" : "item: parameter of a dump");
    visit(item.type);
  }
  void visit(const frontend::ast::Subgraph &item) {
    add(!item.parent ? "item: subgraph" : item.parent->empty() ? "item: subgraph with parent" : "item: subgraph with named parent");
    visit(item.body);
  }
  void visit(const frontend::ast::Graph &item) {
    add(item.isNetwork ? "item: network" : "item: cell");
    for (const frontend::ast::Formal &formal : item.formals) {
      add(!formal.isValue ? "formal: " + formal.kind : formal.type ? "formal: typed value" : "formal: value");
      if (formal.type)
        visit(*formal.type);
      if (formal.defaultValue)
        add("formal: default"), visit(*formal.defaultValue);
    }
    visit(item.body);
  }

  void visit(const frontend::ast::Body &body) {
    for (const frontend::ast::Statement &statement : body.statements)
      std::visit([&](const auto &alternative) { statementOf(alternative); }, statement.node);
  }
  void statementOf(const frontend::ast::Const &item) { add("stmt: const"), visit(item.value); }
  void statementOf(const frontend::ast::Param &item) {
    add("stmt: param");
    addIf(item.initializer.has_value(), "stmt: param with initializer");
    addIf(item.drawName.has_value(), "stmt: param with old name");
    addIf(!item.attributes.empty(), "stmt: param with attributes");
    visit(item.type);
    if (item.initializer)
      visit(*item.initializer);
  }
  void statementOf(const frontend::ast::Return &item) {
    using Kind = frontend::ast::Return::Kind;
    add(item.kind == Kind::Return ? "stmt: return" : item.kind == Kind::Yield ? "stmt: yield" : "stmt: Return");
    for (const Arg &arg : item.args)
      addIf(!arg.key.empty(), "ret: named");
    signature(item.signature);
  }
  void statementOf(const frontend::ast::Assign &item) {
    add(item.results.size() > 1 ? "stmt: several results" : "stmt: assign");
    for (const frontend::ast::Result &result : item.results) {
      addIf(result.debugName.has_value(), "result: debug name");
      addIf(result.type.has_value(), "result: type");
    }
    std::visit([&](const auto &alternative) { visit(alternative); }, item.rhs);
  }
  void visit(const frontend::ast::Call &call) {
    add(call.hasWord ? "rhs: call @graph" : call.graph ? "rhs: call of a graph" : "rhs: call");
    addIf(call.instance.has_value(), "rhs: instance name");
    for (const frontend::ast::Attributes &list : call.attributes)
      add(list.label.empty() ? "rhs: attributes" : "rhs: labelled attributes"), fields(list.fields);
    args(call.args);
    signature(call.signature);
    visit(call.origin);
  }
  void visit(const frontend::ast::Repeat &repeat) {
    add("rhs: repeat");
    addIf(repeat.carried.size() > 1, "rhs: several carried values");
    visit(repeat.from), visit(repeat.to), visit(repeat.body);
  }
  void visit(const frontend::ast::If &branches) {
    add(branches.branches.size() > 2 ? "rhs: else if" : "rhs: if");
    for (const frontend::ast::Branch &branch : branches.branches)
      visit(branch.body);
  }
  void visit(const frontend::ast::Type &type) {
    add(!type.dump.empty() ? "type: of a dump" : type.dims.empty() ? "type: scalar" : "type: written");
  }
  void visit(const frontend::ast::Origin &origin) {
    addIf(!origin.scope.empty(), "origin: scope");
    addIf(!origin.file.empty(), "origin: file");
  }
  void signature(const std::optional<frontend::ast::Signature> &signature) {
    if (signature)
      add(signature->results ? "sig: results" : "sig: operands");
  }

  void args(const std::vector<Arg> &list) {
    addIf(list.empty(), "args: empty");
    for (const Arg &arg : list) {
      addIf(!arg.key.empty(), "arg: named");
      visit(arg.value);
    }
  }
  void fields(const std::vector<Arg> &list) {
    addIf(list.empty(), "map: empty");
    for (const Arg &field : list) {
      llvm::StringRef key = field.key;
      add(key.starts_with("\"")                    ? "key: string"
          : key.contains(' ')                      ? "key: words"
          : frontend::isKeyword(key)               ? "key: keyword"
                                                   : "key: word");
      visit(field.value);
    }
  }
  void visit(const Expr &expr) {
    switch (expr.kind) {
    case Expr::Kind::Value: return add("expr: value");
    case Expr::Kind::Outer: return add("expr: outer");
    case Expr::Kind::Int: return add("expr: int");
    case Expr::Kind::Float: return add("expr: float");
    case Expr::Kind::String: return add("expr: string");
    case Expr::Kind::Word: return add("expr: word");
    case Expr::Kind::Graph: return add("expr: graph");
    case Expr::Kind::Call: return add("expr: call"), args(expr.items);
    case Expr::Kind::Map: return add("expr: map"), fields(expr.items);
    case Expr::Kind::Tuple: return add("expr: tuple"), args(expr.items);
    case Expr::Kind::List: return add("expr: list"), args(expr.items);
    case Expr::Kind::Negate: return add("expr: -a"), visit(expr.items.front().value);
    case Expr::Kind::Chain:
      for (const Arg &link : expr.items) {
        if (!link.key.empty())
          add("expr: a " + link.key + " b");
        visit(link.value);
      }
    }
  }
};

} // namespace msc::test
