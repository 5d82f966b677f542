// What builds one operator from its call: ElaborateArguments.cpp takes the arguments, ElaborateOperator.cpp does the rest.
#pragma once

#include "frontend/Elaborate.h"

#include "dialects/net/ConfigFields.h"
#include "dialects/net/FixedPieces.h"
#include "frontend/AttributeValues.h"
#include "frontend/PrintValues.h"

namespace msc::frontend {

/// Attributes that all operators have.
inline constexpr llvm::StringRef ofAnyOperator[] = {"in_strategy", "out_strategy", "recompute", "sharding"};

/// Builds one operator. Every step returns false after reporting.
class OperatorBuilder {
public:
  OperatorBuilder(Elaborator &parent, const ast::Call &call, const ast::Assign &assign, Frame &frame,
                  mlir::RegisteredOperationName name)
      : parent(parent), call(call), assign(assign), frame(frame), name(name),
        interface(*name.getInterface<net::Operator>()), builder(parent.builder),
        state(parent.locationOf(call.place, call.origin), name) {}

  bool build();

private:
  bool takeArguments();
  bool takeOperand(const ast::Expr &expr);
  bool takePositional(const ast::Arg &arg);
  bool takeAttributeLists();
  bool takeAttribute(const ast::Arg &field, const ast::Attributes &list);
  bool takeOwnAttribute(llvm::StringRef key, const ast::Arg &field);
  bool isNew(llvm::StringRef key, const ast::Arg &field);
  bool takeStrategy(llvm::StringRef key, const ast::Arg &field);
  bool convert(const net::AttributeSpec &spec, mlir::Attribute value, const ast::Expr &expr);
  bool addConstants();
  bool checkArity();
  bool checkRequired();
  bool fillRankSize();
  llvm::StringRef meantAttribute(mlir::Attribute value);
  std::string withNamedNumbers();
  std::string withNumbersInBrackets(const net::AttributeSpec &spec);
  bool takeFixedPieces(mlir::Operation *op);
  bool isLeftOut() const;
  bool finish(mlir::Operation *op);
  bool checkStrategy(mlir::Operation *op, const net::Strategy &strategy, mlir::ValueRange values, llvm::StringRef key, llvm::StringRef what);
  bool refuseFlatStrategies(mlir::Operation *op);
  bool checkSignature();
  std::vector<llvm::StringRef> specNames() const;
  const net::AttributeSpec *findSpec(llvm::StringRef key) const;
  mlir::InFlightDiagnostic error(const ast::Place &place) { return parent.error(place); }
  mlir::InFlightDiagnostic unfit(const net::AttributeSpec &spec, mlir::Attribute value, const ast::Expr &expr) {
    return std::move(error(expr.place) << "'" << spec.name << "' of '" << call.callee << "' expects " << kindText(spec.kind) << ", found '"
                                       << net::valueText(value) << "'");
  }

  struct GivenStrategy {
    net::Strategy pieces;
    ast::Place place;
  };

  Elaborator &parent;
  const ast::Call &call;
  const ast::Assign &assign;
  Frame &frame;
  mlir::RegisteredOperationName name;
  net::Operator::Concept &interface;
  mlir::OpBuilder &builder;
  mlir::OperationState state;
  /// Operands that were written as numbers: (index, value).
  llvm::SmallVector<std::pair<size_t, double>> constants;
  llvm::StringMap<ast::Place> given;
  std::optional<GivenStrategy> inStrategy, outStrategy;
  struct FlatStrategy {
    GivenStrategy given; ///< one tuple
    bool isIn = true; ///< of operands
    std::string text; ///< as it was written
  };
  std::vector<FlatStrategy> flatStrategies; ///< that lack the parentheses of the list
  const ast::Arg *sharding = nullptr;  ///< of the first result
  std::string origin = "user", source; ///< who decided the strategies
  std::string instance;
  llvm::SmallVector<int64_t> alike; ///< see net::getAlike
  llvm::SmallVector<int64_t> fixed; ///< see net::getFixedPieces
  std::string fixedPlace;     ///< see net::getFixedPlace
  bool recompute = false;
  size_t positional = 0; ///< next positional attribute
  std::string namedNumbers; ///< a repair that names all numbers, once one of them was refused
  bool isArityKnown = true; ///< false: an argument that nobody knows yet may be an operand or an attribute
};

} // namespace msc::frontend
