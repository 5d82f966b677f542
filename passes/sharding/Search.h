// The search modes that price all strategies together.
#pragma once

#include "passes/sharding/cost/StepModel.h"

#include <functional>

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

/// What a solution says in words of the problem.
SearchResult resultOf(const Problem &problem, const StepModel &model, const search::Solution &found);

/// The strategies under which a step takes least, exactly.
SearchResult searchOptimal(const Problem &problem, StepModel &model);

/// The same among those under which a rank keeps at most so many bytes; the bound is certified.
SearchResult searchWithin(const Problem &problem, StepModel &model, double bytes);


/// Divides the devices by one prime after the other (where the user wrote a mesh: by one axis of it): each time every operator keeps its strategy or cuts one factor once more,
/// chosen for all operators together. Few options at a time, whatever the number of devices; nothing is proven. `modelOf`
/// prices the problems on the way.
SearchResult searchRecursively(const Problem &problem, const std::function<StepModel(const Problem &)> &modelOf);

} // namespace msc::passes
