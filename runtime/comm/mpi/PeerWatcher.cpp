#include "runtime/comm/mpi/PeerWatcher.h"

#include "runtime/Thread.h"

#include <csignal>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace msc::comm {

PeerWatcher::PeerWatcher(SharedRun &run) : run(run) {
  for (int64_t rank : run.ranks()) {
    if (rank == run.rank())
      continue;
    // Fails in other process name spaces and on old kernels: then mpirun's own watch is what remains.
    int handle = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(run.state(rank).process.load()), 0));
    if (handle < 0)
      continue;
    handles.push_back(handle);
    peers.push_back(rank);
  }
  handles.push_back(eventfd(0, EFD_CLOEXEC));
  // Signals belong to the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Without the thread, too, mpirun's own watch is what remains.
  (void)startThread(thread, [this] { watch(); }).isOk();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PeerWatcher::~PeerWatcher() {
  uint64_t one = 1;
  if (thread.joinable()) {
    if (write(handles.back(), &one, sizeof(one)) == sizeof(one))
      thread.join();
    else
      thread.detach();
  }
  for (int handle : handles)
    close(handle);
}

void PeerWatcher::peerEnded(int64_t rank) {
  RankState &state = run.state(rank);
  if (Presence presence = state.presence.load(); presence == Presence::Left || presence == Presence::LeftFailed)
    return;
  run.fail(-1, {ExitCode::PeerFailed,
                "rank " + std::to_string(rank) + " died: its process " + std::to_string(state.process.load()) + " was " +
                    run.doing(rank),
                ""});
}

void PeerWatcher::look() {
  for (size_t i = 0; i < peers.size(); ++i)
    if (pollfd peer{handles[i], POLLIN, 0}; poll(&peer, 1, 0) > 0)
      peerEnded(peers[i]);
}

void PeerWatcher::watch() {
  std::vector<pollfd> waiting;
  for (int handle : handles)
    waiting.push_back({handle, POLLIN, 0});
  while (!(waiting.back().revents & POLLIN)) {
    if (poll(waiting.data(), waiting.size(), -1) < 0)
      continue;
    for (size_t i = 0; i < peers.size(); ++i)
      if (waiting[i].revents) {
        peerEnded(peers[i]);
        waiting[i].fd = -1;
        waiting[i].revents = 0;
      }
  }
}

} // namespace msc::comm
