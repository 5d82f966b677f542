// Whether a network fits into what a rank may need.
#pragma once

#include "compiler/Compiler.h"

namespace msc::compiler {

/// Compiles a network once, whatever a rank needs. An estimate (CompileOptions::estimates) has a plan without programs.
Result<CompileOutcome> compileOnce(const CompileOptions &options);

/// A plan that takes seconds to make.
bool isLarge(const plan::Plan &plan);
/// One for which the search for strategies within a limit takes seconds.
bool isHardToLimit(const plan::Plan &plan);

/// What was found under a limit.
struct WithinLimit {
  CompileOutcome outcome; ///< that fits, else the one that needs least
  bool fits = false;
  bool searched = false; ///< for strategies that fit
  uint64_t bytesWithoutLimit = 0;
  double usWithoutLimit = 0;
};

/// Compiles for options.memoryLimit. What a rank needs is what its plan says: the search goes by a model of it, and is asked for less
/// until the plan fits. Of large networks it says itself what a rank needs (decision 17), and plans are made of what is expected to fit.
/// Where what needs least is up to a tenth above the limit, the search is asked twice for less: it does not find the least for certain.
/// What is proven is proven for the first limit that it was asked for. `isLarge`: known to be large, so that no plan is made without a
/// limit.
Result<WithinLimit> findWithin(CompileOptions options, bool isLarge = false);

/// The plan, or why there is none and the cheapest change of the network with which there is one. `machine`: whose devices hold so
/// much; empty: the command line says so.
Result<CompileOutcome> compileWithin(const CompileOptions &options, const std::string &machine);

} // namespace msc::compiler
