// The pass `msc-read-narrow`: products, attention and convolutions read bf16 and f16 where the devices have kernels for that
// (passes/partition/Widen.h).
#include "dialects/dist/DistDialect.h"
#include "dialects/net/NetOps.h"
#include "passes/partition/Widen.h"
#include "passes/plan/Passes.h"

using namespace mlir;

namespace msc::passes {
namespace {

class ReadNarrow : public PassWrapper<ReadNarrow, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReadNarrow)
  StringRef getArgument() const override { return "msc-read-narrow"; }
  StringRef getDescription() const override { return "operators with kernels for narrow operands read these, not casts of them"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<dist::DistDialect>(); }
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>()) {
      Block &block = network.getBody().front();
      SmallVector<Operation *> operators;
      for (Operation &op : block)
        if (takesNarrow(&op))
          operators.push_back(&op);
      for (Operation *op : operators)
        readNarrow(op);
      for (Operation &op : llvm::make_early_inc_range(block))
        castForEachReader(&op);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (isa<net::CastOp>(op) && op.use_empty())
          op.erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createReadNarrowPass() { return std::make_unique<ReadNarrow>(); }

} // namespace msc::passes
