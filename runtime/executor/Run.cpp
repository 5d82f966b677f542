#include "runtime/executor/Run.h"

#include "runtime/SignalWatch.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/executor/Session.h"

#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace msc {
namespace {

Error interrupted(int signal) {
  bool terminated = signal == SIGTERM;
  return {terminated ? ExitCode::Terminated : ExitCode::Interrupted,
          terminated ? "terminated by a signal (SIGTERM)" : "interrupted (SIGINT)", ""};
}

/// Runs a rank; a failure is told to all others, and the first cause is what comes back.
Status runToEnd(SharedRun &shared, comm::World &world) {
  Session session(shared, world);
  Status status = session.run();
  if (status)
    return {};
  // A peer that has died comes before what this rank makes of it.
  std::optional<Error> first = world.firstFailure();
  if (!first)
    world.abort(status.error());
  return *world.firstFailure();
}

} // namespace

Status runThreads(SharedRun &shared, std::chrono::milliseconds timeout, const FailurePrinter &print) {
  int64_t ranks = shared.index->devices();
  auto hub = comm::ThreadHub::create(ranks);
  if (!hub) {
    print(hub.error());
    return hub.error();
  }
  SignalWatch watch([&](int signal) {
    (*hub)->abort(interrupted(signal));
    shared.stop = static_cast<int>(interrupted(signal).code);
  });
  Status started = watch.status();
  std::vector<std::thread> threads(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks && started; ++rank)
    started = startThread(threads[static_cast<size_t>(rank)], [&, rank] {
      std::unique_ptr<comm::World> world = (*hub)->world(rank);
      world->setTimeout(timeout);
      (void)runToEnd(shared, *world).isOk(); // the hub knows the first of all failures
    });
  if (!started)
    (*hub)->abort(started.error());
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
  std::optional<Error> failure = (*hub)->firstFailure();
  if (!failure)
    return {};
  print(*failure);
  return *failure;
}

void reserveSignals() {
  sigset_t signals = endingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Status runRank(SharedRun &shared, comm::World &world, std::chrono::milliseconds timeout, const FailurePrinter &print) {
  auto report = [&] {
    if (world.takeReport())
      print(*world.firstFailure());
  };
  SignalWatch watch([&](int signal) {
    // When a rank dies, mpirun ends the others: then the death is the cause, not the signal.
    if (!world.firstFailure())
      world.abort(interrupted(signal));
    report();
    shared.stop = static_cast<int>(world.firstFailure()->code);
  });
  world.setTimeout(timeout);
  if (!watch.status())
    world.abort(watch.status().error());
  Status status = watch.status() ? runToEnd(shared, world) : watch.status();
  if (!status)
    report();
  return status;
}

} // namespace msc
