// The syntax tree of a network file or a dump: plain data, exactly what was written, nothing decided.
//
// Comparison ignores places, so two files are equal if they say the same. Nesting of expressions and bodies is limited
// by the parser, so walking a tree recursively is safe; chains of binary operators are flat lists.
#pragma once

#include "llvm/Support/SMLoc.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace msc::frontend::ast {

/// A stretch of source text. Does not take part in comparisons.
struct Place {
  llvm::SMLoc begin;
  llvm::SMLoc end;
  bool operator==(const Place &) const { return true; }
};

struct Arg;

/// An expression.
struct Expr {
  enum class Kind {
    Value,  ///< `%x`; text is "x"
    Outer,  ///< `$(@g:%x)`; text is what stands between the parentheses
    Int,    ///< text as spelled
    Float,  ///< text as spelled
    String, ///< text between the quotes, escapes not yet read
    Word,   ///< name of a constant or a plain word, perhaps dotted or digits joined by '-'
    Graph,  ///< `@name`
    Call,   ///< text is the callee, items the arguments
    Map,    ///< items are the fields
    Tuple,  ///< items
    List,   ///< items
    Negate, ///< one item
    Chain,  ///< operators of one precedence, left to right: items[0], then each item's key is the operator before it
  };
  Kind kind = Kind::Word;
  std::string text;
  std::vector<Arg> items;
  Place place;
  bool operator==(const Expr &) const = default;
  bool isList() const { return kind == Kind::Tuple || kind == Kind::List; }
};

/// An argument, a field of a map, or a link of a chain. `key` is empty where no name was given.
struct Arg {
  std::string key;
  Expr value;
  Place keyPlace;
  bool operator==(const Arg &) const = default;
};

/// `f32[16, 32]`, or the text of a dump's `<...>`.
struct Type {
  std::string element;    ///< "f32"; empty for a dump type
  std::vector<Expr> dims;
  std::string dump;       ///< "<Tensor[Float32], (16, 32)>"; empty for a written type
  Place place;
  bool operator==(const Type &) const = default;
};

/// `: (operand types) -> (result types)`; the arrow is absent below Return.
struct Signature {
  std::vector<Type> operands;
  std::optional<std::vector<Type>> results;
  bool operator==(const Signature &) const = default;
};

/// `{...}`, `primitive_attrs: {...}`, `cnode_attrs: {...}`.
struct Attributes {
  std::string label;
  std::vector<Arg> fields;
  Place place;
  bool operator==(const Attributes &) const = default;
};

/// What the comments `# scope:` and `# In file F(L)` below a node say.
struct Origin {
  std::string scope;
  std::string file; ///< empty: no such comment
  int64_t line = 0;
  bool operator==(const Origin &) const = default;
};

/// A value on the left of `=`.
struct Result {
  std::string name;
  std::optional<std::string> debugName; ///< `%13(equiv[CNode]520)`
  std::optional<Type> type;
  Place place;
  bool operator==(const Result &) const = default;
};

struct Statement;

struct Body {
  std::vector<Statement> statements;
  Place close; ///< the closing brace
  bool operator==(const Body &) const = default;
};

/// `const name = value`.
struct Const {
  std::string name;
  Expr value;
  Place place;
  bool operator==(const Const &) const = default;
};

/// `param %w: f32[2] = Zeros() @ "old.name" {requires_grad: false}`.
struct Param {
  std::string name;
  Type type;
  std::optional<Expr> initializer;
  std::optional<std::string> drawName;
  std::vector<Attributes> attributes;
  Origin origin;
  Place place;
  bool operator==(const Param &) const = default;
};

/// `MatMul(%x, %w) @ "name" {attributes} : (types) -> (types)`.
struct Call {
  std::string callee;
  bool graph = false; ///< `@name(...)`: a call of another graph of a dump
  bool hasWord = false; ///< `call @name(...)`: as MindSpore writes it
  std::vector<Arg> args;
  std::optional<std::string> instance; ///< escapes not yet read
  std::vector<Attributes> attributes;
  std::optional<Signature> signature;
  Origin origin;
  Place place;         ///< the callee's name
  Place instancePlace;
  bool operator==(const Call &) const = default;
};

