// SIGINT and SIGTERM where something has to be done before the end.
#pragma once

#include "runtime/Thread.h"

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include <pthread.h>
#include <unistd.h>

namespace msc {

inline sigset_t endingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

/// Turns SIGINT and SIGTERM into a call while it lives. The signals are blocked in the thread that creates it and in those
/// that it starts afterwards; a thread of our own takes them.
class SignalWatch {
public:
  explicit SignalWatch(std::function<void(int)> onSignal) {
    const sigset_t signals = endingSignals();
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    started = startThread(watcher, [this, signals, onSignal = std::move(onSignal)] {
      while (!done) {
        siginfo_t info{};
        const int signal = sigwaitinfo(&signals, &info);
        if (signal > 0 && !(done && info.si_pid == getpid()))
          onSignal(signal);
      }
    });
    if (!started) // as if nobody watched
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  SignalWatch(const SignalWatch &) = delete;
  SignalWatch &operator=(const SignalWatch &) = delete;
  ~SignalWatch() {
    done = true;
    if (watcher.joinable()) {
      pthread_kill(watcher.native_handle(), SIGTERM); // to look at `done`
      watcher.join();
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
  }

  /// NoResource if nothing watches.
  const Status &status() const { return started; }

private:
  Status started;
  sigset_t before{};
  std::atomic<bool> done{false};
  std::thread watcher;
};

inline bool isIgnored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// Ends the process as the signal does when nobody handles it.
[[noreturn]] inline void endBySignal(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(signal);
  std::_Exit(128 + signal);
}

} // namespace msc
