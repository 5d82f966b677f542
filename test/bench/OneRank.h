// A network compiled and bound on one rank, so that a benchmark times its steps and nothing else.
#pragma once

#include "compiler/Compiler.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

namespace msc::bench {

/// Ends the benchmark with the reason.
[[noreturn]] inline void fail(const Error &error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(1);
}
template <typename T> T take(Result<T> result) {
  if (!result)
    fail(result.error());
  return std::move(*result);
}
inline void check(const Status &status) {
  if (!status)
    fail(status.error());
}

/// The plan of a network for one device; `options.input` is ignored.
inline plan::Plan compileText(const std::string &text, compiler::CompileOptions options = {}) {
  options.input = "/tmp/msc_bench." + std::to_string(getpid()) + ".mir";
  std::ofstream(options.input) << text;
  auto outcome = take(compiler::compile(options));
  unlink(options.input.c_str());
  return outcome.plan;
}

/// One rank of one on the CPU. The dataset is not read: inputs hold what the benchmark writes into memory().
class OneRank {
public:
  explicit OneRank(plan::Plan made, int threads = 1)
      : plan(std::move(made)), index(plan), world(take(comm::ThreadHub::create(1))->world(0)),
        device(device::createCpuDevice(take(device::KernelLibrary::load(plan)), device::shareOfHost(threads, 0, 1))),
        arena(take(device->allocateArena(plan.arena_bytes()))),
        executor(take(Executor::create(index, plan.programs(0), *world, *device, arena))) {
    check(executor->runConstants());
  }
  void step() { check(executor->runStep()); }
  size_t steps() const { return executor->activeSteps(); }
  /// Memory of the buffer with this name.
  std::byte *memory(const std::string &name) const {
    for (const plan::Buffer &buffer : plan.buffers())
      if (buffer.name() == name)
        return arena + buffer.offset();
    fail({ExitCode::Internal, "the plan has no buffer '" + name + "'", ""});
  }

private:
  plan::Plan plan;
  PlanIndex index;
  std::unique_ptr<comm::World> world;
  std::unique_ptr<device::Device> device;
  std::byte *arena;
  std::unique_ptr<Executor> executor;
};

} // namespace msc::bench
