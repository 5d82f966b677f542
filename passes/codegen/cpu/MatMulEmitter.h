// Emits a blocked matrix product for types that no library serves.
#pragma once

#include "passes/codegen/KernelLibrary.h"
#include "passes/codegen/cpu/LaneMemory.h"

#include "llvm/IR/Module.h"

namespace msc::codegen {

class MatMulEmitter {
public:
  /// Rows of the result that are computed together; cuts of the range are multiples of it.
  static constexpr int64_t rowsPerStep = 4;

  /// `vectorsPerRow` sums of one row are kept in registers; it changes speed, not bits.
  MatMulEmitter(const MatMulShape &shape, unsigned vectorsPerRow, llvm::Module &module, llvm::StringRef symbol);
  llvm::Function *emit();

private:
  /// The part of the result that one block of the depth contributes to.
  struct Block {
    llvm::Value *left, *right, *result;   ///< matrices of the batch
    llvm::Value *low, *high;              ///< rows
    llvm::Value *column = nullptr;
    int64_t columns = 0;
    llvm::Value *depth = nullptr;
    int64_t depthCount = 0;
    bool isFirst = true;                  ///< sums start at zero, not at what the result holds
  };
  /// Which matrix of an operand a batch of the result takes; `has` says which dimensions the operand has.
  llvm::Value *operandBatch(llvm::Value *batch, bool BatchDim::*has);
  void emitBatch(Block block);
  void emitColumns(Block block);
  void emitDepth(const Block &block);
  void pack(const Block &block);
  void packTransposed(const Block &block);
  void emitRows(const Block &block, llvm::Value *row, int64_t rows);
  unsigned groups(const Block &block) const { return (block.columns + lanes - 1) / lanes; }
  LaneMask mask(const Block &block, unsigned group) const;
  llvm::Value *element(llvm::Value *base, llvm::Value *row, int64_t stride, llvm::Value *column);
  llvm::Value *multiplyAdd(llvm::Value *a, llvm::Value *b, llvm::Value *sum);
  llvm::Value *number(int64_t value) { return builder.getInt64(value); }

  const MatMulShape shape;
  unsigned lanes, vectors;
  llvm::Function *function;
  llvm::IRBuilder<> builder;
  LaneMemory memory;
  LoopBuilder loops;
  llvm::Value *panel = nullptr;           ///< a block of the right matrix on the stack, rows of `vectors` vectors
};

} // namespace msc::codegen
