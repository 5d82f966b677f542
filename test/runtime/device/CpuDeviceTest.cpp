#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/WorkerPool.h"
#include "test/runtime/PlanBuilder.h"

#include <atomic>
#include <cstring>
#include <numeric>

using namespace msc;
using namespace msc::device;

namespace {

std::byte *bytes(std::vector<float> &values) { return reinterpret_cast<std::byte *>(values.data()); }

std::unique_ptr<Device> withKernels(int threads) {
  test::PlanBuilder builder(1);
  builder.testKernels();
  builder.plan.add_kernels();
  return createCpuDevice(*KernelLibrary::load(builder.plan), {threads, {}});
}

TEST(WorkerPool, EachTaskRunsOnceOnItsWorker) {
  for (int threads : {1, 2, 5}) {
    WorkerPool pool(threads, {});
    struct Context {
      std::vector<std::atomic<int>> runs;
      std::atomic<int> strangers{0};
      int threads;
    };
    for (int64_t tasks : {0, 1, 2, 3, 17, 1000})
      for (int round = 0; round < 20; ++round) {
        Context context{std::vector<std::atomic<int>>(static_cast<size_t>(tasks)), {}, threads};
        pool.run(
            tasks,
            [](void *argument, int64_t task, int worker) {
              auto *c = static_cast<Context *>(argument);
              ++c->runs[task];
              c->strangers += task % c->threads != worker;
            },
            &context);
        for (auto &runs : context.runs)
          ASSERT_EQ(runs, 1);
        ASSERT_EQ(tasks == 1 ? 0 : context.strangers.load(), 0);
      }
  }
}

TEST(CpuDevice, LaunchCutsItsRangeIntoFixedTasks) {
  for (int threads : {1, 3}) {
    std::unique_ptr<Device> device = withKernels(threads);
    std::vector<float> out(10, -1);
    auto launch = device->prepareLaunch({"mark", {bytes(out)}, 10, 3, 4});
    ASSERT_TRUE(launch);
    ASSERT_TRUE((*launch)->run());
    // Pieces 0..3, 3..6, 6..10 with inner boundaries rounded down to multiples of 4: 0..0, 0..4, 4..10.
    std::vector<float> expected{4, 4, 4, 4, 4010, 4010, 4010, 4010, 4010, 4010};
    EXPECT_EQ(out, expected);
  }
}

TEST(CpuDevice, PiecesOfACutRowRunBeforeWhatFollowsFromThem) {
  std::vector<float> values(103), out(1);
  std::iota(values.begin(), values.end(), 1.0f);
  for (int threads : {1, 3}) {
    std::unique_ptr<Device> device = withKernels(threads);
    auto launch = device->prepareLaunch({.symbol = "total", .arguments = {bytes(values), bytes(out)}, .pieces = 5, .pieceScratch = 40});
    ASSERT_TRUE(launch);
    std::vector<SequenceEntry> entries{{launch->get()}, {launch->get()}}; // is no part of a group of kernels
    ASSERT_TRUE(device->finishPreparation());
    std::unique_ptr<Sequence> sequence = device->makeSequence(std::move(entries));
    for (int run = 0; run < 100; ++run) {
      out[0] = 0;
      size_t failed = 0;
      ASSERT_TRUE(sequence->run(failed));
      ASSERT_EQ(out[0], 103 * 104 / 2);
    }
  }
}

/// Kernels that run together use nothing that one of them writes.
TEST(CpuDevice, SequencesOfKernelsGiveWhatTheirOrderSays) {
  constexpr size_t count = 20, size = 50;
  auto resultOn = [&](int threads) {
    std::unique_ptr<Device> device = withKernels(threads);
    std::vector<float> values(count * size), slopes(count * size), rate{0.25f};
    std::iota(values.begin(), values.end(), 0.0f);
    std::iota(slopes.rbegin(), slopes.rend(), 1.0f);
    std::vector<std::unique_ptr<Operation>> operations;
    std::vector<SequenceEntry> entries;
    auto rangeOf = [](const float *at) { return MemoryRange{reinterpret_cast<const std::byte *>(at), reinterpret_cast<const std::byte *>(at + size)}; };
    auto descend = [&](float *w, float *g, int64_t tasks) {
      auto launch = device->prepareLaunch({"sgd", {reinterpret_cast<std::byte *>(w), reinterpret_cast<std::byte *>(g), bytes(rate)}, size, tasks, 1});
      operations.push_back(std::move(*launch));
      entries.push_back({operations.back().get(), 0, {}, {rangeOf(w), rangeOf(g)}, {rangeOf(w)}});
    };
    for (size_t i = 0; i < count; ++i) // none needs another one
      descend(&values[i * size], &slopes[i * size], i % 3 + 1);
    for (size_t i = 0; i + 1 < count; ++i) // reads what the next one writes
      descend(&values[i * size], &values[(i + 1) * size], 2);
    for (size_t i = 0; i + 1 < count; ++i) // writes what the next one reads
      descend(&slopes[(i + 1) * size], &slopes[i * size], 3);
    EXPECT_TRUE(device->finishPreparation());
    std::unique_ptr<Sequence> sequence = device->makeSequence(std::move(entries));
    for (int run = 0; run < 30; ++run) {
      size_t failed = 0;
      EXPECT_TRUE(sequence->run(failed));
      EXPECT_EQ(failed, operations.size());
    }
    values.insert(values.end(), slopes.begin(), slopes.end());
    return values;
  };
  const std::vector<float> expected = resultOn(1);
  for (int threads : {2, 3, 5})
    for (int again = 0; again < 5; ++again)
      ASSERT_EQ(resultOn(threads), expected) << threads;
}

TEST(CpuDevice, UnknownKernelsAreNamed) {
  auto launch = withKernels(1)->prepareLaunch({"gone", {}, 1, 1, 1});
  ASSERT_FALSE(launch);
  EXPECT_EQ(launch.error().code, ExitCode::BadFile);
  EXPECT_EQ(launch.error().message, "the plan's machine code has no kernel 'gone'");
}

TEST(CpuDevice, CopiesStridedRegions) {
  std::unique_ptr<Device> device = withKernels(1);
  std::vector<float> source(24), target(12, 0);
  std::iota(source.begin(), source.end(), 0.0f);
  // Rows 1..3, columns 2..5 of a 4 x 6 array to a dense 2 x 3.
  CopySpec spec{bytes(source), bytes(target), {8, {2, 3}, {6, 1}}, {0, {2, 3}, {3, 1}}, sizeof(float)};
  auto copy = device->prepareCopy(spec);
  ASSERT_TRUE(copy);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE((*copy)->run());
    EXPECT_EQ(std::vector<float>(target.begin(), target.begin() + 6), (std::vector<float>{8, 9, 10, 14, 15, 16}));
  }
  // A column: no run is longer than one element.
  auto column = device->prepareCopy({bytes(source), bytes(target), {1, {4}, {6}}, {0, {4}, {2}}, sizeof(float)});
  ASSERT_TRUE((*column)->run());
  EXPECT_EQ(std::vector<float>(target.begin(), target.begin() + 7), (std::vector<float>{1, 9, 7, 14, 13, 16, 19}));
}

