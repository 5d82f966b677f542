// bf16 and f16 in vectors of f32: the conversions to and from memory, and rounding. bf16 goes by integers, so that no
// library function and no instruction that flushes subnormals is asked for.
#pragma once

#include "mlir/IR/Types.h"
#include "llvm/IR/IRBuilder.h"

namespace msc::codegen {

class NarrowFloat {
public:
  explicit NarrowFloat(llvm::IRBuilderBase &builder) : builder(builder) {}

  /// 16 bits from memory -> f32 (exact).
  llvm::Value *load(llvm::Value *bits, mlir::Type element);
  /// f32 that holds a value of `element` -> its 16 bits.
  llvm::Value *store(llvm::Value *value, mlir::Type element);
  /// f32 or f64 -> the nearest value of `element` (f32, bf16 or f16), ties to even, held in f32. NaN stays NaN.
  llvm::Value *round(llvm::Value *value, mlir::Type element);

private:
  llvm::Value *toOdd(llvm::Value *value);
  llvm::Value *bitsOf(llvm::Value *value);
  llvm::Type *like(llvm::Value *value, llvm::Type *element);

  llvm::IRBuilderBase &builder;
};

} // namespace msc::codegen
