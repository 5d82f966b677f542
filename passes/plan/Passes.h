// Passes that turn a partitioned network into a plan: units in order, kernels, static memory.
#pragma once

#include "passes/plan/Units.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace msc::passes {

struct BuildPlanOptions {
  bool fusion = true;
};

/// `msc-build-plan`: net.network on sharded tensors -> plan.program with buffers, steps, kernels and machine code.
std::unique_ptr<mlir::Pass> createBuildPlanPass(const BuildPlanOptions &options = {});

/// `msc-assign-memory`: offsets of all buffers in one arena, by live ranges.
std::unique_ptr<mlir::Pass> createAssignMemoryPass();

} // namespace msc::passes
