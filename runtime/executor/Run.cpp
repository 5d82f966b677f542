#include "runtime/executor/Run.h"

#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/executor/Session.h"

#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace msc {
namespace {

/// Turns SIGINT and SIGTERM into a call while it lives. The signals are blocked in the thread that creates it and in those
/// that it starts afterwards; a thread of our own takes them.
class SignalWatch {
public:
  explicit SignalWatch(std::function<void(int)> onSignal) {
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    watcher = std::thread([this, onSignal = std::move(onSignal)] {
      while (!done) {
        timespec pause{0, 50'000'000};
        if (int signal = sigtimedwait(&signals, nullptr, &pause); signal > 0)
          onSignal(signal);
      }
    });
  }
  ~SignalWatch() {
    done = true;
    watcher.join();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

private:
  sigset_t signals, before;
  std::atomic<bool> done{false};
  std::thread watcher;
};

Error interrupted(int signal) {
  bool terminated = signal == SIGTERM;
  return {terminated ? ExitCode::Terminated : ExitCode::Interrupted,
          terminated ? "terminated by a signal (SIGTERM)" : "interrupted (SIGINT)", ""};
}

Status runSession(SharedRun &shared, comm::World &world) {
  auto session = Session::create(shared, world);
  return session ? (*session)->run() : Status(session.error());
}

/// Runs a rank; a failure is told to all others, and the first cause is what comes back.
RunResult runToEnd(SharedRun &shared, comm::World &world) {
  Status status = runSession(shared, world);
  if (status)
    return {};
  world.abort(status.error());
  std::optional<Error> first = world.firstFailure();
  bool own = !first || first->message == status.error().message;
  return {first ? Status(*first) : status, own};
}

} // namespace

RunResult runThreads(SharedRun &shared, std::chrono::milliseconds timeout) {
  int64_t ranks = shared.index->devices();
  auto hub = comm::ThreadHub::create(ranks);
  if (!hub)
    return {hub.error()};
  SignalWatch watch([&](int signal) {
    shared.stop = static_cast<int>(interrupted(signal).code);
    (*hub)->abort(interrupted(signal));
  });
  std::vector<RunResult> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<comm::World> world = (*hub)->world(rank);
      world->setTimeout(timeout);
      results[rank] = runToEnd(shared, *world);
    });
  for (std::thread &thread : threads)
    thread.join();
  // The rank that failed says it best; the others only know of it.
  for (bool own : {true, false})
    for (RunResult &result : results)
      if (!result.status && (result.prints || !own))
        return {result.status};
  return {};
}

RunResult runRank(SharedRun &shared, comm::World &world, std::chrono::milliseconds timeout) {
  SignalWatch watch([&](int signal) {
    shared.stop = static_cast<int>(interrupted(signal).code);
    world.abort(interrupted(signal));
  });
  world.setTimeout(timeout);
  return runToEnd(shared, world);
}

} // namespace msc
