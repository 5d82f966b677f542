// What the executor itself costs: time per step of a plan of a thousand kernels on tiny tensors, one rank, against the
// same number of calls through a plain function pointer.
#include "test/bench/Timing.h"

#include "compiler/Compiler.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace msc;

/// Ends the benchmark with the reason.
[[noreturn]] static void fail(const Error &error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(1);
}
template <typename T> static T take(Result<T> result) {
  if (!result)
    fail(result.error());
  return std::move(*result);
}
static void check(const Status &status) {
  if (!status)
    fail(status.error());
}

/// A chain of alternating operators, one kernel each without fusion.
static std::string chain(int length) {
  static const char *const ops[] = {"Neg(%v%d)", "Add(%v%d, %v0)", "Abs(%v%d)", "Mul(%v%d, 0.5)"};
  std::string text = "network chain(%v0: f32[4, 4]) {\n";
  for (int i = 0; i < length; ++i) {
    std::string call = ops[i % 4];
    for (size_t at; (at = call.find("%d")) != std::string::npos;)
      call.replace(at, 2, std::to_string(i));
    text += "  %v" + std::to_string(i + 1) + " = " + call + "\n";
  }
  return text + "  return out: %v" + std::to_string(length) + "\n}\n" +
         "dataset {source: Random(seed: 1), columns: {v0: uniform}, steps: 1}\n";
}

static plan::Plan compileChain(int length) {
  std::string path = "/tmp/executor_bench." + std::to_string(getpid()) + ".mir";
  std::ofstream(path) << chain(length);
  compiler::CompileOptions options;
  options.input = path;
  options.fusion = false;
  auto outcome = take(compiler::compile(options));
  unlink(path.c_str());
  return outcome.plan;
}

static void nothing(void **, long, long) { asm volatile("" ::: "memory"); }

int main() {
  const int length = 1000, repetitions = 200;
  plan::Plan plan = compileChain(length);
  PlanIndex index(plan);
  auto world = take(comm::ThreadHub::create(1))->world(0);
  auto device = device::createCpuDevice(take(device::KernelLibrary::load(plan)), {});
  std::byte *arena = take(device->allocateArena(plan.arena_bytes()));
  auto executor = take(Executor::create(index, plan.programs(0), *world, *device, arena));
  check(executor->runConstants());
  std::vector<double> ours, calls;
  void (*volatile function)(void **, long, long) = nothing;
  for (int i = 0; i < repetitions; ++i) {
    ours.push_back(bench::secondsOf([&] { check(executor->runStep()); }));
    calls.push_back(bench::secondsOf([&] {
      for (size_t step = 0; step < executor->activeSteps(); ++step)
        function(nullptr, 0, 1);
    }));
  }
  double steps = static_cast<double>(executor->activeSteps());
  std::printf("executor: %zu steps on f32[4, 4], one kernel each, median of %d: %.3f us per step (aim 0.5 us)\n",
              executor->activeSteps(), repetitions, bench::median(ours) / steps * 1e6);
  std::printf("  a bare call through a pointer: %.4f us\n", bench::median(calls) / steps * 1e6);
  return 0;
}
