// Passes that turn a network on global tensors into what each rank does on its shards.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace msc::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/partition/Passes.h.inc"

/// What `msc-verify-partition` checks, for one network. Reports the first flaw of every operator.
llvm::LogicalResult verifyPartition(net::NetworkOp network);

} // namespace msc::passes
