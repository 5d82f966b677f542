// Ranks that are threads of one process: peers' buffers are read where they are.
#pragma once

#include "runtime/comm/Communicator.h"

namespace msc::comm {

/// What the threads of one run share. Kept alive by the worlds made from it.
class ThreadHub : public std::enable_shared_from_this<ThreadHub> {
public:
  /// A meeting place for `ranks` threads.
  static Result<std::shared_ptr<ThreadHub>> create(int64_t ranks);
  ~ThreadHub();
  ThreadHub(const ThreadHub &) = delete;
  ThreadHub &operator=(const ThreadHub &) = delete;

  /// The world as `rank` sees it; made once per rank, used by one thread. Its end tells peers that wait for this rank.
  std::unique_ptr<World> world(int64_t rank);
  int64_t size() const { return ranks; }
  /// For a watchdog outside of the ranks.
  void abort(const Error &error);
  /// The first failure of any rank, if there is one.
  std::optional<Error> firstFailure() const;

private:
  ThreadHub(void *memory, int64_t ranks) : memory(memory), ranks(ranks) {}
  void *memory;
  int64_t ranks;
};

} // namespace msc::comm
