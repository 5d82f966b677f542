// Random syntax trees that the grammar can express.
#pragma once

#include "frontend/Ast.h"

#include <random>

namespace msc::test {

class AstGenerator {
public:
  explicit AstGenerator(unsigned seed) : random(seed) {}

  frontend::ast::File file() {
    frontend::ast::File file;
    for (int n = upTo(6); n >= 0; --n)
      file.items.push_back(item());
    for (const auto &item : file.items)
      if (const auto *header = std::get_if<frontend::ast::Header>(&item))
        file.isDump |= header->text.rfind("#IR entry", 0) == 0;
    return file;
  }

private:
  using Expr = frontend::ast::Expr;
  using Arg = frontend::ast::Arg;

  int upTo(int last) { return static_cast<int>(random() % (last + 1)); }
  bool flip() { return upTo(1) == 0; }
  template <size_t N> std::string pick(const char *const (&texts)[N]) { return texts[random() % N]; }

  std::string ident() { return pick({"a", "b1", "loss", "learning_rate", "x_y", "Normal", "f32"}); }
  std::string value() { return pick({"x", "0", "h_1", "para3_layer1.0.conv1.weight", "if", "9.q"}); }
  std::string key() { return pick({"a", "instance name", "return", "\"layer1.0\"", "in", "x y z"}); }
  std::string string() { return pick({"", "a b", "conv{i}", "say \\\"hi\\\"", "#no comment", "%x <T> \\\\"}); }
  std::string dumpType() {
    return pick({"<Tensor[Float32], (16, 32)>", "<UMonad>", "<Ref[Tensor(F32)], (16, 16), ref_key=:w2>",
                 "<Tuple[Int64*2], sequence_nodes={node={ValueNode<ValueTuple> (0, 0)}, node={<freed node>}}>"});
  }

  Expr leaf() {
    Expr expr;
    switch (upTo(6)) {
    case 0: expr.kind = Expr::Kind::Value, expr.text = value(); break;
    case 1: expr.kind = Expr::Kind::Int, expr.text = std::to_string(random() % 1000); break;
    case 2: expr.kind = Expr::Kind::Float, expr.text = pick({"0.5", "6e-4", "1.25E+3"}); break;
    case 3: expr.kind = Expr::Kind::String, expr.text = string(); break;
    case 4: expr.kind = Expr::Kind::Outer, expr.text = "@1_g.337:%para4_w"; break;
    case 5: expr.kind = Expr::Kind::Graph, expr.text = "g.1"; break;
    default: expr.kind = Expr::Kind::Word, expr.text = pick({"a", "data.model", "0-1-2-3", "true", "None"});
    }
    return expr;
  }

  std::vector<Arg> args(int depth, bool named) {
    std::vector<Arg> list(upTo(3));
    for (Arg &arg : list) {
      if (named && flip())
        arg.key = pick({"a", "stride", "if"});
      arg.value = expr(depth + 1);
    }
    return list;
  }

  std::vector<Arg> fields(int depth) {
    std::vector<Arg> list(upTo(3));
    for (Arg &field : list) {
      field.key = key();
      field.value = expr(depth + 1);
    }
    return list;
  }

  /// An expression whose operators bind at least as strongly as those of `level`.
  Expr expr(int depth, int level = 0) {
    static const std::vector<std::vector<const char *>> operators = {
        {"||"}, {"&&"}, {"==", "!=", "<", ">", "<=", ">="}, {"+", "-"}, {"*", "/", "%"}};
    if (depth > 4)
      return leaf();
    if (level < 5) {
      if (upTo(7) != 0)
        return expr(depth, level + 1);
      Expr chain;
      chain.kind = Expr::Kind::Chain;
      for (int n = 0; n < 2 + upTo(2); ++n) {
        Arg &link = chain.items.emplace_back();
        if (n)
          link.key = operators[level][random() % operators[level].size()];
        link.value = expr(depth + 1, level + 1);
      }
      return chain;
    }
    Expr expr;
    switch (upTo(9)) {
    case 0:
      expr.kind = Expr::Kind::Negate;
      expr.items.push_back({"", this->expr(depth + 1, 5), {}});
      return expr;
    case 1: expr.kind = Expr::Kind::Call, expr.text = ident(), expr.items = args(depth, true); return expr;
    case 2: expr.kind = Expr::Kind::Map, expr.items = fields(depth); return expr;
    case 3: expr.kind = Expr::Kind::Tuple, expr.items = args(depth, true); return expr;
    case 4: expr.kind = Expr::Kind::List, expr.items = args(depth, true); return expr;
    default: return leaf();
    }
  }

  Expr call() {
    Expr expr;
    expr.kind = Expr::Kind::Call;
    expr.text = ident();
    expr.items = args(1, true);
    return expr;
  }

  frontend::ast::Type type(bool orDump = false) {
    frontend::ast::Type type;
    if (orDump && flip()) {
      type.dump = dumpType();
      return type;
    }
    type.element = ident();
    for (int n = upTo(3); n > 0; --n)
      type.dims.push_back(expr(2));
    return type;
  }

  frontend::ast::Signature signature() {
    frontend::ast::Signature signature;
    for (int n = upTo(2); n > 0; --n)
      signature.operands.push_back(type(true));
    if (flip())
      for (signature.results.emplace(); flip();)
        signature.results->push_back(type(true));
    return signature;
  }

