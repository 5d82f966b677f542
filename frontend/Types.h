// Names of types and values as networks and dumps spell them.
#pragma once

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace msc::frontend {

/// Of a tensor: as many as plans have.
inline constexpr int64_t kMostDimensions = 32;

/// "f32" and dumps' "Float32"; null if unknown.
mlir::Type elementTypeFromName(llvm::StringRef name, mlir::MLIRContext *context);
/// The words that users write for the element types that operators compute with: "f32", "bool", ...
llvm::ArrayRef<llvm::StringRef> elementTypeNames();
/// "f32"
llvm::StringRef elementTypeName(mlir::Type type);
/// "Float32"
llvm::StringRef dumpElementName(mlir::Type type);
/// `<Tensor[Float32], (16, 32)>` and `<Ref[Tensor[Float32]], (32, 16), ref_key=:w>`; null for other forms.
mlir::RankedTensorType tensorTypeFromDump(llvm::StringRef text, mlir::MLIRContext *context);
/// The name behind `ref_key=:`, or empty for a type that is no Ref.
llvm::StringRef refKeyFromDump(llvm::StringRef text);
/// "<Tensor[Float32], (16, 32)>"; with a key "<Ref[Tensor[Float32]], (16, 32), ref_key=:w>".
std::string dumpTypeText(mlir::RankedTensorType type, llvm::StringRef refKey = "");
std::string dumpTypeText(mlir::Type element, llvm::ArrayRef<int64_t> shape, llvm::StringRef refKey = "");
/// "(16, 32) Float32", "Float32": types in messages.
std::string typeText(mlir::Type type);
/// True for the debug names that name a value ("h"), false for MindSpore's internal ones ("equiv[CNode]520").
bool isPlainName(llvm::StringRef debugName);

} // namespace msc::frontend
