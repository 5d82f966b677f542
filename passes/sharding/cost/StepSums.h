// What passes behind autodiff do to sums of a step.
#pragma once

#include "passes/sharding/cost/StepEvents.h"

namespace msc::passes {

/// Of sums of many terms, which events name up to `sums`, additions stand behind the last term of some (passes/plan/EarlySums.h), moves
/// behind what they move.
void hoistSums(StepEvents &step, int32_t sums);

/// Sums over ranks of terms that nobody else reads lie where these did.
void sumInPlace(StepEvents &step);

} // namespace msc::passes
