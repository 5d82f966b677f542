// Vector loads and stores: contiguous, strided, masked; transposition of square tiles.
#pragma once

#include "passes/codegen/LoopBuilder.h"

#include "mlir/IR/Types.h"
#include "llvm/IR/Module.h"

namespace msc::codegen {

/// Which lanes of a vector count. Lanes from the first, either a number known here or one known when the kernel runs.
struct LaneMask {
  int valid = -1;                  ///< number of lanes; -1: all of them, or `dynamic` says
  llvm::Value *dynamic = nullptr;  ///< <lanes x i1>
  bool isFull() const { return valid < 0 && !dynamic; }
};

/// Moves vectors of `lanes` elements between registers and memory. Bool is one byte in memory and one bit in registers.
class LaneMemory {
public:
  LaneMemory(llvm::IRBuilderBase &builder, unsigned lanes) : builder(builder), lanes(lanes) {}

  /// `stride` is in elements; 0 reads one element into all lanes. Lanes outside of the mask are zero.
  llvm::Value *load(mlir::Type element, llvm::Value *address, int64_t stride, const LaneMask &mask);
  /// With stride 0 lane 0 is written.
  void store(mlir::Type element, llvm::Value *value, llvm::Value *address, int64_t stride, const LaneMask &mask);
  /// Writes a whole vector around the caches. The address is a multiple of the vector's size.
  void stream(mlir::Type element, llvm::Value *value, llvm::Value *address);
  /// The mask of the first `count` lanes (i64, at least 0).
  LaneMask firstLanes(llvm::Value *count);
  llvm::Value *maskValue(const LaneMask &mask);
  /// Rows become columns.
  Values transpose(Values rows);
  llvm::Value *advance(mlir::Type element, llvm::Value *address, llvm::Value *elements);
  llvm::Value *advance(mlir::Type element, llvm::Value *address, int64_t elements);

private:
  llvm::Type *memory(mlir::Type element);
  llvm::Value *toRegister(mlir::Type element, llvm::Value *value);
  llvm::Value *toMemory(mlir::Type element, llvm::Value *value);
  llvm::Value *laneAddresses(mlir::Type element, llvm::Value *address, int64_t stride);

  llvm::IRBuilderBase &builder;
  unsigned lanes;
};

/// The module's function `void (ptr from, i64 fromStride, ptr to, i64 toStride, i64 lines, i64 length)`: copies `lines`
/// lines of `length` elements (each at most `lanes`) to their transposed place. Strides are in elements. The shuffles
/// are the slowest code to generate, so all kernels of a module share them.
llvm::Function *tileTransposition(llvm::Module &module, mlir::Type element, unsigned lanes);

} // namespace msc::codegen
