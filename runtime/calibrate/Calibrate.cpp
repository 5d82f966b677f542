#include "runtime/calibrate/Calibrate.h"

#include "runtime/Thread.h"
#include "runtime/calibrate/Bounds.h"
#include "runtime/calibrate/Fit.h"
#include "runtime/calibrate/Stopwatch.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <optional>

namespace msc {
namespace {

/// Units per microsecond, rounded to whole numbers: what is measured here varies by percents.
double rate(double amount, double us) { return std::max(1.0, std::round(amount / us)); }

/// A product, a copy and a tiny operator, on all ranks at the same time.
Status measureDevice(MachineModel &machine, comm::World &world, Stopwatch &watch) {
  constexpr int64_t side = 256, bytes = int64_t{1} << 20;
  constexpr double shareUs = 3e5;
  static_assert(side * side * 4 <= bytes);
  auto device = device::createCpuDevice(nullptr, device::shareOfHost(0, world.localRank(), world.localSize()));
  Result<std::byte *> arena = device->allocateArena(3 * bytes);
  if (!arena)
    return arena.error();
  std::byte *first = *arena, *second = first + bytes, *third = second + bytes;
  device::MatMulSpec square{.rows = side, .columns = side, .depth = side, .left = first, .right = second, .result = third};
  square.batches = {{}};
  comm::Region all{0, {bytes / 4}, {1}};
  auto product = device->prepareMatMul(square);
  auto copy = device->prepareCopy({first, second, all, all, 4});
  auto fill = device->prepareFill({third, 1, plan::F32, 0});
  for (const auto *prepared : {&product, &copy, &fill})
    if (!*prepared)
      return prepared->error();
  if (Status status = device->finishPreparation(); !status)
    return status;
  double us[3];
  for (int i = 0; const auto *operation : {&product, &copy, &fill}) {
    Result<double> median = watch.median([&] { return (**operation)->run(); }, shareUs);
    if (!median)
      return median.error();
    us[i++] = *median;
  }
  machine.flopsPerUs = rate(2.0 * side * side * side, us[0]);
  machine.memoryBytesPerUs = rate(2.0 * bytes, us[1]); // read and written
  machine.launchUs = us[2];
  return {};
}

} // namespace

Result<MachineModel> calibrate(comm::World &world, double seconds) {
  MachineModel machine;
  machine.name = fmt::format("{}-{}", world.transport(), world.size());
  machine.source = "measured";
  machine.measuredRanks = world.size();
  std::vector<int64_t> all(static_cast<size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  Result<comm::Group *> everybody = world.group(all);
  if (!everybody)
    return everybody.error();
  Stopwatch watch(**everybody, seconds);
  if (Status status = measureDevice(machine, world, watch); !status)
    return status.error();
  Result<std::vector<CollectiveSample>> samples = measureCollectives(world, watch.left() / 1e6);
  if (!samples)
    return samples.error();
  LinkLevel level{.name = world.transport(), .ranks = 0};
  for (size_t kind = 1; kind < moveKinds; ++kind) {
    std::vector<CollectiveSample> ofKind;
    std::copy_if(samples->begin(), samples->end(), std::back_inserter(ofKind),
                 [&](const CollectiveSample &sample) { return static_cast<size_t>(sample.kind) == kind; });
    level.costs[kind] = fitLinkCost(ofKind);
  }
  keepBounds(level.costs);
  machine.levels = {level};
  return machine;
}

Result<MachineModel> calibrateThreads(int64_t ranks, double seconds) {
  auto hub = comm::ThreadHub::create(ranks);
  if (!hub)
    return hub.error();
  std::vector<std::thread> threads(static_cast<size_t>(ranks));
  std::optional<Result<MachineModel>> outcome;
  Status started;
  for (int64_t rank = 0; rank < ranks && started; ++rank)
    started = startThread(threads[static_cast<size_t>(rank)], [&, rank] {
      std::unique_ptr<comm::World> world = (*hub)->world(rank);
      Result<MachineModel> machine = calibrate(*world, seconds);
      if (!machine)
        world->abort(machine.error());
      if (rank == 0)
        outcome = std::move(machine);
    });
  if (!started)
    (*hub)->abort(started.error());
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
  if (std::optional<Error> failure = (*hub)->firstFailure())
    return *failure;
  return *outcome;
}

} // namespace msc
