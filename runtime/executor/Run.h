// All ranks of this process: threads under one hub, or one rank under mpirun.
#pragma once

#include "runtime/executor/RunOptions.h"

#include <chrono>
#include <memory>

namespace msc::comm {
class World;
}

namespace msc {

/// How the ranks of this process end: the first cause, and whether this process is the one to print it.
struct RunResult {
  Status status;
  bool prints = true;
};

/// Trains with one thread per rank of the plan. SIGINT and SIGTERM end the run between two steps.
RunResult runThreads(SharedRun &shared, std::chrono::milliseconds timeout);

/// Runs this process's rank of `world`.
RunResult runRank(SharedRun &shared, comm::World &world, std::chrono::milliseconds timeout);

} // namespace msc
