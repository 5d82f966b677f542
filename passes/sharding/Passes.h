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

/// Microseconds of a step of a module whose operators have strategies, once all later passes have looked at it; it may be changed.
/// Infinity: it cannot be compiled.
using StepPricing = std::function<double(mlir::ModuleOp)>;

/// What a search under a limit on memory finds. Not empty: it was found before, for the same network and limit.
using FoundWithin = std::shared_ptr<std::vector<SearchResult>>;

/// The same pass with all that training changes, of which the options say a part. Of up to `candidates` assignments that a search
/// finds it takes the one that is fastest by `price`, which gets copies. 0: four of a small network, fewer of a larger one. `watch` hears how
/// the search comes along.
std::unique_ptr<mlir::Pass> createAssignStrategiesPass(const AssignStrategiesPassOptions &options, TrainingFacts training,
                                                       StepPricing price, int64_t candidates, FoundWithin within = nullptr,
                                                       SearchWatch watch = nullptr);

} // namespace msc::passes
