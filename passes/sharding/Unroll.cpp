#include "dialects/net/Repeat.h"
#include "passes/sharding/Passes.h"

using namespace mlir;

namespace msc::passes {

#define GEN_PASS_DEF_UNROLLPASS
#include "passes/sharding/Passes.h.inc"

namespace {

struct Unroll : impl::UnrollPassBase<Unroll> {
  void runOnOperation() override {
    for (auto network : getOperation().getOps<net::NetworkOp>())
      net::unrollAll(network);
  }
};

} // namespace
} // namespace msc::passes
