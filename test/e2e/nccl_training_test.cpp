// Networks that train on many GPUs through NCCL, both of them recorded: the same losses as on CPUs, every access of memory
// ordered, failures that end all ranks. This tests how the backend uses CUDA and NCCL; nothing here runs on a GPU.
#include "runtime/comm/nccl/Transport.h"
#include "test/e2e/CudaTraining.h"
#include "test/runtime/comm/nccl/RecordingNccl.h"

#include <algorithm>
#include <cstdlib>

using namespace msc;
using namespace msc::e2e;

namespace {

class NcclTraining : public CudaTraining {
protected:
  /// Trains on CPUs, and on as many GPUs as there are ranks, with a recording NCCL.
  void compareNccl(const Compiled &compiled, std::optional<uint64_t> steps = {}, int looks = 0) {
    PlanIndex index(compiled.plan);
    RunOptions options;
    options.steps = steps;
    Outcome cpu = run(index, nullptr, options);
    ASSERT_FALSE(cpu.failure) << cpu.failure->message;
    test::RecordingDriver driver;
    driver.gpus = static_cast<int>(index.devices());
    test::RecordingNccl nccl(driver);
    nccl.looks = looks;
    Outcome cuda = run(index, open(driver, index, compiled, withNccl(nccl)), options);
    ASSERT_FALSE(cuda.failure) << cuda.failure->message;
    ASSERT_FALSE(cpu.losses.empty() && cpu.printed.empty());
    expectNear(cuda.losses, cpu.losses);
    if (cpu.losses.empty())
      EXPECT_EQ(cuda.printed, cpu.printed);
    EXPECT_EQ(nccl.finish(), "");
    memories = nccl.calls("ncclMemAlloc");
    expectClean(driver);
    // From the second step on a rank launches one graph per step and nothing else.
    auto count = static_cast<int>(cuda.losses.size());
    EXPECT_EQ(driver.calls("cuGraphLaunch"), static_cast<int>(index.devices()) * std::max(0, count - 1));
    fmt::print("  {} steps, {} kernels and products, {} launches of rank 0: {}\n", count, driver.ran(), nccl.launches(0).size(),
               fmt::join(nccl.launches(0), "; "));
  }
  int64_t memories = 0; ///< that the ranks of the last comparison took from NCCL

  static device::CudaOptions withNccl(const test::RecordingNccl &nccl) {
    auto transport = comm::nccl::makeTransport(nccl.table(), {.interval = std::chrono::milliseconds(2)});
    EXPECT_TRUE(transport.isOk());
    device::CudaOptions options;
    options.nccl = std::move(*transport);
    return options;
  }
};

TEST_F(NcclTraining, Quickstart) {
  compareNccl(compileFile(example("quickstart"), 8));
}

TEST_F(NcclTraining, CallsThatGoOnBehindTheirReturn) {
  compareNccl(compileFile(example("quickstart"), 8), {}, 3);
}

TEST_F(NcclTraining, UnevenPieces) {
  for (int64_t devices : {3, 5, 6, 7})
    compareNccl(compileText(perceptron, devices), 4);
}

TEST_F(NcclTraining, SumsInUnevenPieces) {
  // Each rank has a part of every sum; what they keep of it are rows, or columns, of unequal number.
  for (const char *kept : {"((3, 1))", "((1, 3))"}) {
    std::string text = fmt::format(R"(network sums(%x: f32[10, 9], %y: f32[10, 8]) {{
  param %w: f32[9, 8] = Normal(0.5)
  %m = MatMul(%x, %w) {{in_strategy: ((1, 3), (3, 1))}}
  %h = Sigmoid(%m) {{in_strategy: {}}}
  %loss = MSELoss(%h, %y)
  return loss: %loss, h: %h
}}
dataset {{source: Random(seed: 3), columns: {{x: normal, y: uniform}}, steps: 4}}
train {{optimizer: Momentum(learning_rate: 0.5, momentum: 0.5), minimize: loss, epochs: 1}}
)",
                                   kept);
    compareNccl(compileText(text, 3));
  }
}

