// The threads of one rank: the rank's own and its helpers. Tasks are dealt to threads by number, not by arrival, so that
// a task always finds its data in the same cache.
#pragma once

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace msc::device {

class WorkerPool {
public:
  /// Starts `threads` - 1 helpers. If `processors` is not empty, thread i is pinned to processors[i], the caller included.
  WorkerPool(int threads, const std::vector<int> &processors);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  /// NoResource if not all helpers could be started; then the pool works with those that could.
  const Status &status() const { return started; }
  int size() const { return static_cast<int>(helpers.size()) + 1; }

  using Task = void (*)(void *context, int64_t task, int worker);
  /// Calls task(context, t, t % size()) for t in 0..tasks-1 on worker t % size(); returns when all are done.
  void run(int64_t tasks, Task task, void *context);

private:
  void serve(int worker, int processor);

  Status started;
  std::vector<std::thread> helpers;
  std::atomic<uint32_t> generation{0}; ///< one more per run
  std::atomic<int32_t> working{0};     ///< helpers that have not finished the present run
  std::atomic<bool> stopping{false};
  int64_t tasks = 0;
  Task task = nullptr;
  void *context = nullptr;
};

/// Makes OpenMP regions of libraries run on the calling thread alone, so that no library cuts a reduction by threads.
void useOneLibraryThread();
/// The processors that this process may use.
std::vector<int> usableProcessors();

} // namespace msc::device
