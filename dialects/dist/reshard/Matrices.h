// The device matrices over which a redistribution is searched.
#pragma once

#include "dialects/dist/Algebra.h"
#include "runtime/machine/MachineModel.h"

namespace msc::dist {

/// First the one to start in. `common` is a common refinement of source and target. With few prime factors: every way
/// of writing its axes as prime axes, where a part of an axis may move alone (6 is 2 x 3 and 3 x 2); and if units of
/// the machine cut across some of these, all orders of the primes, unless the target is partial: a way may lead through
/// a sharding that two matrices express, and stay within units in one of them only.
std::vector<Matrix> searchedMatrices(const Matrix &common, const MachineModel &machine, bool targetIsPartial);

} // namespace msc::dist
