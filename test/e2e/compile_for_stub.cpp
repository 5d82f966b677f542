// compile_for_stub NET DEVICES PLAN FOLDER: compiles a network, and writes for cuda_stub.cpp what its kernels for GPUs are and what their launches touch.
#include "compiler/Compiler.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanIndex.h"
#include "test/e2e/PlanLaunches.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace msc;

int main(int argc, char **argv) {
  if (argc != 5)
    return static_cast<int>(ExitCode::Usage);
  const std::string folder = argv[4];
  compiler::CompileOptions options;
  options.input = argv[1];
  options.devices = std::atoll(argv[2]);
  options.onGpuIr = [&](const std::string &text) { std::ofstream(folder + "/kernels.ll") << text; };
  Result<compiler::CompileOutcome> outcome = compiler::compile(options);
  if (Status written = outcome ? plan::writePlan(argv[3], outcome->plan) : Status(outcome.error()); !written) {
    std::fprintf(stderr, "error: %s\n", written.error().message.c_str());
    return static_cast<int>(written.error().code);
  }
  std::ofstream launches(folder + "/launches");
  e2e::launchesOf(PlanIndex(outcome->plan)).write(launches);
  return 0;
}
