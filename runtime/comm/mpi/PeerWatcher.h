// Notices at once when a process of the same host dies: waiting ranks, and ranks that compute, need not find out by time.
#pragma once

#include "runtime/comm/shared/SharedRun.h"

#include <thread>

namespace msc::comm {

/// A thread that sleeps until a peer ends, and records that as the failure of the run. It makes no MPI calls.
class PeerWatcher {
public:
  explicit PeerWatcher(SharedRun &run);
  ~PeerWatcher();
  PeerWatcher(const PeerWatcher &) = delete;
  PeerWatcher &operator=(const PeerWatcher &) = delete;
  /// Looks at once, in the caller's thread.
  void look();

private:
  void watch();
  void peerEnded(int64_t rank);
  SharedRun &run;
  std::vector<int> handles; ///< of the peers' processes, then the event that ends the thread
  std::vector<int64_t> peers;
  std::thread thread;
};

} // namespace msc::comm
