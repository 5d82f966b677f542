// All ranks of this process: threads under one hub, or one rank under mpirun.
#pragma once

#include "runtime/executor/RunOptions.h"

#include <chrono>
#include <functional>

namespace msc::comm {
class World;
}

namespace msc {

/// Prints why a run has failed.
using FailurePrinter = std::function<void(const Error &)>;

/// Trains with one thread per rank of the plan; returns the first cause of a failure, printed once. SIGINT and SIGTERM end
/// the run between two steps.
Status runThreads(SharedRun &shared, std::chrono::milliseconds timeout, const FailurePrinter &print);

/// Threads started from now on leave SIGINT and SIGTERM to runRank. Called before MPI starts threads of its own: a signal that
/// reached one of them would end the process without a word.
void reserveSignals();

/// Runs this process's rank of `world`; returns the first cause of a failure. One rank of each host that knows it first hand
/// prints it, from the thread that takes signals if need be: mpirun leaves ranks a second after the first of them has died.
Status runRank(SharedRun &shared, comm::World &world, std::chrono::milliseconds timeout, const FailurePrinter &print);

} // namespace msc
