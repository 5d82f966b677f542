#include "frontend/AstPrinter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace msc::frontend {
using namespace ast;

namespace {
class Printer {
public:
  explicit Printer(raw_ostream &os) : os(os) {}
  void expr(const Expr &expr);
  void item(const Item &item);

private:
  void args(const std::vector<Arg> &args) {
    interleaveComma(args, os, [&](const Arg &arg) {
      if (!arg.key.empty())
        os << arg.key << ": ";
      expr(arg.value);
    });
  }
  void map(const std::vector<Arg> &fields) {
    os << '{';
    args(fields);
    os << '}';
  }
  void type(const Type &type);
  void types(const std::vector<Type> &list) {
    os << '(';
    interleaveComma(list, os, [&](const Type &t) { type(t); });
    os << ')';
  }
  void signature(const std::optional<Signature> &signature);
  void attributes(const std::vector<Attributes> &lists) {
    for (const Attributes &list : lists) {
      os << ' ' << list.label << (list.label.empty() ? "" : ": ");
      map(list.fields);
    }
  }
  void origin(const Origin &origin);
  void result(const Result &result);
  void body(const Body &body);
  void line() {
    os << '\n';
    os.indent(2 * indent);
  }

  void operator()(const Const &item);
  void operator()(const Param &param);
  void operator()(const Assign &assign);
  void operator()(const Return &result);
  void operator()(const Call &call);
  void operator()(const Repeat &repeat);
  void operator()(const If &branches);
  void operator()(const Import &item) { os << "import \"" << item.path << '"'; }
  void operator()(const Mesh &mesh);
  void operator()(const Graph &graph);
  void operator()(const Block &block);
  void operator()(const Header &header);
  void operator()(const DumpParam &param);
  void operator()(const Subgraph &graph);

  template <typename Variant> void dispatch(const Variant &node) {
    std::visit([&](const auto &alternative) { (*this)(alternative); }, node);
  }

  raw_ostream &os;
  unsigned indent = 0;
};
} // namespace

void Printer::expr(const Expr &e) {
  switch (e.kind) {
  case Expr::Kind::Value: os << '%' << e.text; return;
  case Expr::Kind::Outer: os << "$(" << e.text << ')'; return;
  case Expr::Kind::String: os << '"' << e.text << '"'; return;
  case Expr::Kind::Graph: os << '@' << e.text; return;
  case Expr::Kind::Int:
  case Expr::Kind::Float:
  case Expr::Kind::Word: os << e.text; return;
  case Expr::Kind::Map: map(e.items); return;
  case Expr::Kind::Call:
    os << e.text << '(';
    args(e.items);
    os << ')';
    return;
  case Expr::Kind::Tuple:
  case Expr::Kind::List:
    os << (e.kind == Expr::Kind::Tuple ? '(' : '[');
    args(e.items);
    os << (e.kind == Expr::Kind::Tuple ? ')' : ']');
    return;
  case Expr::Kind::Negate:
    os << '-';
    expr(e.items.front().value);
    return;
  case Expr::Kind::Chain:
    for (const Arg &link : e.items) {
      if (!link.key.empty())
        os << ' ' << link.key << ' ';
      expr(link.value);
    }
    return;
  }
}

void Printer::type(const Type &type) {
  os << type.dump << type.element;
  if (type.element.empty())
    return;
  os << '[';
  interleaveComma(type.dims, os, [&](const Expr &e) { expr(e); });
  os << ']';
}

void Printer::signature(const std::optional<Signature> &signature) {
  if (!signature)
    return;
  line();
  os << "    : ";
  types(signature->operands);
  if (signature->results) {
    os << " -> ";
    types(*signature->results);
  }
}

void Printer::origin(const Origin &origin) {
  if (!origin.scope.empty()) {
    line();
    os << "    # scope: (" << origin.scope << ')';
  }
  if (!origin.file.empty()) {
    line();
    os << "    # In file " << origin.file << '(' << origin.line << ')';
  }
}

void Printer::result(const Result &result) {
  os << '%' << result.name;
  if (result.debugName)
    os << '(' << *result.debugName << ')';
  if (result.type) {
    os << ": ";
    type(*result.type);
  }
}

void Printer::body(const Body &body) {
  os << '{';
  ++indent;
  for (const Statement &statement : body.statements) {
    line();
    dispatch(statement.node);
  }
  --indent;
  line();
  os << '}';
}