TEST_F(NcclTraining, CollectivesPackIntoTheSameMemory) {
  std::string layers, before = "x";
  for (int i = 0; i < 4; ++i) { // results cut along columns, operands whole: gathered, and gradients scattered, along columns
    layers += fmt::format("  param %w{0}: f32[32, 32] = Normal(0.1)\n  %h{0} = MatMul(%{1}, %w{0}) {{in_strategy: ((1, 1), (1, 8))}}\n", i, before);
    before = fmt::format("h{}", i);
  }
  compareNccl(compileText("network columns(%x: f32[32, 32], %y: f32[32, 32]) {\n" + layers + "  %loss = MSELoss(%h3, %y)\n  return loss: %loss\n}\n"
                          "dataset {source: Random(seed: 3), columns: {x: normal, y: uniform}, steps: 4}\n"
                          "train {optimizer: SGD(0.5), minimize: loss, epochs: 1}\n", 8));
  EXPECT_EQ(memories, 8 * 2); // the arena of each rank, and what all of its collectives pack into
}

TEST_F(NcclTraining, APerceptron) {
  compareNccl(compileText(perceptron, 4));
}

TEST_F(NcclTraining, Gpt) {
  compareNccl(compileExample("gpt2", 2, smallGpt), 3);
  compareNccl(compileExample("gpt2", 4, smallGpt), 3, 1);
}
/// NCCL that is asked for starts and ends with one rank as well, and a graph is launched per step: what one GPU can show of it.
TEST_F(NcclTraining, OneRank) {
  Compiled compiled = compileFile(example("quickstart"), 1);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  test::RecordingNccl nccl(driver);
  device::CudaOptions options = withNccl(nccl);
  options.collectives = device::Collectives::Nccl;
  std::shared_ptr<device::Backend> backend = open(driver, index, compiled, options);
  EXPECT_NE(backend->note({1, 1, true}).find("collectives by NCCL"), std::string::npos);
  Outcome cuda = run(index, backend), cpu = run(index, nullptr);
  ASSERT_FALSE(cuda.failure) << cuda.failure->message;
  expectNear(cuda.losses, cpu.losses);
  EXPECT_EQ(nccl.calls("ncclCommInitRankConfig"), 1);
  EXPECT_GT(nccl.calls("ncclMemAlloc"), 0);
  EXPECT_EQ(driver.calls("cuGraphLaunch"), static_cast<int>(cuda.losses.size()) - 1);
  EXPECT_EQ(nccl.finish(), "");
  backend.reset();
  expectClean(driver);
}

// On a machine whose collectives run beside computation the plan starts them early.
TEST_F(NcclTraining, RunsBesideComputation) {
  machine = "h100x8";
  compiler::KeyValues sizes = smallGpt;
  for (auto &[name, value] : sizes)
    if (name == "batch")
      value = "8";
  Compiled compiled = compileExample("gpt2", 8, sizes);
  PlanIndex index(compiled.plan);
  const plan::Variant &variant = compiled.plan.programs(0).variants(0);
  auto isStarted = [](const plan::Step &step) { return step.has_collective() && step.collective().asynchronous(); };
  ASSERT_TRUE(std::any_of(variant.steps().begin(), variant.steps().end(), isStarted));
  RunOptions options;
  options.steps = 2;
  Outcome cpu = run(index, nullptr, options);
  test::RecordingDriver driver;
  driver.gpus = 8;
  driver.memoryBytes *= 8; // it is counted for all of them together, and four streams of each have workspaces
  test::RecordingNccl nccl(driver);
  Outcome cuda = run(index, open(driver, index, compiled, withNccl(nccl)), options);
  ASSERT_FALSE(cuda.failure) << cuda.failure->message;
  expectNear(cuda.losses, cpu.losses);
  // The first stream of each rank, one beside it, and those of what does not depend on each other; they part and meet in the captured step.
  EXPECT_GT(driver.calls("cuStreamCreate"), 16);
  EXPECT_GT(driver.calls("cuStreamWaitEvent"), 0);
  EXPECT_EQ(nccl.finish(), "");
  expectClean(driver);
}

TEST_F(NcclTraining, AGather) {
  compareNccl(compileFile(example("allgather"), 4));
}

