// Passes that make communication fewer, smaller and earlier. They do not change what a network computes.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "passes/optimize/FuseCollectives.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace msc::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/optimize/Passes.h.inc"

/// `msc-fuse-collectives`: collectives that bring gradients of parameters together and have one group, reduction and type
/// get the same `dist.fusion` and stand next to each other; they run as one. The same bits as one after the other.
std::unique_ptr<mlir::Pass> createFuseCollectivesPass(const CommFusion &rules);

/// What the collectives of a network cost: modelled time, and bytes that the busiest rank receives.
struct Communication {
  double us = 0;
  int64_t bytes = 0;
};
Communication communicationOf(net::NetworkOp network);

} // namespace msc::passes