void Printer::operator()(const Const &item) {
  os << "const " << item.name << " = ";
  expr(item.value);
}

void Printer::operator()(const Param &param) {
  os << "param %" << param.name << ": ";
  type(param.type);
  if (param.initializer) {
    os << " = ";
    expr(*param.initializer);
  }
  if (param.drawName)
    os << " @ \"" << *param.drawName << '"';
  attributes(param.attributes);
  origin(param.origin);
}

void Printer::operator()(const Assign &assign) {
  interleaveComma(assign.results, os, [&](const Result &r) { result(r); });
  os << " = ";
  dispatch(assign.rhs);
}

void Printer::operator()(const Call &call) {
  os << (call.hasWord ? "call " : "") << (call.graph ? "@" : "") << call.callee << '(';
  args(call.args);
  os << ')';
  if (call.instance)
    os << " @ \"" << *call.instance << '"';
  attributes(call.attributes);
  signature(call.signature);
  origin(call.origin);
}

void Printer::operator()(const Repeat &repeat) {
  os << "repeat " << repeat.variable << " in ";
  expr(repeat.from);
  os << "..";
  expr(repeat.to);
  os << " with ";
  interleaveComma(repeat.carried, os, [&](const Carried &c) { os << '%' << c.name << " = %" << c.initial; });
  os << ' ';
  body(repeat.body);
}

void Printer::operator()(const If &branches) {
  for (const Branch &branch : branches.branches) {
    if (&branch != &branches.branches.front())
      os << " else ";
    if (branch.condition) {
      os << "if ";
      expr(*branch.condition);
      os << ' ';
    }
    body(branch.body);
  }
}

void Printer::operator()(const Return &result) {
  if (result.kind == Return::Kind::Dump) {
    os << "Return(";
    args(result.args);
    os << ')';
  } else {
    os << (result.kind == Return::Kind::Yield ? "yield " : "return ");
    args(result.args);
  }
  signature(result.signature);
  origin(result.origin);
}

void Printer::operator()(const Mesh &mesh) {
  os << "mesh " << mesh.name << (mesh.name.empty() ? "(" : " (");
  args(mesh.axes);
  os << ')';
  origin(mesh.origin);
}

void Printer::operator()(const Graph &graph) {
  os << (graph.isNetwork ? "network " : "cell ") << graph.name << '(';
  interleaveComma(graph.formals, os, [&](const Formal &formal) {
    os << (formal.isValue ? "%" : "") << formal.name;
    if (!formal.kind.empty())
      os << ": " << formal.kind;
    if (formal.type) {
      os << ": ";
      type(*formal.type);
    }
    if (formal.defaultValue) {
      os << " = ";
      expr(*formal.defaultValue);
    }
  });
  os << ") ";
  body(graph.body);
  origin(graph.origin);
}

void Printer::operator()(const Block &block) {
  os << block.kind << ' ' << block.name << (block.name.empty() ? "" : " ");
  map(block.fields);
  origin(block.origin);
}

void Printer::operator()(const Header &header) {
  os << header.text;
  for (const std::string &attr : header.lines)
    os << '\n' << attr;
  if (StringRef(header.text).starts_with("#attrs") || StringRef(header.text).starts_with("subgraph attr:"))
    os << '\n'; // the blank line ends the list
}

void Printer::operator()(const DumpParam &param) {
  os << '%' << param.name << " : ";
  type(param.type);
  if (param.hasDefault)
    os << "  :  has_default";
  origin(param.origin);
}

void Printer::operator()(const Subgraph &graph) {
  os << "subgraph @" << graph.name;
  if (graph.parent)
    os << " parent: [subgraph" << (graph.parent->empty() ? "" : " @") << *graph.parent << ']';
  os << '(';
  interleaveComma(graph.params, os, [&](const Result &r) { result(r); });
  os << ") ";
  body(graph.body);
  origin(graph.origin);
}

void Printer::item(const Item &item) {
  dispatch(item);
  os << '\n';
}

void print(const File &file, raw_ostream &os) {
  Printer printer(os);
  for (const Item &item : file.items)
    printer.item(item);
}

void print(const Expr &expr, raw_ostream &os) { Printer(os).expr(expr); }

std::string toText(const File &file) {
  std::string text;
  raw_string_ostream os(text);
  print(file, os);
  return text;
}

std::string toText(const Expr &expr) {
  std::string text;
  raw_string_ostream os(text);
  print(expr, os);
  return text;
}

} // namespace msc::frontend