TEST_F(NcclTraining, NeedsAGpuForEveryRank) {
  Compiled compiled = compileText(perceptron, 4);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  driver.gpus = 2;
  test::RecordingNccl nccl(driver);
  device::CudaOptions options = withNccl(nccl);
  options.collectives = device::Collectives::Nccl;
  Outcome cuda = run(index, open(driver, index, compiled, options));
  ASSERT_TRUE(cuda.failure);
  EXPECT_EQ(cuda.failure->code, ExitCode::NoResource);
  EXPECT_NE(cuda.failure->message.find("rank 0 and 3 others see only 2 GPUs, and NCCL needs one for each"), std::string::npos)
      << cuda.failure->message;
  expectClean(driver);
}

TEST_F(NcclTraining, TakesRanksOfOneGpuThatSayTheyAreOnHostsOfTheirOwn) {
  Compiled compiled = compileText(perceptron, 4);
  PlanIndex index(compiled.plan);
  Outcome cpu = run(index, nullptr);
  test::RecordingDriver driver;
  test::RecordingNccl nccl(driver);
  device::CudaOptions options = withNccl(nccl);
  options.collectives = device::Collectives::Nccl;
  setenv("NCCL_HOSTID", "a", 1);
  Outcome cuda = run(index, open(driver, index, compiled, options));
  unsetenv("NCCL_HOSTID");
  ASSERT_FALSE(cuda.failure) << cuda.failure->message;
  expectNear(cuda.losses, cpu.losses);
  EXPECT_GT(nccl.calls("ncclAllGather"), 0);
  EXPECT_EQ(nccl.finish(), "");
  expectClean(driver);
}

TEST_F(NcclTraining, FailuresNameTheStepAndEndAllRanks) {
  Compiled compiled = compileText(perceptron, 4);
  PlanIndex index(compiled.plan);
  for (int launch : {2, 3, 9}) { // in the first step, in the second one, which is captured, in a later one
    test::RecordingDriver driver;
    driver.gpus = 4;
    test::RecordingNccl nccl(driver);
    nccl.breakRank(2, launch, comm::nccl::Code::RemoteError);
    Outcome cuda = run(index, open(driver, index, compiled, withNccl(nccl)));
    ASSERT_TRUE(cuda.failure);
    EXPECT_EQ(cuda.failure->code, ExitCode::PeerFailed);
    EXPECT_NE(cuda.failure->message.find("ncclCommGetAsyncError returned 6"), std::string::npos) << cuda.failure->message;
    EXPECT_TRUE(std::regex_search(cuda.failure->message, std::regex(launch == 2 ? "^epoch 1 step 1: rank 2 of 4: " : "^epoch [12] step [1-4]: rank 2 of 4: "))) << cuda.failure->message;
    EXPECT_EQ(nccl.finish(), "");
    expectClean(driver);
  }
}

TEST_F(NcclTraining, AFailingKernelEndsTheCollectivesOfAllRanks) {
  Compiled compiled = compileText(perceptron, 4);
  PlanIndex index(compiled.plan);
  RunOptions first;
  first.steps = 1;
  test::RecordingDriver counting;
  counting.gpus = 4;
  test::RecordingNccl countingNccl(counting);
  ASSERT_FALSE(run(index, open(counting, index, compiled, withNccl(countingNccl)), first).failure);
  int launches = counting.calls("cuLaunchKernel");
  // In the first step; then while a second one is captured: at its begin, midway and at its end, on two streams.
  for (int launch : {1, launches + 1, launches + launches / 2, 2 * launches}) {
    SCOPED_TRACE("launch " + std::to_string(launch));
    test::RecordingDriver driver;
    driver.gpus = 4;
    test::RecordingNccl nccl(driver);
    std::shared_ptr<device::Backend> backend = open(driver, index, compiled, withNccl(nccl));
    driver.failCall("cuLaunchKernel", launch, CUDA_ERROR_INVALID_VALUE);
    Outcome cuda = run(index, backend);
    ASSERT_TRUE(cuda.failure);
    EXPECT_NE(cuda.failure->message.find("cuLaunchKernel returned 1"), std::string::npos) << cuda.failure->message;
    EXPECT_EQ(nccl.finish(), "");
    EXPECT_EQ(driver.calls("cuStreamBeginCapture") > 0, launch > 1);
    backend.reset();
    expectClean(driver);
  }
}

} // namespace
