// Runs hand-made plans on threads, one executor per rank.
#pragma once

#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/Fetch.h"
#include "runtime/plan/PlanChecker.h"
#include "test/runtime/PlanBuilder.h"

#include <cstring>
#include <functional>
#include <thread>

namespace msc::test {

/// One rank of a plan, bound and ready.
struct Bound {
  const PlanIndex &index;
  comm::World &world;
  device::Device &device;
  std::byte *arena;
  Executor &executor;

  /// Writes value(global index) into this rank's part of a buffer.
  void set(uint32_t buffer, const std::function<float(int64_t)> &value) {
    Box box = index.localBox(buffer, world.rank());
    const std::vector<int64_t> &shape = index.shape(buffer);
    float *target = reinterpret_cast<float *>(arena + index.buffer(buffer).offset());
    for (int64_t e = 0; e < elementCount(box); ++e) {
      int64_t rest = e, global = 0, stride = 1;
      for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
        global += (box[d].begin + rest % box[d].size()) * stride;
        rest /= box[d].size();
      }
      target[e] = value(global);
    }
  }
  std::vector<float> get(uint32_t buffer) {
    auto bytes = gather(index, buffer, world, device, arena);
    EXPECT_TRUE(bytes);
    std::vector<float> values(bytes->size() / sizeof(float));
    if (!values.empty())
      std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }
};

/// Runs `body` on every rank of a checked plan. Returns the errors of binding.
inline std::vector<std::string> onAllRanks(const PlanBuilder &builder, const std::function<void(Bound &)> &body, int threads = 1) {
  Status sound = plan::checkPlan(builder.plan);
  EXPECT_TRUE(sound) << (sound ? "" : sound.error().message);
  PlanIndex index(builder.plan);
  auto kernels = device::KernelLibrary::load(builder.plan);
  EXPECT_TRUE(kernels);
  auto hub = *comm::ThreadHub::create(index.devices());
  std::vector<std::string> errors(static_cast<size_t>(index.devices()));
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < index.devices(); ++rank)
    ranks.emplace_back([&, rank] {
      auto world = hub->world(rank);
      auto device = device::createCpuDevice(*kernels, {threads, {}});
      std::byte *arena = *device->allocateArena(builder.plan.arena_bytes());
      auto executor = Executor::create(index, *builder.program, *world, *device, arena);
      if (!executor) {
        errors[rank] = executor.error().message;
        return;
      }
      Bound bound{index, *world, *device, arena, **executor};
      body(bound);
    });
  for (std::thread &rank : ranks)
    rank.join();
  return errors;
}

} // namespace msc::test