TEST(CpuDevice, FillsEveryType) {
  std::unique_ptr<Device> device = withKernels(1);
  auto fill = [&](plan::DataType type, double value, auto example) {
    std::vector<decltype(example)> values(5, decltype(example){});
    auto operation = device->prepareFill({reinterpret_cast<std::byte *>(values.data()), 4, type, value});
    EXPECT_TRUE((*operation)->run());
    EXPECT_EQ(values[4], decltype(example){}) << "writes too far";
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(values[i], example);
  };
  fill(plan::F32, -1.5, -1.5f);
  fill(plan::F64, 0.1, 0.1);
  fill(plan::I32, -3, int32_t{-3});
  fill(plan::I64, 1e12, int64_t{1000000000000});
  fill(plan::BOOL, 1, uint8_t{1});
  fill(plan::F16, 1, uint16_t{0x3c00});
  fill(plan::BF16, -2, uint16_t{0xc000});
}

TEST(CpuDevice, ArenaIsZeroedAndAligned) {
  std::unique_ptr<Device> device = withKernels(1);
  auto arena = device->allocateArena(1 << 20);
  ASSERT_TRUE(arena);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*arena) % 64, 0u);
  for (int i = 0; i < 1 << 20; i += 4096)
    EXPECT_EQ((*arena)[i], std::byte{0});
}

TEST(CpuDevice, TooMuchMemoryIsRefusedWithNumbers) {
  EXPECT_TRUE(checkHostMemory(1 << 20, 8));
  Status status = checkHostMemory(uint64_t{1} << 45, 4);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::NoResource);
  EXPECT_EQ(status.error().message.find("the plan takes 32768.00 GiB per rank, 131072.00 GiB for 4 ranks on this host, but "), 0u)
      << status.error().message;
}

TEST(CpuDevice, RanksShareTheProcessors) {
  auto count = static_cast<int64_t>(usableProcessors().size());
  EXPECT_EQ(shareOfHost(0, 0, count).threads, 1);
  EXPECT_EQ(shareOfHost(0, 0, 1).threads, count);
  EXPECT_EQ(shareOfHost(0, 3, 4 * count).threads, 1);
  EXPECT_EQ(shareOfHost(3, 1, 2).threads, 3);
  EXPECT_EQ(shareOfHost(0, 3, 4 * count).processors.size(), 1u);
  if (count > 1)
    EXPECT_TRUE(shareOfHost(1, 0, 1).processors.empty()); // leaves processors to others: not pinned
}

} // namespace
