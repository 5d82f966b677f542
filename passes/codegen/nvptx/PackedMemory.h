// Neighbouring elements between memory and registers in as few accesses as possible: up to 16 bytes each.
#pragma once

#include "passes/codegen/LoopBuilder.h"

#include "mlir/IR/Types.h"

namespace msc::codegen {

class PackedMemory {
public:
  explicit PackedMemory(llvm::IRBuilderBase &builder) : builder(builder) {}

  /// `count` elements from an address that is a multiple of their size; a power of two.
  Values load(mlir::Type element, llvm::Value *address, unsigned count);
  void store(mlir::Type element, llvm::ArrayRef<llvm::Value *> values, llvm::Value *address);
  /// One element between its form in memory (a byte for bool, 16 bits for bf16 and f16) and in registers.
  llvm::Value *toRegister(mlir::Type element, llvm::Value *raw);
  llvm::Value *toMemory(mlir::Type element, llvm::Value *value);
  llvm::Type *memory(mlir::Type element);
  /// `offset` counts elements and is not negative.
  llvm::Value *advance(mlir::Type element, llvm::Value *address, llvm::Value *offset);

private:
  llvm::IRBuilderBase &builder;
};

} // namespace msc::codegen
