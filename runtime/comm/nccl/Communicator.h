// One rank's NCCL communicators, and the thread that watches them.
#pragma once

#include "runtime/comm/nccl/Transport.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace msc::comm::nccl {

/// The communicator of all ranks and those split from it, all non-blocking: every call may go on behind its return and is asked
/// for until it is done, so that whatever happens they can be ended. A thread looks for errors of NCCL, failures of any rank, and
/// time limits; after the first it ends all communicators of this rank at once, and tells the others, which do the same.
class NcclCommunicator final : public StreamCommunicator {
public:
  NcclCommunicator(const Table &table, const Options &options, World &world);
  ~NcclCommunicator() override;

  /// Makes the communicator of all ranks.
  Status open(int version);

  Result<StreamGroup *> group(const Partition &partition) override;
  bool isCapturable() const override { return true; }
  Result<void *> allocate(size_t bytes) override;
  void setWaiting(bool waiting) override;
  Status check() override;
  void abort() override;
  Status close() override;

  /// One call, or a step of a group of calls.
  using Step = std::function<Code(const Table &table, Handle handle, StreamHandle stream)>;
  struct NamedStep {
    const char *function = "";
    Step run;
  };
  /// Calls NCCL once for all of `steps`; they are on the stream when this returns.
  Status launch(Handle handle, const std::vector<NamedStep> &steps, StreamHandle stream);

private:
  using Clock = std::chrono::steady_clock;
  /// Runs `call`, which goes on until `handle` says that it is done. `function` is what failed, if it fails: `call` may say so.
  Status finish(const char *const &function, const std::function<Handle()> &handle, const std::function<Code()> &call);
  Status split(int color, int key, Handle &result);
  Error failed(const char *function, Code code);
  /// The first failure decides; true if this is it.
  bool noteFailure(const Error &error);
  Status startWatch();
  void stopWatch();
  void watch();
  /// Anything that has gone wrong.
  std::optional<Error> lookForFailure();
  /// "epoch 1 step 3: ", or empty before the first one.
  std::string step() const;
  /// With the step and the rank in front.
  Error where(Error error) const;
  /// Ends all communicators and waits for that, but not longer than the limit.
  void endAll();

  const Table table;
  const Options options;
  World &world;

  std::timed_mutex calls;         ///< held during calls of NCCL: none may run beside ncclCommAbort
  std::deque<Handle> handles;     ///< not yet ended; that of all ranks in front; addresses stay
  bool ended = false;             ///< under `calls`: communicators are aborted, or being aborted
  std::vector<std::unique_ptr<StreamGroup>> groups;
  std::map<Partition, StreamGroup *> known;
  std::vector<void *> memories;

  std::mutex state; ///< of what follows
  std::condition_variable changed;
  std::optional<Error> failure;
  bool stopping = false, over = false; ///< over: endAll() has done its work
  std::atomic<bool> hasFailed{false};
  std::atomic<Clock::rep> waitingSince{0}; ///< 0: the rank does not wait
  std::thread watcher, ender;
};

} // namespace msc::comm::nccl
