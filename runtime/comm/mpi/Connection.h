// Non-blocking messages between processes, with deadlines, and the news of a failure.
#pragma once

#include "runtime/comm/shared/SharedRun.h"

#include <mpi.h>

namespace msc::comm {

/// Messages over two communicators of all ranks: one for data, one for failures. Every wait polls, gives the core away,
/// notices failures and names who is missing.
class Connection {
public:
  /// Both communicators are duplicates of MPI_COMM_WORLD and are freed by close().
  Connection(SharedRun &run, int64_t ranks);
  /// Frees the communicators; only after a run without failure.
  void close();

  void send(const void *data, int64_t bytes, int64_t rank);
  void receive(void *data, int64_t bytes, int64_t rank);
  /// Until everything sent and received since the last wait is done. `what` describes the operation.
  Status wait(const OperationRecord &what);
  /// Bytes that arrived for the i-th receive of the last wait.
  int64_t received(size_t i) const { return counts[i]; }

  /// Sends a failure that was recorded on this host to all others, and records what comes from them.
  void spreadFailure();
  /// Waits for all ranks of the run to come here, without limit unless the run has failed: then at most for `limit` from
  /// there on. True if all came: each has then said what it had to say. Called once, at the end.
  bool leaveTogether(std::chrono::milliseconds limit);
  /// True if messages were ever posted: after a failure some may still be under way.
  bool wasUsed() const { return used; }

private:
  struct Receive {
    size_t request;
    int64_t rank;
  };
  /// The news of a failure.
  struct FailureMessage {
    int64_t rank;
    int32_t code;
    char message[1024];
    char help[256];
  };
  Status abandon();
  void settle();
  Error stalled(const OperationRecord &what, std::chrono::milliseconds waited);
  Status check(int code, const char *what);

  SharedRun &run;
  int64_t ranks;
  MPI_Comm data = MPI_COMM_NULL, failures = MPI_COMM_NULL;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  std::vector<Receive> receives;
  std::vector<int64_t> counts;
  std::string trouble; ///< first MPI error of the operation in hand
  FailureMessage news{}; ///< what this rank sends: a peer that does not answer may still read it when the rank goes on
  bool told = false;
  bool used = false;
};

} // namespace msc::comm
