#include "tools/LastWords.h"

#include "runtime/Status.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace msc::tools {

static char prefix[64] = "";

/// Everything here may run in a signal handler and without memory: system calls on fixed text only.
static void say(std::initializer_list<const char *> texts) {
  for (const char *text : texts)
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
      return;
}

/// The first thread that gets here speaks for the process.
static void takeTheWord() {
  static std::atomic_flag taken;
  while (taken.test_and_set())
    pause();
}

void endWithoutMemory() {
  takeTheWord();
  say({prefix, "error: out of memory\nhelp: raise the limit that 'ulimit -v' or the container sets, or use fewer ranks\n"});
  _exit(static_cast<int>(ExitCode::NoResource));
}

static bool memoryIsLeft() {
  constexpr size_t probe = 16u << 20;
  void *memory = mmap(nullptr, probe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  munmap(memory, probe);
  return true;
}

static void onFatalSignal(int signal) {
  if (!memoryIsLeft())
    endWithoutMemory();
  takeTheWord();
  const char *name = signal == SIGSEGV ? "SIGSEGV" : signal == SIGBUS ? "SIGBUS" : signal == SIGILL ? "SIGILL" : "SIGFPE";
  say({prefix, "error: internal error: ", name, "\nhelp: please report it with the command and its input\n"});
  rlimit core{};
  if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur > 0) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    return; // delivered once the handler ends
  }
  _exit(static_cast<int>(ExitCode::Internal));
}

[[noreturn]] static void onUncaught() {
  const char *what = "an unknown exception";
  std::string text;
  try {
    if (std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
  } catch (const std::bad_alloc &) {
    endWithoutMemory();
  } catch (const std::exception &error) {
    text = error.what();
    what = text.c_str();
  } catch (...) {
  }
  takeTheWord();
  say({prefix, "error: internal error: ", what, "\nhelp: please report it with the command and its input\n"});
  _exit(static_cast<int>(ExitCode::Internal));
}

void installLastWords(const std::string &program) {
  std::strncpy(prefix, (program + ": ").c_str(), sizeof(prefix) - 1);
  std::set_new_handler(endWithoutMemory);
  std::set_terminate(onUncaught);
  // A stack that has run over has no room for the handler.
  static char stack[64 << 10];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    struct sigaction old {}, action {};
    action.sa_handler = onFatalSignal;
    action.sa_flags = SA_ONSTACK;
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
      sigaction(signal, &action, nullptr);
  }
}

} // namespace msc::tools
