// The phases of a compilation as data: a word, a sentence, the passes; and what they start from.
#pragma once

#include "compiler/Compiler.h"
#include "dialects/net/Config.h"
#include "frontend/Frontend.h"
#include "passes/sharding/Convert.h"

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <string>
#include <vector>

namespace msc::compiler {

/// How the text of a network is read: `--devices`, else the flag `--device-num` (a number that makes no sense is reported
/// with the other options), -D, the layer library; mistakes leave a module, too.
frontend::ParseOptions parseOptionsOf(const CompileOptions &options);
/// The flags that override the context block.
std::vector<net::ConfigOverride> overridesOf(const CompileOptions &options);

/// Where auto_parallel is not told how to choose: outward from the user's strategies, or, if there are none, those of least cost;
/// true for the latter.
bool chooseSearchMode(mlir::ModuleOp module, net::Config &config);

/// What of training changes what strategies cost.
passes::TrainingFacts trainingFactsOf(const net::Config &config, const CompileOptions &options);

/// A step of the driver that the report's `timing` names.
struct Phase {
  std::string name;     ///< key of the report's `timing`
  std::string sentence; ///< what holds afterwards
  std::function<void(mlir::PassManager &)> build;
};

/// From a parsed network to strategies for all of its operators.
std::vector<Phase> strategyPhases(const net::Config &config, const CompileOptions &options);
/// From there to a network without repeats.
Phase unrollPhase();
/// From there to a partitioned network with explicit collectives.
std::vector<Phase> partitionPhases(const net::Config &config, const CompileOptions &options);
/// Communication made fewer, smaller and earlier.
std::vector<Phase> optimizePhases(const net::Config &config, const CompileOptions &options);
/// From there to buffers, steps, kernels and memory.
std::vector<Phase> planPhases(const net::Config &config, const CompileOptions &options, MachineCode machineCode);

} // namespace msc::compiler
