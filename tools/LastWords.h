// One line on stderr for the ends that no caller can handle: no memory left, a crash, an exception that nobody catches.
#pragma once

#include <string>

namespace msc::tools {

/// To be called once, before threads start. From then on
/// - an allocation that fails ends the process with "PROGRAM: error: out of memory" and exit code 4;
/// - a fatal signal (SIGSEGV, SIGBUS, SIGILL, SIGFPE) ends it likewise if no memory can be mapped, libraries fall over where
///   they do not check, else with "internal error" and exit code 70, or by the signal itself if core dumps are on;
/// - an exception that nobody catches ends it with "internal error", what it says, and exit code 70.
/// Handlers that are there already (a sanitizer's) stay.
void installLastWords(const std::string &program);

/// Ends the process as an allocation that fails does; for libraries that ask for a handler of their own.
[[noreturn]] void endWithoutMemory();

} // namespace msc::tools
