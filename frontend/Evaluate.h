// Expressions that are decided at compile time. Values are MLIR attributes, in the form in which `net.config` holds them:
// i64, f64, bool, strings (words too), arrays (tuples and lists), dictionaries (maps); a call is
// {callee, args, named}, `%a` is {value = "a"}.
#pragma once

#include "frontend/Ast.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"

#include <optional>

namespace msc::frontend {

/// What a value's name stands for. A null value was reported already; its users stay silent.
struct Binding {
  mlir::Value value;
  llvm::SMLoc place;
  std::vector<mlir::Value> tuple = {}; ///< of a dump: what MakeTuple and operators with several results give
};

/// The variable of a repeat whose body is expanded once for all rounds where nothing but names depends on it.
struct RoundVariable {
  std::string name;
  std::string placeholder; ///< what stands for it in names: "{i}"
  bool isUsed = false;     ///< by something else than a name: the round that was expanded is one of its own
};

/// Names that an expression can see. Children see their parents.
struct Environment {
  const Environment *parent = nullptr;
  RoundVariable *round = nullptr; ///< set where its constant is defined
  llvm::StringMap<mlir::Attribute> constants; ///< null: reported already
  llvm::StringMap<Binding> values;
  mutable llvm::StringSet<> unknown; ///< names that are reported as such

  const Binding *findValue(llvm::StringRef name) const;
  /// Nothing if unknown. Marks the variable of a repeat as used.
  std::optional<mlir::Attribute> findConstant(llvm::StringRef name) const;
  /// The variable of a repeat that is called so here, or null.
  const RoundVariable *findRound(llvm::StringRef name) const;
  /// True if nobody said yet that `name` is unknown here: one missing name is one mistake, however often it is used.
  bool missesFirst(llvm::StringRef name) const;
  std::vector<std::string> valueNames() const;
  std::vector<std::string> constantNames() const;
};

/// Places of the source as MLIR locations.
mlir::Location toLocation(mlir::MLIRContext *context, const llvm::SourceMgr &sources, llvm::SMLoc place);

class Evaluator {
public:
  Evaluator(mlir::MLIRContext *context, const llvm::SourceMgr &sources) : builder(context), sources(sources) {}

  /// Fails after reporting what is wrong, or silently if something it uses was reported.
  mlir::FailureOr<mlir::Attribute> evaluate(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<int64_t> evaluateInteger(const ast::Expr &expr, const Environment &env, llvm::StringRef what);
  mlir::FailureOr<bool> evaluateBool(const ast::Expr &expr, const Environment &env, llvm::StringRef what);
  /// The text of a string literal: escapes read, `{name}` filled in.
  mlir::FailureOr<std::string> decode(llvm::StringRef raw, const Environment &env, llvm::SMLoc place);
  /// The same for the name of an operator, cell or parameter, in the form in which bodies of repeats hold names (see
  /// dialects/net/Repeat.h): variables of repeats keep their places, other braces are doubled.
  mlir::FailureOr<std::string> decodeName(llvm::StringRef raw, const Environment &env, llvm::SMLoc place);
  /// The value of a name, null where only names are checked; reports names that are not defined.
  mlir::FailureOr<mlir::Value> findValue(llvm::StringRef name, const ast::Place &place, const Environment &env);
  /// Fields of a map (or named arguments) as a dictionary.
  mlir::FailureOr<mlir::DictionaryAttr> evaluateFields(const std::vector<ast::Arg> &fields, const Environment &env);

  /// A part of the source could not be read: names that nobody knows may be its names, and are not reported.
  bool namesMissing = false;
  /// Numbers may have types in front, as in MindSpore's dumps: F32(0.5), Bool(0).
  bool readsTypedNumbers = false;
  /// The body of a repeat is being expanded.
  bool isInRepeat = false;
  /// Only names are checked: values are null, and what depends on one, or is calculated, fails silently.
  bool namesOnly = false;
  /// Consts that the command line sets, and its texts.
  std::map<std::string, std::string> defined;

  mlir::InFlightDiagnostic error(const ast::Place &place) { return mlir::emitError(location(place)); }
  mlir::Location location(const ast::Place &place) { return toLocation(builder.getContext(), sources, place.begin); }

private:
  mlir::FailureOr<std::string> decode(llvm::StringRef raw, const Environment &env, llvm::SMLoc place, bool isName);
  mlir::FailureOr<mlir::Attribute> evaluateCall(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> evaluateChain(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> evaluateRoot(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> evaluateFail(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> evaluateShape(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> combine(mlir::Attribute left, const ast::Arg &link, mlir::Attribute right,
                                           const ast::Expr &leftExpr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> logic(const ast::Expr &expr, const Environment &env);
  mlir::FailureOr<mlir::Attribute> combineIntegers(int64_t a, const ast::Arg &link, int64_t b);
  mlir::FailureOr<mlir::Attribute> combineFloats(double a, const ast::Arg &link, double b);
  /// Reports an operand that arithmetic cannot use; names the nearest constant for a word that is none.
  mlir::LogicalResult notANumber(const ast::Expr &expr, mlir::Attribute value, const Environment &env);
  /// The names of a chain of which nothing is calculated.
  void checkNames(const ast::Expr &chain, const Environment &env);

  llvm::StringSet<> reportedNames; ///< by the check of names; with '%' if they are values
  mlir::Builder builder;
  const llvm::SourceMgr &sources;
};

/// A key without its quotes.
std::string keyText(llvm::StringRef key);

/// A tuple or list of one element counts as its element.
mlir::Attribute unwrapTuple(mlir::Attribute attribute);

} // namespace msc::frontend
