// How long collectives take between the ranks of this run.
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/machine/MachineModel.h"

#include <vector>

namespace msc {

/// A collective that all groups of `groupSize` consecutive ranks ran at the same time.
struct CollectiveSample {
  MoveKind kind = MoveKind::AllReduce;
  int64_t groupSize = 1;
  int64_t bytes = 0; ///< received per rank, maximum over ranks
  double us = 0;     ///< median over repetitions of the slowest rank's time
};

/// The sizes of groups that are measured among `ranks` ranks: divisors of it, at most four, ascending.
std::vector<int64_t> measuredGroupSizes(int64_t ranks);

/// Runs every kind of collective for every group size on tensors of 1 KiB to 64 MiB of f32 (the whole tensor of a group).
/// Ends within about `seconds`: sizes that would take longer than their share are left out. All ranks call it together and
/// get the same samples.
Result<std::vector<CollectiveSample>> measureCollectives(comm::World &world, double seconds);

} // namespace msc