/// `with %name = %initial`.
struct Carried {
  std::string name;
  std::string initial;
  Place place;
  Place initialPlace;
  bool operator==(const Carried &) const = default;
};

/// `repeat i in from..to with ... { ... }`.
struct Repeat {
  std::string variable;
  Expr from;
  Expr to;
  std::vector<Carried> carried;
  Body body;
  Place place;
  bool operator==(const Repeat &) const = default;
};

/// One arm of an `if`; the last arm (`else`) has no condition.
struct Branch {
  std::optional<Expr> condition;
  Body body;
  bool operator==(const Branch &) const = default;
};

struct If {
  std::vector<Branch> branches;
  Place place;
  bool operator==(const If &) const = default;
};

struct Assign {
  std::vector<Result> results;
  std::variant<Call, Repeat, If> rhs;
  bool operator==(const Assign &) const = default;
};

/// `return loss: %loss` and `yield %y`; names are optional. `Return(...)` of a dump holds its arguments in `args`.
struct Return {
  enum class Kind { Return, Yield, Dump };
  Kind kind = Kind::Return;
  std::vector<Arg> args; ///< values are always Kind::Value, except in a dump
  std::optional<Signature> signature;
  Origin origin;
  Place place;
  bool operator==(const Return &) const = default;
};

struct Statement {
  std::variant<Const, Param, Assign, Return> node;
  bool broken = false; ///< holds what was read before a mistake
  bool operator==(const Statement &) const = default;
};

/// A formal: a value (`%x: f32[2]`), or a compile-time one (`stride: int = 1`).
struct Formal {
  std::string name;
  bool isValue = false;
  std::optional<Type> type;             ///< values
  std::string kind;                     ///< "int", "float", "bool", "string"
  std::optional<Expr> defaultValue;
  Place place;
  bool operator==(const Formal &) const = default;
};

struct Import {
  std::string path; ///< escapes not yet read
  Place place;
  bool operator==(const Import &) const = default;
};

/// `mesh name (data: 2, model: 4)`.
struct Mesh {
  std::string name;
  std::vector<Arg> axes;
  Origin origin;
  Place place;
  bool operator==(const Mesh &) const = default;
};

/// `network` or `cell`.
struct Graph {
  bool isNetwork = false;
  std::string name;
  std::vector<Formal> formals;
  Body body;
  Origin origin;
  Place place; ///< the name
  bool operator==(const Graph &) const = default;
};

/// `train {...}`, `dataset evaluate {...}`, and dumps' `parameters {...}`.
struct Block {
  std::string kind;
  std::string name;
  std::vector<Arg> fields;
  Origin origin;
  Place place; ///< the word in front
  bool operator==(const Block &) const = default;
};

/// A line such as `#IR entry : @net`, and the `key : value` lines below `#attrs`.
struct Header {
  std::string text;
  std::vector<std::string> lines;
  Place place;
  bool operator==(const Header &) const = default;
};

/// `%para1_w : <Ref[...]>  :  has_default`.
struct DumpParam {
  std::string name;
  Type type;
  bool hasDefault = false;
  Origin origin;
  Place place;
  bool operator==(const DumpParam &) const = default;
};

/// `subgraph @name parent: [subgraph @p](%a, %b) { ... }`.
struct Subgraph {
  std::string name;
  std::optional<std::string> parent; ///< empty text: `parent: [subgraph]`
  std::vector<Result> params;
  Body body;
  Origin origin;
  Place place;
  bool operator==(const Subgraph &) const = default;
};

using Item = std::variant<Import, Const, Mesh, Graph, Block, Header, DumpParam, Subgraph>;

struct File {
  std::vector<Item> items;
  /// True if a dump's header occurs: text is known by content, not by the ending of the file's name.
  bool isDump = false;
  bool operator==(const File &) const = default;
};

} // namespace msc::frontend::ast
