#include "runtime/calibrate/Calibrate.h"

#include "runtime/Thread.h"
#include "runtime/calibrate/Bounds.h"
#include "runtime/calibrate/Fit.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/NarrowProducts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <optional>
#include <vector>

namespace msc {
namespace {

/// Units per microsecond, rounded to whole numbers: what is measured here varies by percents.
double rate(double amount, double us) {
  return std::max(1.0, std::round(amount / us));
}

/// Products of f32, and of bf16 where they are others, a copy and a tiny operator, on all ranks at the same time.
Status measureDevice(MachineModel &machine, comm::World &world, Stopwatch &watch) {
  constexpr int64_t side = 256, bytes = int64_t{1} << 20;
  constexpr double shareUs = 3e5;
  static_assert(side * side * 4 <= bytes);
  auto device = device::createCpuDevice(nullptr, device::shareOfHost(0, world.localRank(), world.localSize()));
  Result<std::byte *> arena = device->allocateArena(3 * bytes);
  if (!arena)
    return arena.error();
  std::byte *first = *arena, *second = first + bytes, *third = second + bytes;
  device::MatMulSpec square{
      .rows = side, .columns = side, .depth = side, .left = first, .right = second, .result = third};
  square.batches = {{}};
  comm::Region all{0, {bytes / 4}, {1}};
  device::MatMulSpec narrow = square;
  narrow.operands = narrow.type = plan::BF16;
  std::vector<Result<std::unique_ptr<device::Operation>>> prepared;
  prepared.push_back(device->prepareMatMul(square));
  prepared.push_back(device->prepareCopy({first, second, all, all, 4}));
  prepared.push_back(device->prepareFill({third, 1, plan::F32, 0}));
  if (device::multipliesBFloat16())
    prepared.push_back(device->prepareMatMul(narrow));
  for (const auto &operation : prepared)
    if (!operation)
      return operation.error();
  if (Status status = device->finishPreparation(); !status)
    return status;
  std::vector<double> us;
  for (const auto &operation : prepared) {
    Result<double> median = watch.median([&] { return (*operation)->run(); }, shareUs);
    if (!median)
      return median.error();
    us.push_back(*median);
  }
  // f64 takes vectors of half as many numbers. Where the processor has nothing faster for bf16, it is multiplied in f32; the casts are no
  // arithmetic, so that its peak is then that of f32, the same number and no second measurement of it.
  const double flops = 2.0 * side * side * side, peak = rate(flops, us[0]);
  machine.flopsPerUs.fill(peak);
  machine.flopsPerUs[static_cast<size_t>(Arithmetic::F64)] /= 2;
  if (us.size() > 3)
    machine.flopsPerUs[static_cast<size_t>(Arithmetic::BF16)] = std::max(peak, rate(flops, us[3]));
  machine.memoryBytesPerUs = rate(2.0 * bytes, us[1]); // read and written
  machine.launchUs = us[2];
  return {};
}

Result<comm::Group *> groupOfAll(comm::World &world) {
  std::vector<int64_t> all(static_cast<size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  return world.group(all);
}

/// Ranks of a host, if all hosts have as many, consecutive ones; else of the whole run.
Result<int64_t> ranksPerHost(comm::World &world) {
  Result<comm::Group *> everybody = groupOfAll(world);
  if (!everybody)
    return everybody.error();
  int64_t local = world.localSize();
  bool regular = world.size() % local == 0 && world.rank() % local == world.localRank();
  // As all see it: the same number of ranks, at the same places.
  int64_t own[2] = {regular ? local : 0, regular ? -local : -world.size() - 1}, least[2];
  comm::OperationLabel label{"calibration", ""};
  if (Status status = (*everybody)->allReduce(own, least, 2, comm::ElementType::I64, ReduceKind::Min, label); !status)
    return status.error();
  return least[0] > 0 && least[0] == -least[1] ? least[0] : world.size();
}

Result<LinkLevel> calibrateLevel(comm::World &world, LinkLevel level, const std::vector<GroupForm> &forms,
                                 double seconds, const Clock &clock, std::vector<double> *spreads) {
  Result<std::vector<CollectiveSample>> samples = measureCollectives(world, forms, seconds, clock);
  if (!samples)
    return samples.error();
  for (const CollectiveSample &sample : *samples)
    if (spreads)
      spreads->push_back(sample.spread);
  for (size_t kind = 1; kind < moveKinds; ++kind) {
    std::vector<CollectiveSample> ofKind;
    std::copy_if(samples->begin(), samples->end(), std::back_inserter(ofKind),
                 [&](const CollectiveSample &sample) { return static_cast<size_t>(sample.kind) == kind; });
    level.costs[kind] = fitLinkCost(ofKind);
  }
  keepBounds(level.costs);
  return level;
}

} // namespace

Result<std::vector<LinkLevel>> calibrateLevels(comm::World &world, double seconds, int64_t ranksPerNode,
                                               const Clock &clock, std::vector<double> *spreads) {
  Result<int64_t> found = ranksPerNode != 0 ? Result<int64_t>(ranksPerNode) : ranksPerHost(world);
  if (!found)
    return found.error();
  int64_t node = *found, ranks = world.size();
  struct Plan {
    LinkLevel level;
    std::vector<GroupForm> forms;
  };
  std::vector<Plan> plans;
  if (node == ranks || node == 1)
    plans.push_back({{.name = world.transport()}, consecutiveGroups(ranks)});
  else
    plans = {{{.name = "node", .ranks = node}, consecutiveGroups(node)},
             {{.name = "network"}, groupsAcross(ranks, node)}};
  std::vector<LinkLevel> levels;
  for (const Plan &plan : plans) {
    Result<LinkLevel> level =
        calibrateLevel(world, plan.level, plan.forms, seconds / static_cast<double>(plans.size()), clock, spreads);
    if (!level)
      return level.error();
    levels.push_back(*level);
  }
  return levels;
}

Result<Calibration> calibrate(comm::World &world, double seconds, int64_t ranksPerNode) {
  Calibration calibration;
  MachineModel &machine = calibration.machine;
  machine.name = fmt::format("{}-{}", world.transport(), world.size());
  machine.source = "measured";
  machine.measuredRanks = world.size();
  Result<comm::Group *> everybody = groupOfAll(world);
  if (!everybody)
    return everybody.error();
  machine.memoryBytes = std::floor(static_cast<double>(device::hostMemoryBytes()) / static_cast<double>(world.localSize()));
  Stopwatch watch(**everybody, seconds);
  if (Status status = measureDevice(machine, world, watch); !status)
    return status.error();
  std::vector<double> spreads = watch.spreads();
  Result<std::vector<LinkLevel>> levels = calibrateLevels(world, watch.left() / 1e6, ranksPerNode, steadyMicroseconds, &spreads);
  if (!levels)
    return levels.error();
  machine.levels = std::move(*levels);
  std::nth_element(spreads.begin(), spreads.begin() + static_cast<ptrdiff_t>(spreads.size() / 2), spreads.end());
  calibration.spread = spreads[spreads.size() / 2];
  return calibration;
}

Result<Calibration> calibrateThreads(int64_t ranks, double seconds, int64_t ranksPerNode) {
  auto hub = comm::ThreadHub::create(ranks);
  if (!hub)
    return hub.error();
  std::vector<std::thread> threads(static_cast<size_t>(ranks));
  std::optional<Result<Calibration>> outcome;
  Status started;
  for (int64_t rank = 0; rank < ranks && started; ++rank)
    started = startThread(threads[static_cast<size_t>(rank)], [&, rank] {
      std::unique_ptr<comm::World> world = (*hub)->world(rank);
      Result<Calibration> calibration = calibrate(*world, seconds, ranksPerNode);
      if (!calibration)
        world->abort(calibration.error());
      if (rank == 0)
        outcome = std::move(calibration);
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
