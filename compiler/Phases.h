// The phases of a compilation as data: a word, a sentence, the passes.
#pragma once

#include "compiler/Compiler.h"
#include "dialects/net/Config.h"

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <string>
#include <vector>

namespace msc::compiler {

/// A step of the driver that the report's `timing` names.
struct Phase {
  std::string name;     ///< key of the report's `timing`
  std::string sentence; ///< what holds afterwards
  std::function<void(mlir::PassManager &)> build;
};

/// From a parsed network to strategies for all of its operators.
std::vector<Phase> strategyPhases(const net::Config &config, const CompileOptions &options);
/// From there to a partitioned network with explicit collectives.
std::vector<Phase> partitionPhases(const net::Config &config, const CompileOptions &options);
/// Communication made fewer, smaller and earlier.
std::vector<Phase> optimizePhases(const net::Config &config, const CompileOptions &options);
/// From there to buffers, steps, kernels and memory.
std::vector<Phase> planPhases(const CompileOptions &options);

} // namespace msc::compiler
