// Constraints and result types: what the operators' `infer` functions share.
#pragma once

#include "dialects/net/NetInterfaces.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

#include <optional>
#include <string>

namespace msc::net {

/// Element types that an operand may have.
enum class ElementSet { Any, Number, Float, Bool };
/// Where the element type of a pointwise result comes from.
enum class ResultElement { SameElement, BoolElement };

/// "16x32"; "scalar" for a tensor without dimensions.
std::string shapeText(llvm::ArrayRef<int64_t> shape);
/// "f32", "bool".
std::string elementText(mlir::Type element);
/// A tensor of this element type can hold the number; floats round it. Integers beyond 2^53 would not survive the way to a plan.
bool holdsNumber(mlir::Type element, double number);
/// A tensor type without encoding.
mlir::RankedTensorType tensorOf(llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// True if both lists hold tensors of equal shapes and element types; encodings do not count.
bool sameTensors(mlir::TypeRange left, mlir::TypeRange right);

/// The operands of an operator whose result types are being inferred. The operator may not exist yet.
struct Inference {
  std::optional<mlir::Location> location; ///< absent: nobody wants to read the reason
  llvm::StringRef opName;                 ///< "MatMul"
  mlir::ValueRange operands;
  llvm::ArrayRef<llvm::StringRef> inputNames;
  mlir::MLIRContext *context;
  bool isVariadic = false; ///< takes one operand or more; the last name stands for all further ones
  unsigned optional = 0;   ///< of the last operands, how many may be left out

  llvm::ArrayRef<int64_t> shape(unsigned operand) const;
  int64_t rank(unsigned operand) const { return shape(operand).size(); }
  mlir::Type element(unsigned operand) const;
  /// "'w'": the name of the value in the source, else the operand's own name.
  std::string name(unsigned operand) const;
  /// "'w' (31x16)".
  std::string text(unsigned operand) const;

  /// Reports `message` at the operator, with a note "'w' declared here" at each of the given operands and an optional
  /// repair as a last note.
  llvm::LogicalResult error(const llvm::Twine &message, llvm::ArrayRef<unsigned> declared = {},
                            const llvm::Twine &help = "") const;
  /// The repair where a size was taken for an epsilon.
  static constexpr const char *smallEpsilon = "it is a small number beside the variance; sizes are those of the operand";
  /// Every operand is a tensor of known shape and their number is right.
  llvm::LogicalResult checkOperandCount() const;
  /// Required attributes are there, and all have the kinds of their specs.
  llvm::LogicalResult checkAttributes(llvm::ArrayRef<AttributeSpec> specs, const mlir::NamedAttrList &given) const;
  /// The operand's element type belongs to the set.
  llvm::LogicalResult checkElement(unsigned operand, ElementSet allowed) const;
  /// All operands from `first` on have one element type out of the set.
  llvm::LogicalResult checkSameElement(ElementSet allowed, unsigned first = 0) const;
  /// Two operands have one element type.
  llvm::LogicalResult checkSameElementOf(unsigned left, unsigned right) const;
  /// Two operands have the same shape.
  llvm::LogicalResult checkSameShape(unsigned left, unsigned right) const;
  /// The operator makes tensors of this element type, with this number in them.
  llvm::LogicalResult checkHolds(mlir::Type element, const llvm::APFloat &number) const;
  /// Places from `first` to in front of `behind`, which the operator counts, are numbers of i32.
  llvm::LogicalResult checkPlaces(int64_t first, int64_t behind) const;
  /// Those of every dimension of the operand are.
  llvm::LogicalResult checkPlacesOf(unsigned operand) const;
  /// No result has more than 2^48 elements, or a size that was too large to be computed.
  llvm::LogicalResult checkResults(llvm::ArrayRef<mlir::Type> results) const;
  /// The common NumPy broadcast shape of all operands.
  llvm::FailureOr<llvm::SmallVector<int64_t>> broadcastShape() const;
};

/// Inference of pointwise operators: one element type out of `allowed`, broadcast shape.
llvm::LogicalResult inferPointwise(const Inference &at, ElementSet allowed, ResultElement result,
                                   llvm::SmallVectorImpl<mlir::Type> &results);

/// Dimensions named by `axis` (negative from the end, empty: all), ascending. Reports entries out of range or doubled.
llvm::FailureOr<llvm::SmallVector<int64_t>> resolveAxes(const Inference &at, unsigned operand,
                                                        llvm::ArrayRef<int64_t> axis);

/// Reports a word that is not among `words`.
llvm::LogicalResult checkWord(const Inference &at, llvm::StringRef attribute, llvm::StringRef word,
                              llvm::ArrayRef<llvm::StringRef> words);

} // namespace msc::net
