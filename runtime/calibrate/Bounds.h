// What collectives cost at most, because others do their work.
#pragma once

#include "runtime/machine/MachineModel.h"

namespace msc {

/// Lowers measured costs, whose errors differ from kind to kind, until no kind costs more than others that do its work with the
/// same tensor: ReduceScatter <= AllReduce <= ReduceScatter + AllGather, AlltoAll <= AllGather, for groups of up to 1024 ranks and
/// every size. Costs for which this holds stay as they are.
void keepBounds(std::array<LinkCost, moveKinds> &costs);

} // namespace msc
