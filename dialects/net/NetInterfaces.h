// The interfaces that operators implement, and the plain data that they speak in.
#pragma once

#include "dialects/net/ShardingRule.h"
#include "runtime/plan/CopyRegion.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallBitVector.h"

#include <functional>
#include <optional>

namespace msc::net {

/// What a user may write for an attribute, and what the frontend makes of it.
enum class AttributeKind {
  Bool,     ///< true, false -> BoolAttr
  Int,      ///< 3 -> IntegerAttr i64
  Float,    ///< 0.1 or 1 -> FloatAttr f64
  String,   ///< word or "text" -> StringAttr
  IntTuple, ///< 3 or (0, 1) -> DenseI64ArrayAttr
  IntPairs, ///< ((1, 2), (0, 0)) -> DenseI64ArrayAttr of all numbers, an even count
  Type,     ///< f32, float32, Float32 -> TypeAttr
};

struct AttributeSpec {
  llvm::StringRef name;
  AttributeKind kind;
  bool required = false;
  /// May follow the operands without a name, in the order of the specs: ReduceSum(%x, (0, 1)), Reshape(%x, (2, 3)).
  bool positional = false;
  /// Legal words of a String attribute; empty: any.
  llvm::ArrayRef<llvm::StringRef> words = {};
  /// One line for help and hover.
  llvm::StringRef summary = "";
};

/// Work of an operator on one rank.
struct OperatorCost {
  double flops = 0;       ///< scalar operations
  double bytesRead = 0;
  double bytesWritten = 0;
};

/// Bytes of one element of a tensor; bool takes one.
double elementBytes(mlir::Type tensor);

/// One operation per result element, every operand read once, every result written once.
OperatorCost defaultCost(mlir::Operation *op, llvm::ArrayRef<std::vector<int64_t>> operandShapes,
                         llvm::ArrayRef<std::vector<int64_t>> resultShapes);

/// What LowerInterface::expand makes depends on into how many pieces the factors of the operator are cut (Pieces.h).
template <typename Operator> class ExpandsByPieces : public mlir::OpTrait::TraitBase<Operator, ExpandsByPieces> {};
/// Mixed precision gives the operator bf16 or f16 operands from level O1 on.
template <typename Operator> class NarrowOperands : public mlir::OpTrait::TraitBase<Operator, NarrowOperands> {};
/// A norm: mixed precision keeps it in f32 below level O3.
template <typename Operator> class IsNorm : public mlir::OpTrait::TraitBase<Operator, IsNorm> {};
/// A loss: mixed precision keeps it in f32 at every level.
template <typename Operator> class IsLoss : public mlir::OpTrait::TraitBase<Operator, IsLoss> {};

enum class LoweringKind { Generic, MatMul, View, Regions, Expanded, Library };

/// From indices of one tensor's dimension to those of another's.
using NeededIndices = std::function<msc::Range(const msc::Range &)>;

enum class EpilogueKind {
  None,
  Bias, ///< operand 1 is added along the last dimension; directly behind the product
  ReLU,
};

} // namespace msc::net

#include "dialects/net/interfaces/NetInterfaces.h.inc"
