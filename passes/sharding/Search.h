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
};

/// The strategies under which a step takes least, exactly.
SearchResult searchOptimal(const Problem &problem, const StepModel &model);


} // namespace msc::passes
