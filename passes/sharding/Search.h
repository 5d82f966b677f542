// The search modes that price all strategies together.
#pragma once

#include "passes/sharding/cost/RoundsModel.h"
#include "passes/sharding/cost/StepMemory.h"
#include "passes/sharding/cost/StepModel.h"
#include "passes/sharding/search/Budget.h"

#include <functional>
#include <optional>

namespace msc::passes {

/// A repeat of which rounds take different strategies.
struct RoundsTaken {
  /// Successive rounds that take the same.
  struct Run {
    int64_t rounds = 0;
    std::vector<Pieces> pieces; ///< of each of the operators
  };
  int32_t repeat = 0;              ///< index into Problem::repeats
  std::vector<int32_t> operators;  ///< in its body
  std::vector<Run> runs;
};

/// What a search found.
struct SearchResult {
  Choices choices; ///< of repeats: of the first round
  std::vector<RoundsTaken> rounds;
  double us = 0;       ///< of a step under these strategies, in the model
  double boundUs = 0;  ///< no choice takes less
  bool isOptimal = false;
  double leastBytes = 0; ///< that a rank needs under all strategies at least; 0: not known
  double arenaBytes = 0; ///< that a rank will need, as StepMemory says; 0: not known
  bool isPlanned = false; ///< its plan says so
  std::vector<search::RepeatedChoice> near; ///< where the search took long: what it found nearly as good beside it, itself first
};

/// A step under these strategies; empty where the problem has rounds of a dump that were joined.
StepEvents eventsOf(const Problem &problem, const StepModel &model, const SearchResult &result, dist::ReshardPlanner &planner);

/// What a solution says in words of the problem.
SearchResult resultOf(const Problem &problem, const StepModel &model, const search::Solution &found);

/// Is called while a search runs, often: no step takes less than `leastUs` (0: not known), one takes `knownUs` (infinity: none is known).
using SearchWatch = std::function<void(double leastUs, double knownUs)>;

/// The strategies under which a step takes least, exactly. Rounds of a repeat take different ones where that is faster. `most`: operations that it
/// may spend, if less than the problem says.
SearchResult searchOptimal(const Problem &problem, StepModel &model, const SearchWatch &watch = nullptr, std::optional<int64_t> most = std::nullopt);

/// What a rank needs by the plan of an assignment, which takes all passes to know.
struct PlannedBytes {
  std::function<double(const SearchResult &)> of; ///< null: nobody knows
  double most = 0;                                ///< that fit
  int64_t plans = 0;                              ///< that may be made
};

/// The same among those under which a rank needs at most so many bytes for a step, as StepMemory says: the fastest, then others that
/// fit. None is known to fit: the one that needs least. Bounds hold for all that fit. Where an assignment would be the fastest its plan decides,
/// if there are some left to be made: what does not fit then is none of those that bounds speak of.
std::vector<SearchResult> searchWithin(const Problem &problem, StepModel &model, double bytes, dist::ReshardPlanner &planner,
                                       const search::BudgetLimits &limits = {}, const SearchWatch &watch = nullptr,
                                       const PlannedBytes &planned = {});

/// Other assignments, at most `most`, that may be faster than `best` once all passes have looked at them: the cheapest ones where
/// half or all of the time of gradients is hidden (only where `hides`: the machine lets collectives run beside computation), then those
/// nearest to the optimum.
std::vector<SearchResult> searchNear(const Problem &problem, StepModel &model, const SearchResult &best, bool hides, size_t most,
                                     const SearchWatch &watch = nullptr);

/// Divides the devices by one prime after the other (where the user wrote a mesh: by one axis of it): each time every operator keeps its
/// strategy or cuts one factor once more, chosen for all operators together. Few options at a time, whatever the number of devices; nothing is proven. `modelOf`
/// prices the problems on the way.
SearchResult searchRecursively(const Problem &problem, const std::function<StepModel(const Problem &)> &modelOf);

} // namespace msc::passes
