// Runs one function on every rank: on threads of this process, or, when started by mpirun, on the world of the processes; or on devices that these ranks
// have.
#pragma once

#include "runtime/comm/Communicator.h"

#include <functional>
#include <gtest/gtest.h>

namespace msc::comm::test {

/// The world made by loadMpiWorld when this binary runs under mpirun, else null.
World *mpiWorld();

/// What ranks communicate by instead of their hosts. There is at most one, which lives as long as the process.
class Devices {
public:
  Devices();
  virtual ~Devices() = default;
  /// Before and behind the ranks of one test, in each process.
  virtual void begin(int64_t ranks) = 0;
  virtual void end() = 0;
  /// Behind all tests.
  virtual void close() {}
  /// A world for a rank of that test; all ranks ask.
  virtual Result<std::unique_ptr<World>> connect(World &hosts) = 0;
  /// Sums may be added up in another order than that of the ranks.
  virtual bool addsInAnyOrder() const { return false; }
  /// Elements of the largest tensors that there is time for.
  virtual int64_t mostElements() const { return INT64_MAX; }
};
/// Null: the hosts themselves.
Devices *devices();
inline bool isTooLarge(int64_t elements) { return devices() && elements > devices()->mostElements(); }

/// How many ranks tests run on: one to eight, and no more than mpirun has started; with devices two or more, or all processes of mpirun, since each rank
/// of a world has one.
std::vector<int64_t> rankCounts();

/// Calls `body` on `ranks` ranks with their world and the group of these ranks. Under mpirun the first `ranks` processes
/// take part; there have to be as many (rankCounts).
void onRanks(int64_t ranks, const std::function<void(World &, Group &)> &body);

inline const OperationLabel kLabel{"op", "net.mir:14"};

/// The numbers 0..n-1.
std::vector<int64_t> firstRanks(int64_t n);

} // namespace msc::comm::test
