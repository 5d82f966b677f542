// What a compilation finds out beside the plan, for those who ask why: what nobody asked for, and what other strategies would cost.
#pragma once

#include "compiler/Compiler.h"
#include "dialects/net/Config.h"
#include "passes/sharding/Surprises.h"

#include <optional>
#include <vector>

namespace msc::compiler {

/// Called at the points of a compilation that it is named after. Does nothing where nobody asks, and where all devices do the same.
class Explanation {
public:
  Explanation(const CompileOptions &options, Findings &findings) : options(options), findings(findings) {}

  /// The network has its strategies, and its repeats.
  void afterStrategies(net::NetworkOp network, const net::Config &config);
  /// Communication has its final form.
  void afterOptimization(net::NetworkOp network);
  /// Takes down what nobody asked for, in the order of the text. False: these are errors now, which have been reported.
  bool report();
  /// The plan is written.
  void afterPlan(const plan::Plan &plan);

private:
  passes::Freedom freedom(const net::Config &config) const;
  std::optional<NextBest> nextBestOf(size_t op);

  const CompileOptions &options;
  Findings &findings;
  bool mayReplicate = false; ///< in this parallel mode
  std::optional<passes::Alternatives> alternatives;
  std::vector<passes::SurpriseAt> surprises;
};

} // namespace msc::compiler
