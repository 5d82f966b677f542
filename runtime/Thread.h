// Threads whose start can fail.
#pragma once

#include "runtime/Status.h"

#include <system_error>
#include <thread>

namespace msc {

/// Starts `body` in `thread`. NoResource: the limits of the process or the host allow no further thread.
template <typename Body> Status startThread(std::thread &thread, Body &&body) {
  try {
    thread = std::thread(std::forward<Body>(body));
  } catch (const std::system_error &error) {
    return Error{ExitCode::NoResource, "cannot start a thread: " + error.code().message(),
                 "raise the limits that 'ulimit -a' shows, or use fewer ranks and --threads-per-rank 1"};
  }
  return {};
}

} // namespace msc
