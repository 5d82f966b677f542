// Passes that choose strategies.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Search.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>
#include <string>

namespace msc::passes {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/sharding/Passes.h.inc"

/// A step with all passes; infinity: it cannot be compiled.
struct PlannedStep {
  double us = 0;
  double bytes = 0; ///< that a rank needs
};

/// What all later passes make of a module whose operators have strategies. Each gets a copy of its own, which it may change. Null: nothing
/// but the search decides.
struct Planning {
  std::function<PlannedStep(mlir::ModuleOp)> step;
  std::function<double(mlir::ModuleOp)> bytes; ///< the same, at less cost
  double mostBytes = 0;                        ///< that it may need; 0: any
};

/// What a search under a limit on memory finds. Not empty: it was found before, for the same network and limit.
using FoundWithin = std::shared_ptr<std::vector<SearchResult>>;

/// The same pass with all that training changes, of which the options say a part. Of up to `candidates` assignments that a search
/// finds it takes the one that is fastest by `planning`. 0: four of a small network, fewer of a larger one. `watch` hears how the search comes
/// along.
std::unique_ptr<mlir::Pass> createAssignStrategiesPass(const AssignStrategiesPassOptions &options, TrainingFacts training,
                                                       Planning planning, int64_t candidates, FoundWithin within = nullptr,
                                                       SearchWatch watch = nullptr);

} // namespace msc::passes
