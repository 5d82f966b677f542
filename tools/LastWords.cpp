#include "tools/LastWords.h"

#include "runtime/Status.h"
#include "tools/CommandLine.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

namespace msc::tools {

static constexpr std::array fatalSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
static constexpr std::array<const char *, fatalSignals.size()> signalNames = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"};

/// What there is to say, worded while there is memory.
struct Texts {
  std::string program, noMemory, exitOfLibrary;
  std::array<std::string, fatalSignals.size()> crash;
};
static Texts texts;
static std::atomic<bool> speaking; ///< main has not returned

static const char reportHelp[] = "please report it with the command and its input";

/// The first thread that gets here speaks for the process.
static void takeTheWord() {
  static std::atomic_flag taken;
  while (taken.test_and_set())
    pause();
}

[[noreturn]] static void endWith(const std::string &text, ExitCode code) {
  takeTheWord();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(static_cast<int>(code));
}

void endWithoutMemory() { endWith(texts.noMemory, ExitCode::NoResource); }

/// Much is asked for: another thread may have returned what was lacking.
static bool memoryIsLeft() {
  constexpr size_t probe = 256u << 20;
  void *memory = mmap(nullptr, probe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  munmap(memory, probe);
  return true;
}

/// How the program was called, for an end before main.
static const char *calledAs = "";

/// Nothing is worded yet: constructors of libraries allocate before main, and what throws there ends the process by SIGABRT.
[[noreturn]] static void endBeforeMain() {
  const char *slash = std::strrchr(calledAs, '/');
  const char *program = slash ? slash + 1 : calledAs;
  const char rest[] = ": error: out of memory\nhelp: raise the limit that 'ulimit -v' or the container sets\n";
  std::array<iovec, 2> parts = {{{const_cast<char *>(program), std::strlen(program)}, {const_cast<char *>(rest), sizeof(rest) - 1}}};
  [[maybe_unused]] ssize_t written = writev(STDERR_FILENO, parts.data(), parts.size());
  _exit(static_cast<int>(ExitCode::NoResource));
}

/// jemalloc falls over where it finds no memory for itself.
static void onSignalBeforeMain(int signal) {
  if (!memoryIsLeft())
    endBeforeMain();
  std::signal(signal, SIG_DFL); // the instruction is tried again
}

/// The loader calls this before the constructors of all libraries.
static void beforeConstructors(int count, char **arguments, char **) {
  if (count > 0)
    calledAs = arguments[0];
  std::set_new_handler(endBeforeMain);
  struct sigaction old {};
  if (sigaction(SIGSEGV, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
    std::signal(SIGSEGV, onSignalBeforeMain);
}
[[gnu::section(".preinit_array"), gnu::used]] static void (*const beforeConstructorsEntry)(int, char **, char **) = beforeConstructors;

/// System calls on text that is ready: there may be no memory, and locks may be held.
static void onFatalSignal(int signal) {
  if (!memoryIsLeft())
    endWithoutMemory();
  size_t index = 0;
  while (fatalSignals[index] != signal)
    ++index;
  rlimit core{};
  if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur == 0)
    endWith(texts.crash[index], ExitCode::Internal);
  takeTheWord();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, texts.crash[index].data(), texts.crash[index].size());
  std::signal(signal, SIG_DFL);
  raise(signal); // delivered once the handler ends
}

[[noreturn]] static void onUncaught() {
  std::string what = "an unknown exception";
  try {
    if (std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
  } catch (const std::bad_alloc &) {
    endWithoutMemory();
  } catch (const std::exception &error) {
    what = error.what();
  } catch (...) {
  }
  endWith(errorText(texts.program, "internal error: " + what, reportHelp), ExitCode::Internal);
}

static void onExit() {
  if (!speaking)
    return;
  std::atexit(onExit); // the next thread that calls exit() would pass the handlers that one has called
  endWith(texts.exitOfLibrary, ExitCode::NoResource);
}

LastWords::LastWords(const std::string &program, const char *help) {
  texts.program = program;
  texts.noMemory = errorText(program, "out of memory", help);
  std::set_new_handler(endWithoutMemory);
  texts.exitOfLibrary = errorText(program, "a library ended the process, see above; as a rule memory or threads are short",
                                "raise the limits that 'ulimit -a' shows, or use fewer ranks");
  for (size_t i = 0; i < fatalSignals.size(); ++i)
    texts.crash[i] = errorText(program, std::string("internal error: ") + signalNames[i], reportHelp);
  speaking = true;
  std::atexit(onExit);
  std::set_terminate(onUncaught);
  // A stack that has run over has no room for the handler.
  static char stack[64 << 10];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  for (int signal : fatalSignals) {
    struct sigaction old {}, action {};
    action.sa_handler = onFatalSignal;
    action.sa_flags = SA_ONSTACK;
    if (sigaction(signal, nullptr, &old) == 0 && (old.sa_handler == SIG_DFL || old.sa_handler == onSignalBeforeMain))
      sigaction(signal, &action, nullptr);
  }
}

LastWords::~LastWords() { speaking = false; }

} // namespace msc::tools
