// An NCCL on the recording driver, behind the table that the communicator calls: ranks are threads of this process. It tests how we
// use the interface, not NVIDIA's code: it knows no network, no channels, and no time.
//
// A collective is work on streams like any other, and runs when all members have come to it. Broken rules stand in violations() of the driver:
// calls beside one in progress, after an abort or outside of a group where that would hang; members that launch different
// things, or communicators in different orders; a communicator that only some ranks abort; one GPU for two ranks.
#pragma once

#include "runtime/comm/nccl/Nccl.h"
#include "test/runtime/device/cuda/RecordingDriver.h"

#include <memory>
#include <string>
#include <vector>

namespace msc::test {

class RecordingNccl {
public:
  /// There is one at a time, and `driver` outlives it.
  explicit RecordingNccl(RecordingDriver &driver);
  ~RecordingNccl();

  comm::nccl::Table table() const;

  int version = 22809;
  /// Every call that may go on behind its return does so until it was asked for so often.
  int looks = 0;

  /// The `number`th call (from 1) of a function returns this, and does nothing.
  void failCall(const std::string &function, int number, comm::nccl::Code code);
  /// From its `number`th launch (from 1) on, nothing that `rank` launches comes to an end; asked for errors, its communicators
  /// say `code`. Success: they say nothing.
  void breakRank(int rank, int number, comm::nccl::Code code);
  /// ncclCommAbort does not return until letAbortsGo().
  void holdAborts();
  void letAbortsGo();

  int calls(const std::string &function) const;
  /// What `rank` has launched, in its order: "AllReduce", "AllReduce + AllReduce", "2 sends, 1 receive".
  std::vector<std::string> launches(int rank) const;
  /// Communicators that were neither destroyed nor aborted, memory that was not freed; empty: none. Compares the orders of
  /// launches, and who has aborted what.
  std::string finish();

  struct State;

private:
  std::unique_ptr<State> state;
};

} // namespace msc::test
