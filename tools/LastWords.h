// One line on stderr for the ends that no caller can handle: no memory left, a crash, an exception that nobody catches.
#pragma once

#include <string>

namespace msc::tools {

/// One per program, made first in main. While it lives
/// - an allocation that fails ends the process with "PROGRAM: error: out of memory" and exit code 4, also before main, in
///   constructors of libraries;
/// - a fatal signal (SIGSEGV, SIGBUS, SIGILL, SIGFPE) ends it likewise if little memory can be mapped, libraries fall over
///   where they do not check, else with "internal error" and exit code 70, or by the signal itself if core dumps are on;
/// - a library that calls exit(), as OpenMP's does where it gets no memory, ends it with exit code 4 and a line that says so;
/// - an exception that nobody catches ends it with "internal error", what it says, and exit code 70.
/// Handlers of signals that are there already (a sanitizer's) stay.
class LastWords {
public:
  /// `help`: what to do where none is left.
  LastWords(const std::string &program, const char *help);
  ~LastWords();
  LastWords(const LastWords &) = delete;
  LastWords &operator=(const LastWords &) = delete;
};

/// Ends the process as an allocation that fails does; for libraries that ask for a handler of their own.
[[noreturn]] void endWithoutMemory();

} // namespace msc::tools