  frontend::ast::Origin origin() {
    frontend::ast::Origin origin;
    if (flip())
      origin.scope = "Default/network-WithLossCell/_backbone-Net";
    if (flip()) {
      origin.file = pick({"net.mir", "/a b/copy(1)/x.py"});
      origin.line = 1 + upTo(99);
    }
    return origin;
  }

  std::vector<frontend::ast::Attributes> attributes() {
    std::vector<frontend::ast::Attributes> lists(upTo(2));
    for (auto &list : lists) {
      list.label = flip() ? "" : pick({"primitive_attrs", "cnode_attrs"});
      list.fields = fields(2);
    }
    return lists;
  }

  frontend::ast::Result result() {
    frontend::ast::Result result;
    result.name = value();
    if (flip())
      result.debugName = pick({"h", "equiv[CNode]520", "a(b)c", ""});
    if (flip())
      result.type = type(true);
    return result;
  }

  frontend::ast::Body body(int depth) {
    frontend::ast::Body body;
    for (int n = upTo(3); n > 0; --n)
      body.statements.push_back(statement(depth + 1));
    return body;
  }

  frontend::ast::Call node() {
    frontend::ast::Call call;
    call.callee = ident();
    call.graph = upTo(5) == 0;
    call.hasWord = call.graph && flip();
    call.args = args(1, true);
    if (flip())
      call.instance = string();
    call.attributes = attributes();
    if (flip())
      call.signature = signature();
    call.origin = origin();
    return call;
  }

  frontend::ast::Statement statement(int depth) {
    namespace ast = frontend::ast;
    switch (upTo(depth > 3 ? 3 : 6)) {
    case 0: return {ast::Const{ident(), expr(1), {}}};
    case 1: {
      ast::Param param;
      param.name = value();
      param.type = type();
      if (flip())
        param.initializer = call();
      if (flip())
        param.drawName = string();
      param.attributes = attributes();
      param.origin = origin();
      return {param};
    }
    case 2: {
      ast::Return last;
      last.kind = static_cast<ast::Return::Kind>(upTo(2));
      if (last.kind == ast::Return::Kind::Dump) {
        last.args = args(1, true);
        if (flip())
          last.signature = signature();
      } else {
        for (int n = 1 + upTo(2); n > 0; --n) {
          Arg &arg = last.args.emplace_back();
          arg.key = flip() ? "" : "loss";
          arg.value.kind = Expr::Kind::Value;
          arg.value.text = value();
        }
      }
      last.origin = origin();
      return {last};
    }
    default: break;
    }
    ast::Assign assign;
    for (int n = 1 + upTo(2); n > 0; --n)
      assign.results.push_back(result());
    int form = upTo(depth > 3 ? 0 : 3);
    if (form == 1) {
      ast::Repeat repeat;
      repeat.variable = ident();
      repeat.from = expr(2);
      repeat.to = expr(2);
      for (int n = 1 + upTo(1); n > 0; --n)
        repeat.carried.push_back({value(), value(), {}, {}});
      repeat.body = body(depth);
      assign.rhs = repeat;
    } else if (form == 2) {
      ast::If branches;
      for (int n = 1 + upTo(2); n > 0; --n)
        branches.branches.push_back({expr(2), body(depth)});
      branches.branches.push_back({std::nullopt, body(depth)});
      assign.rhs = branches;
    } else {
      assign.rhs = node();
    }
    return {assign};
  }

  frontend::ast::Formal formal() {
    frontend::ast::Formal formal;
    formal.isValue = flip();
    if (formal.isValue) {
      formal.name = value();
      if (flip())
        formal.type = type();
    } else {
      formal.name = ident();
      formal.kind = pick({"int", "float", "bool", "string"});
      if (flip())
        formal.defaultValue = expr(2);
    }
    return formal;
  }

  frontend::ast::Item item() {
    namespace ast = frontend::ast;
    switch (upTo(7)) {
    case 0: return ast::Import{string(), {}};
    case 1: return ast::Const{ident(), expr(0), {}};
    case 2: return ast::Mesh{flip() ? "" : ident(), args(1, true), origin(), {}};
    case 3: return ast::Block{ident(), flip() ? "" : ident(), fields(0), origin(), {}};
    case 4:
      if (flip())
        return ast::Header{"#attrs         :", {"stage : begin", "key : a b"}, {}};
      return ast::Header{pick({"#IR entry      : @g.1", "#Total params  : 3", "subgraph attr:"}), {}, {}};
    case 5: {
      ast::DumpParam param;
      param.name = value();
      param.type.dump = dumpType();
      param.hasDefault = flip();
      param.origin = origin();
      return param;
    }
    case 6: {
      ast::Subgraph graph;
      graph.name = "g.1";
      if (flip())
        graph.parent = flip() ? "" : "p.2";
      for (int n = upTo(2); n > 0; --n)
        graph.params.push_back({value(), {}, {}, {}});
      graph.body = body(0);
      graph.origin = origin();
      return graph;
    }
    default: {
      ast::Graph graph;
      graph.isNetwork = flip();
      graph.name = ident();
      for (int n = upTo(3); n > 0; --n)
        graph.formals.push_back(formal());
      graph.body = body(0);
      graph.origin = origin();
      return graph;
    }
    }
  }

  std::mt19937 random;
};

} // namespace msc::test
