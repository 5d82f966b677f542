#include "passes/plan/LiveRanges.h"

using namespace mlir;
using namespace msc::plan_ir;

namespace msc::passes {

bool livesForTheRun(BufferOp buffer) {
  return llvm::is_contained({BufferKind::parameter, BufferKind::scalar, BufferKind::constant}, buffer.getKind());
}

SmallVector<Value> memoryOf(Operation *step) {
  auto wait = dyn_cast<WaitOp>(step);
  Access access = accessOf(wait ? startOf(wait).getOperation() : step);
  return llvm::to_vector(llvm::concat<Value>(access.reads, access.writes));
}

LiveRanges liveRanges(Block &body, ArrayRef<SmallVector<Value>> steps) {
  LiveRanges blocks;
  int64_t step = 0;
  auto touch = [&](Value memory) -> MemoryBlock & {
    BufferOp buffer = rootBuffer(memory);
    MemoryBlock &block = blocks.insert({buffer, {static_cast<int64_t>(buffer.getBytes()), step, step}}).first->second;
    block.last = step;
    return block;
  };
  for (const SmallVector<Value> &memories : steps) {
    ++step;
    for (Value memory : memories)
      touch(memory);
  }
  // Inputs are filled before the first step, results are fetched after the last one.
  for (auto input : body.getOps<InputOp>())
    touch(input.getMemory()).first = 0;
  ++step;
  for (auto output : body.getOps<OutputOp>()) {
    MemoryBlock &block = touch(output.getMemory());
    if (rootBuffer(output.getMemory()).getKind() == BufferKind::input)
      block.first = 0;
  }
  return blocks;
}

std::vector<MemoryBlock> packedBlocks(const LiveRanges &ranges) {
  std::vector<MemoryBlock> blocks;
  for (const auto &[buffer, block] : ranges)
    if (!livesForTheRun(cast<BufferOp>(buffer)))
      blocks.push_back(block);
  return blocks;
}

} // namespace msc::passes
