// The interfaces that operators implement, and the plain data that they speak in.
#pragma once

#include "dialects/net/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallBitVector.h"

#include <optional>

namespace msc::net {

/// What a user may write for an attribute, and what the frontend makes of it.
enum class AttributeKind {
  Bool,     ///< true, false -> BoolAttr
  Int,      ///< 3 -> IntegerAttr i64
  Float,    ///< 0.1 or 1 -> FloatAttr f64
  String,   ///< word or "text" -> StringAttr
  IntTuple, ///< 3 or (0, 1) -> DenseI64ArrayAttr
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

enum class LoweringKind { Generic, MatMul, View, Expanded, Library };

enum class EpilogueKind {
  None,
  Bias, ///< operand 1 is added along the last dimension; directly behind the product
  ReLU,
};

} // namespace msc::net

#include "dialects/net/interfaces/NetInterfaces.h.inc"
