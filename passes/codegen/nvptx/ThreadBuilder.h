// What a GPU kernel asks of the machine beyond arithmetic: who it is, the threads beside it, the memory that they share.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace msc::codegen {

/// The address spaces of NVPTX.
enum AddressSpace : unsigned { globalMemory = 1, sharedMemory = 3 };

/// Creates `void symbol(ptr addrspace(1)..., i64 end)`, a kernel of `block` threads. `readOnly` has one entry per pointer.
/// With `scratch` one more pointer stands before the end: to memory that blocks share. `minBlocks` fit on a processor.
llvm::Function *createGpuKernel(llvm::Module &module, llvm::StringRef symbol, llvm::ArrayRef<bool> readOnly, unsigned block,
                                bool scratch = false, unsigned minBlocks = 1);

class ThreadBuilder {
public:
  /// `index`: the type of positions, i32 or i64.
  ThreadBuilder(llvm::IRBuilderBase &builder, llvm::Type *index) : builder(builder), index(index) {}

  llvm::Value *thread();   ///< of the block
  llvm::Value *block();    ///< of the grid
  llvm::Value *blocks();   ///< in the grid
  /// All threads of the block arrive before one goes on; what they wrote is seen.
  void barrier();
  /// Called by all threads of `blocks` blocks, each with the same counter, which is zero: holds in the block that comes last.
  /// It sees what the others wrote before, and the counter is zero again.
  llvm::Value *comesLast(llvm::Value *counter, int64_t blocks);
  /// The value of the thread of the warp whose number differs in the bits of `mask`.
  llvm::Value *exchange(llvm::Value *value, unsigned mask);
  /// An array that the threads of a block share.
  llvm::Value *shared(llvm::Type *element, uint64_t count);
  /// Code that runs only where the condition holds; a null condition holds always.
  void when(llvm::Value *condition, llvm::function_ref<void()> body);
  /// Both hold; null holds always.
  llvm::Value *both(llvm::Value *a, llvm::Value *b);

private:
  llvm::Value *special(unsigned intrinsic);

  llvm::IRBuilderBase &builder;
  llvm::Type *index;
};

} // namespace msc::codegen
