// Passes that turn a partitioned network into a plan: units in order, kernels, static memory.
#pragma once

#include "dialects/plan/PlanDialect.h"
#include "passes/plan/Units.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>

namespace msc::passes {

/// `msc-read-narrow`: operators with kernels for bf16, and in plans for GPUs alone for f16, read these instead of casts of them to f32.
std::unique_ptr<mlir::Pass> createReadNarrowPass();

struct BuildPlanOptions {
  bool fusion = true;
  bool cpu = true, gpu = false; ///< what kernels are compiled for
  bool thisProcessor = false;   ///< of CPUs, for the one that compiles
  std::function<void(mlir::func::FuncOp)> onCluster; ///< sees every cluster that becomes a kernel; for tests
  std::function<void(const std::string &)> onGpuIr;  ///< gets the IR of all kernels for GPUs; for tests
  bool machineCode = true; ///< off: steps and their times alone
};

/// `msc-build-plan`: net.network on sharded tensors -> plan.program with buffers, steps, kernels and machine code.
std::unique_ptr<mlir::Pass> createBuildPlanPass(const BuildPlanOptions &options = {});

struct OverlapOptions {
  double growth = 0;       ///< by which share the arena may grow
  int64_t memoryLimit = 0; ///< and to which size, in bytes; 0: any
};

/// `msc-overlap-collectives`: collectives start as early and are awaited as late as they can within that memory, where the
/// rank computes in between.
std::unique_ptr<mlir::Pass> createOverlapCollectivesPass(const OverlapOptions &options = {});

/// Modelled microseconds by which a step is shorter if asynchronous collectives run, one after the other, beside the
/// steps that compute.
double hiddenUs(plan_ir::ProgramOp program);

/// `msc-assign-memory`: offsets of all buffers in one arena, by live ranges.
std::unique_ptr<mlir::Pass> createAssignMemoryPass();

} // namespace msc::passes
