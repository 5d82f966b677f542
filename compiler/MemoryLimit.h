// Whether a network fits into what a rank may need.
#pragma once

#include "compiler/Compiler.h"

namespace msc::compiler {

/// Compiles a network once, whatever a rank needs.
Result<CompileOutcome> compileOnce(const CompileOptions &options);

/// What the search says of a network, of which no plan is made.
struct Estimate {
  std::optional<passes::SearchFacts> search; ///< none: the mode does not search
  NetworkFacts facts;
};
/// In silence; with what a rank will need.
Result<Estimate> estimateOnce(CompileOptions options);

/// The fastest strategies that the search finds for a rank that may need so much, by what it says itself.
struct EstimateWithin {
  Estimate estimate;     ///< that fits, else the one that needs least
  bool fits = false;
  int64_t keptBytes = 0; ///< with which it is found (CompileOptions); 0: without a limit
};
/// Nothing where the mode does not search, or cannot say what a rank will need. `bytes`: what the search may find that it needs.
Result<std::optional<EstimateWithin>> estimateWithin(const CompileOptions &options, double bytes);

/// What was found under a limit.
struct WithinLimit {
  CompileOutcome outcome; ///< that fits, else the one that needs least
  bool fits = false;
  bool searched = false; ///< for strategies that fit
  uint64_t bytesWithoutLimit = 0;
  double usWithoutLimit = 0;
};

/// Compiles for options.memoryLimit. What a rank needs is what its plan says; the search is led to it by its own simulation of live
/// ranges, corrected by the plans that were made.
Result<WithinLimit> findWithin(CompileOptions options);

/// The plan, or why there is none and the cheapest change of the network with which there is one. `machine`: whose devices hold so
/// much; empty: the command line says so.
Result<CompileOutcome> compileWithin(const CompileOptions &options, const std::string &machine);

} // namespace msc::compiler
