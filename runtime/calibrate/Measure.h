// How long collectives take between the ranks of this run.
#pragma once

#include "runtime/calibrate/Stopwatch.h"
#include "runtime/comm/Communicator.h"
#include "runtime/machine/MachineModel.h"

#include <vector>

namespace msc {

/// How ranks are divided into groups of `size` ranks, `stride` apart: 0-1-2-3 | 4-5-6-7 are (4, 1), 0-4 | 1-5 | 2-6 |
/// 3-7 are (2, 4).
struct GroupForm {
  int64_t size = 1;
  int64_t stride = 1;
};

/// A collective that all groups of a form ran at the same time.
struct CollectiveSample {
  MoveKind kind = MoveKind::AllReduce;
  int64_t groupSize = 1;
  int64_t bytes = 0; ///< received per rank, maximum over ranks
  double us = 0;     ///< median over repetitions of the slowest rank's time
  double spread = 0; ///< of the repetitions, as Stopwatch::spreads says
};

/// The sizes of groups that are measured among `ranks` ranks: divisors of it, at most four, ascending.
std::vector<int64_t> measuredGroupSizes(int64_t ranks);

/// Groups of consecutive ranks of those sizes.
std::vector<GroupForm> consecutiveGroups(int64_t ranks);

/// Groups that reach across nodes of `node` consecutive ranks: one rank of each of some nodes, and all ranks.
std::vector<GroupForm> groupsAcross(int64_t ranks, int64_t node);

/// Runs every kind of collective in groups of every form on tensors of 1 KiB to 64 MiB of f32 (the whole tensor of a
/// group). Ends within about `seconds` of `clock`: sizes that would take longer than their share are left out. All
/// ranks call it together and get the same samples.
Result<std::vector<CollectiveSample>> measureCollectives(comm::World &world, const std::vector<GroupForm> &forms,
                                                         double seconds, const Clock &clock = steadyMicroseconds);

} // namespace msc
