// When the buffers of a program are needed.
#pragma once

#include "dialects/plan/PlanDialect.h"
#include "passes/plan/MemoryPacking.h"

#include "llvm/ADT/MapVector.h"

namespace msc::passes {

/// Parameters, states, scalars and constants keep their memory.
bool livesForTheRun(plan_ir::BufferOp buffer);

/// All memory that a step needs: what it reads and writes, and of a wait what its collective reads and writes.
llvm::SmallVector<mlir::Value> memoryOf(mlir::Operation *step);

using LiveRanges = llvm::MapVector<mlir::Operation *, MemoryBlock>;

/// From when to when each root buffer is needed if the steps of `body` need this memory one after the other, numbered
/// from 1. Inputs are there before the first step (0), results until after the last one.
LiveRanges liveRanges(mlir::Block &body, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> steps);

/// Those that do not live for the run.
std::vector<MemoryBlock> packedBlocks(const LiveRanges &ranges);

} // namespace msc::passes
