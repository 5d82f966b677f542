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
  for (auto input : body.getOps<InputOp>())
    touch(input.getMemory()); // it is filled before the first step
  for (const SmallVector<Value> &memories : steps) {
    ++step;
    for (Value memory : memories)
      touch(memory);
  }
  ++step;
  for (auto output : body.getOps<OutputOp>())
    touch(output.getMemory()); // it is fetched after the last one
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
