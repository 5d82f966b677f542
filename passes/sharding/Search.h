// The search modes that price all strategies together.
#pragma once

#include "passes/sharding/cost/StepModel.h"

namespace msc::passes {

/// What a search found.
struct SearchResult {
  Choices choices;
  double us = 0;       ///< of a step under these strategies, in the model
  double boundUs = 0;  ///< no choice takes less
  bool isOptimal = false;
  double bytes = 0;      ///< that a rank keeps under these strategies
  double leastBytes = 0; ///< of all strategies, where there is a limit; more than that: these take least
};

/// The strategies under which a step takes least, exactly.
SearchResult searchOptimal(const Problem &problem, const StepModel &model);

/// The same among those under which a rank keeps at most so many bytes; the bound is certified.
SearchResult searchWithin(const Problem &problem, const StepModel &model, double bytes);


} // namespace msc::passes
