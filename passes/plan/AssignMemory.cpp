// Gives every buffer its offset: parameters, states and scalars first (they live for the whole run), then the buffers of
// one step packed by live range. Views take the offset of what they show.
#include "dialects/plan/PlanDialect.h"
#include "passes/plan/LiveRanges.h"
#include "passes/plan/Passes.h"

using namespace mlir;
using namespace msc;
using namespace msc::plan_ir;
using msc::passes::livesForTheRun;

namespace {

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
    SmallVector<SmallVector<Value>> steps;
    for (Operation &op : body)
      if (isStep(&op))
        steps.push_back(passes::memoryOf(&op));
    passes::LiveRanges ranges = passes::liveRanges(body, steps);
    SmallVector<BufferOp> owners;
    for (auto &[buffer, block] : ranges)
      if (auto op = cast<BufferOp>(buffer); !livesForTheRun(op))
        owners.push_back(op);
    passes::Packing packing = passes::packTightly(passes::packedBlocks(ranges));
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
