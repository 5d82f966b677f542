// Gives every buffer its offset: parameters, states and scalars first (they live for the whole run), then the buffers of
// one step packed by live range. Views take the offset of what they show.
#include "dialects/plan/PlanDialect.h"
#include "passes/plan/MemoryPacking.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace msc;
using namespace msc::plan_ir;

namespace {

bool livesForTheRun(BufferOp buffer) {
  return llvm::is_contained({BufferKind::parameter, BufferKind::scalar, BufferKind::constant}, buffer.getKind());
}

/// First and last step that touches each root buffer.
llvm::MapVector<Operation *, passes::MemoryBlock> liveRanges(Block &body) {
  llvm::MapVector<Operation *, passes::MemoryBlock> blocks;
  int64_t step = 0;
  auto touch = [&](Value memory) {
    BufferOp buffer = rootBuffer(memory);
    auto [at, isNew] = blocks.insert({buffer, {static_cast<int64_t>(buffer.getBytes()), step, step}});
    at->second.last = step;
  };
  for (Operation &op : body) {
    if (!isStep(&op))
      continue;
    ++step;
    Access access = accessOf(&op);
    for (Value memory : llvm::concat<Value>(access.reads, access.writes))
      touch(memory);
  }
  // Inputs are filled before the first step, results are fetched after the last one.
  for (auto input : body.getOps<InputOp>()) {
    touch(input.getMemory());
    blocks[rootBuffer(input.getMemory())].first = 0;
  }
  for (auto output : body.getOps<OutputOp>()) {
    touch(output.getMemory());
    blocks[rootBuffer(output.getMemory())].last = step + 1;
    if (rootBuffer(output.getMemory()).getKind() == BufferKind::input)
      blocks[rootBuffer(output.getMemory())].first = 0;
  }
  return blocks;
}

class AssignMemory : public PassWrapper<AssignMemory, OperationPass<ProgramOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AssignMemory)
  StringRef getArgument() const override { return "msc-assign-memory"; }
  StringRef getDescription() const override { return "gives every buffer an offset in one arena, by live ranges"; }

  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    int64_t arena = 0;
    for (auto buffer : body.getOps<BufferOp>())
      if (!buffer.getViewOf() && livesForTheRun(buffer)) {
        buffer.setOffset(arena);
        arena += (buffer.getBytes() + 63) / 64 * 64;
      }
    std::vector<passes::MemoryBlock> blocks;
    SmallVector<BufferOp> owners;
    for (auto &[buffer, block] : liveRanges(body))
      if (auto op = cast<BufferOp>(buffer); !livesForTheRun(op)) {
        owners.push_back(op);
        blocks.push_back(block);
      }
    passes::Packing packing = passes::packMemory(blocks);
    for (auto [buffer, offset] : llvm::zip(owners, packing.offsets))
      buffer.setOffset(arena + offset);
    for (auto buffer : llvm::make_early_inc_range(body.getOps<BufferOp>())) {
      if (buffer.getViewOf())
        buffer.setOffset(rootBuffer(buffer.getMemory()).getOffset());
      else if (!buffer.getOffset())
        buffer.setOffset(arena); // touched by no step
    }
    getOperation().setArenaBytes(arena + packing.bytes);
  }
};

} // namespace

std::unique_ptr<Pass> msc::passes::createAssignMemoryPass() { return std::make_unique<AssignMemory>(); }
