// Runs one function on every rank: on threads of this process, or, when started by mpirun, on the world of the processes.
#pragma once

#include "runtime/comm/Communicator.h"

#include <functional>
#include <gtest/gtest.h>

namespace msc::comm::test {

/// The world made by loadMpiWorld when this binary runs under mpirun, else null.
World *mpiWorld();

/// Calls `body` on `ranks` ranks with their world and the group of these ranks. Under mpirun the first `ranks` processes
/// take part; false if there are too few of them (the test is then skipped).
bool onRanks(int64_t ranks, const std::function<void(World &, Group &)> &body);

inline const OperationLabel kLabel{"op", "net.mir:14"};

/// The numbers 0..n-1.
std::vector<int64_t> firstRanks(int64_t n);

} // namespace msc::comm::test
