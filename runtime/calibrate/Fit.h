// From measured collectives to the costs of a machine model.
#pragma once

#include "runtime/calibrate/Measure.h"

namespace msc {

/// The cost of one kind with the least sum of relative errors over `samples` (of that kind, none of 0 us). The shape of the
/// curve (own share, cache size) is found on a grid, the other terms are not negative, so time grows with size and group; alpha is
/// at least half the shortest sample, however noisy the samples are.
LinkCost fitLinkCost(const std::vector<CollectiveSample> &samples);

} // namespace msc
