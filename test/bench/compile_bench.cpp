// How long `msc compile` of the quickstart takes as a whole process, against processes that do nothing: `true`, and msc
// itself asked for its version (loading MLIR, no compilation).
#include "test/bench/Timing.h"

#include <cstdio>
#include <cstdlib>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace msc::bench;

/// Runs a program without its output; ends the benchmark if it fails.
static void runProcess(const std::vector<std::string> &words) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
  pid_t child = 0;
  int status = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "%s failed with status %d\n", arguments[0], status);
    std::exit(1);
  }
}

int main(int argc, char **argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 15;
  const std::string msc = MSC_BINARY, network = MSC_NETWORK, plan = "/tmp/compile_bench." + std::to_string(getpid()) + ".plan";
  std::vector<double> compile, version, nothing;
  for (int i = 0; i < repetitions; ++i) {
    compile.push_back(secondsOf([&] { runProcess({msc, "compile", network, "--devices", "8", "-o", plan}); }));
    version.push_back(secondsOf([&] { runProcess({msc, "--version"}); }));
    nothing.push_back(secondsOf([&] { runProcess({"true"}); }));
  }
  unlink(plan.c_str());
  std::printf("msc compile of the quickstart, 8 devices, median of %d: %.0f ms (aim 200 ms)\n", repetitions, median(compile) * 1e3);
  std::printf("  msc --version: %.0f ms, so compiling takes %.0f ms; an empty process: %.1f ms\n", median(version) * 1e3,
              (median(compile) - median(version)) * 1e3, median(nothing) * 1e3);
  return 0;
}
