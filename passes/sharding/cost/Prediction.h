// Which collectives the step model counts on: what its price of a choice is made of, by kind, group and phase.
#pragma once

#include "passes/sharding/SearchFacts.h"
#include "passes/sharding/cost/StepModel.h"

namespace msc::passes {

/// Everything that a step costs under these strategies, of which model.options() has those of every operator.
Prediction predictionOf(const Problem &problem, const StepModel &model, const Choices &choices, dist::ReshardPlanner &planner);

} // namespace msc::passes
