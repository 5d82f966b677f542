// Matrix products that no library serves, as GPU kernels: tiles of the operands in shared memory, one element of the result
// per thread, summed in the order of the depth as on CPUs.
#pragma once

#include "passes/codegen/KernelLibrary.h"
#include "passes/codegen/nvptx/PackedMemory.h"
#include "passes/codegen/nvptx/ThreadBuilder.h"

namespace msc::codegen {

class ProductEmitter {
public:
  static constexpr unsigned side = 16, block = side * side;

  /// The batch dimensions of the shape are merged as far as possible.
  ProductEmitter(const MatMulShape &shape, llvm::Module &module, llvm::StringRef symbol);
  llvm::Function *emit();

private:
  llvm::Value *operandBatch(llvm::Value *batch, bool BatchDim::*has);
  llvm::Value *number(int64_t value) { return builder.getInt64(value); }
  void emitTile(llvm::Value *batch, llvm::Value *row, llvm::Value *rows, llvm::Value *column);
  /// Brings elements [line, line + side) x [column, column + side) of a row-major matrix into shared memory, zeros outside.
  void fetch(llvm::Value *matrix, llvm::Value *line, llvm::Value *lines, llvm::Value *column, llvm::Value *columns,
             llvm::Value *stride, llvm::Value *tile, bool transpose);
  llvm::Value *place(llvm::Value *tile, llvm::Value *line, llvm::Value *column);

  const MatMulShape &shape;
  llvm::Function *function;
  llvm::IRBuilder<> builder;
  PackedMemory memory;
  LoopBuilder loops;
  ThreadBuilder threads;
  llvm::Value *x = nullptr, *y = nullptr, *leftTile = nullptr, *rightTile = nullptr;
};

} // namespace msc::codegen
