// Counted loops with carried values, straight in LLVM IR.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace msc::codegen {

using Values = llvm::SmallVector<llvm::Value *>;

/// Emits loops at the builder's insertion point; the point moves behind the loop.
class LoopBuilder {
public:
  /// Gets the counter and the carried values, returns the carried values of the next iteration.
  using Body = llvm::function_ref<Values(llvm::Value *counter, const Values &carried)>;

  explicit LoopBuilder(llvm::IRBuilderBase &builder) : builder(builder) {}

  /// for (i = low; i < high; i += step), signed. `high - low` is a multiple of `step`, or the last step is short.
  /// Loops that run once or never according to constant bounds leave no loop behind.
  Values loop(llvm::Value *low, llvm::Value *high, int64_t step, const Values &initial, Body body);
  /// The same with a step that is known when the loop runs.
  Values loop(llvm::Value *low, llvm::Value *high, llvm::Value *step, const Values &initial, Body body);

private:
  llvm::IRBuilderBase &builder;
};

} // namespace msc::codegen
