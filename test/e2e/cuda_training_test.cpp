// Networks that train through the CUDA backend, on the recording driver and with emulated kernels: the same losses as on CPUs,
// every access of memory ordered, nothing left behind. This tests how the backend uses CUDA; nothing here runs on a GPU.
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cuda/Kernels.h"
#include "test/Campaign.h"
#include "test/e2e/CudaTraining.h"
#include "test/passes/codegen/PtxSupport.h"

#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <map>
#include <numeric>
#include <regex>
#include <thread>

using namespace msc;
using namespace msc::e2e;

namespace {

TEST_F(CudaTraining, QuickstartOnOneDevice) {
  compare(compileFile(example("quickstart"), 1));
}
TEST_F(CudaTraining, QuickstartOnEightRanksOfOneGpu) {
  compare(compileFile(example("quickstart"), 8));
}
TEST_F(CudaTraining, Perceptron) {
  compare(compileText(perceptron, 1));
}

TEST_F(CudaTraining, GptOnOneDevice) {
  compare(compileExample("gpt2", 1, smallGpt), 3);
}
TEST_F(CudaTraining, GptOnTwoRanks) {
  compare(compileExample("gpt2", 2, smallGpt), 3);
}
TEST_F(CudaTraining, Gpt3) { compare(compileExample("gpt3", 1, smallGpt), 3); }

TEST_F(CudaTraining, WideAndDeep) {
  compiler::KeyValues few{{"wide", "1"}, {"fields", "5"}, {"vocabulary", "101"}, {"size", "6"}, {"batch", "32"}};
  compare(compileExample("wide_and_deep", 1, few), 3);
}

TEST_F(CudaTraining, Images) {
  hasCudnn = true; // emulated kernels would take minutes
  const compiler::KeyValues vgg{{"size", "32"}, {"classes", "4"}, {"batch", "2"}, {"width", "2"}, {"hidden", "8"}};
  compare(compileExample("vgg16", 1, vgg), 2);
  compare(compileExample("resnet50", 1,
                         {{"size", "32"}, {"classes", "4"}, {"batch", "4"}, {"width", "2"}, {"blocks1", "1"}, {"blocks2", "1"}, {"blocks3", "1"}, {"blocks4", "1"}}),
          2);
}
TEST_F(CudaTraining, TransformerOnFourRanks) { compare(compileExample("transformer", 4, {}), 3); }
TEST_F(CudaTraining, MixtureOfExperts) {
  compare(compileExample("moe", 1,
                         {{"wide", "1"},
                          {"layers", "1"},
                          {"heads", "4"},
                          {"kv_heads", "2"},
                          {"width", "16"},
                          {"hidden", "24"},
                          {"experts", "4"},
                          {"length", "16"},
                          {"vocabulary", "31"},
                          {"batch", "4"}}),
          3);
}

TEST_F(CudaTraining, LlamaSharesKeys) {
  compare(compileExample("llama", 1,
                         {{"wide", "1"},
                          {"layers", "1"},
                          {"heads", "4"},
                          {"kv_heads", "2"},
                          {"width", "32"},
                          {"hidden", "48"},
                          {"length", "10"},
                          {"vocabulary", "61"},
                          {"batch", "4"}}),
          3);
}

TEST_F(CudaTraining, Bert) {
  compare(compileExample("bert", 1,
                         {{"wide", "1"},
                          {"layers", "1"},
                          {"heads", "2"},
                          {"width", "16"},
                          {"hidden", "24"},
                          {"length", "9"},
                          {"vocabulary", "50"},
                          {"batch", "4"}}),
          3);
}

// Strides, dilation, groups, padding on one side, windows beyond the end; images cut by rows, too.
TEST_F(CudaTraining, WindowsOverImages) {
  const std::string text = R"(network windows(%x: TYPE[2, 4, 13, 11], %t: TYPE[2, 6]) {
  param %w: TYPE[8, 2, 3, 2] = Normal(0.5)
  param %v: TYPE[6, 8, 3, 3] = Normal(0.3)
  %a = Conv2D(%x, %w) {group: 2, stride: (2, 1), dilation: (1, 2), pad_mode: "pad", pad: (2, 1, 0, 3)}
  %m = MaxPool(%a) {kernel_size: 3, strides: 2, pad_mode: "same"}
  %b = Conv2D(%m, %v) {pad_mode: "same"}
  %c = AvgPool(%b) {kernel_size: 2, strides: 1}
  %d = AdaptiveAvgPool2D(%c, (1, 1))
  %y = Reshape(%d, (2, 6))
  %loss = MSELoss(%y, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 3}
train {optimizer: Momentum(learning_rate: 0.5, momentum: 0.5), minimize: loss, epochs: 1}
)";
  compareTypes(text);
}

// Running sums both ways, the largest of rows that are cut, look-ups element by element with negative indices.
TEST_F(CudaTraining, AlongADimension) {
  const std::string text = R"(network lines(%x: f32[8, 40], %t: f32[8, 40]) {
  param %w: f32[40, 40] = Normal(0.3)
  %a = MatMul(%x, %w)
  %s = CumSum(%a, 1, exclusive: true)
  %r = CumSum(%a, 0, reverse: true)
  %b = Mul(%r, 0.125)
  %v, %i = TopK(%s, 8, sorted: SORTED)
  %n = Sub(%i, 40)
  %g = GatherD(%b, %n, 1)
  %h = Mul(%g, %v)
  %m = ReduceMean(%h)
  %e = MSELoss(%a, %t)
  %loss = Add(%m, %e)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 3}
train {optimizer: Momentum(learning_rate: 0.05, momentum: 0.5), minimize: loss, epochs: 1}
)";
  for (const char *sorted : {"true", "false"})
    for (int64_t devices : {1, 2}) {
      SCOPED_TRACE(fmt::format("on {}, sorted: {}", devices, sorted));
      compare(compileText(std::regex_replace(text, std::regex("SORTED"), sorted), devices));
    }
}

// More keys than a block has threads, gradients of all that an attention takes, a mask that is added and one that hides.
TEST_F(CudaTraining, AttentionToManyKeys) {
  for (const char *mask : {"", ", %b", ", %hides"}) {
    std::string text = R"(network many(%x: f32[1, 3, 6], %z: f32[1, 300, 6], %b: f32[3, 300], %t: f32[1, 3, 6]) {
  param %w: f32[6, 6] = Normal(0.5)
  param %u: f32[6, 6] = Normal(0.5)
  %q = MatMul(%x, %w)
  %k = MatMul(%z, %u)
  %hides = Greater(%b, 0.0)
  %y, %log = ScaledDotProductAttention(%q, %k, %zMASK, heads: 2)
  %loss = MSELoss(%y, %t)
  return loss: %loss, hides: %hides
}
dataset {source: Random(seed: 5), columns: {x: normal, z: normal, b: normal, t: normal}, steps: 2}
train {optimizer: Momentum(learning_rate: 0.5, momentum: 0.5), minimize: loss, epochs: 1}
)";
    text.replace(text.find("MASK"), 4, mask);
    SCOPED_TRACE(mask);
    compare(compileText(text, 1));
  }
}

// The largest and the smallest rows by number, some numbers without rows, attention with a mask that is a parameter: all in f64, as well.
TEST_F(CudaTraining, SegmentsAndMasks) {
  const std::string text = R"(network segments(%x: TYPE[2, 5, 6], %z: TYPE[2, 7, 6], %ids: i32[2, 5], %t: TYPE[4, 6]) {
  param %w: TYPE[6] = Normal(0.5)
  param %b: TYPE[5, 7] = Normal(0.5)
  param %c: TYPE[1, 1, 1, 7] = Normal(0.5)
  %q = Mul(%x, %w)
  %y, %log = ScaledDotProductAttention(%q, %z, %z, %b, heads: 2)
  %u, %other = ScaledDotProductAttention(%y, %z, %z, %c, heads: 3)
  %most = UnsortedSegmentMax(%u, %ids, 4)
  %least = UnsortedSegmentMin(%y, %ids, 4)
  %m = Maximum(%most, -1.0)
  %l = Minimum(%least, 1.0)
  %s = Add(%m, %l)
  %loss = MSELoss(%s, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, z: normal, ids: integers(0, 3), t: normal}, steps: 3}
train {optimizer: Momentum(learning_rate: 0.5, momentum: 0.5), minimize: loss, epochs: 1}
)";
  compareTypes(text);
}

/// How many products of a plan read that type; the others are of f32.
std::map<std::string, int> productsByType(const PlanIndex &index) {
  std::map<std::string, int> counts;
  for (const plan::Step &step : index.plan().programs(0).variants(0).steps())
    if (step.has_matmul())
      ++counts[dataTypeName(index.buffer(step.matmul().left()).dtype())];
  return counts;
}

// Plans for GPUs alone multiply bf16 and f16 as they are: the losses of CPUs, which cast f16 to f32, but for the order of sums.
TEST_F(CudaTraining, NarrowProducts) {
  const std::string text = R"(network narrow(%x: f32[4, 6, 16], %t: f32[4, 6, 5]) {
  param %w: f32[16, 24] = Normal(0.3)
  param %b: f32[24] = Normal(0.1)
  param %v: f32[7, 24] = Normal(0.3)
  param %c: f32[7] = Normal(0.1)
  param %u: f32[7, 5] = Normal(0.5)
  %m = MatMul(%x, %w)
  %a = BiasAdd(%m, %b) {data_format: "NHWC"}
  %h = ReLU(%a)
  %d = Dense(%h, %v, %c)
  %s = BatchMatMul(%d, %d, transpose_b: true)
  %p = Softmax(%s)
  %o = BatchMatMul(%p, %d)
  %y = MatMul(%o, %u)
  %loss = MSELoss(%y, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 3}
train {optimizer: Momentum(learning_rate: 0.1, momentum: 0.5), minimize: loss, epochs: 1, amp_level: O2, amp_dtype: TYPE}
)";
  for (auto [type, place] : {std::pair("bf16", 1.0 / 256), std::pair("f16", 1.0 / 2048)})
    for (auto [devices, stored] : {std::pair(1, "f32"), std::pair(2, "f32"), std::pair(2, type)}) {
      SCOPED_TRACE(fmt::format("{} on {}, stored in {}", type, devices, stored));
      const std::string own = std::regex_replace(std::regex_replace(text, std::regex("TYPE"), type), std::regex("f32\\["),
                                                 std::string(stored) + "[");
      target = "auto";
      Compiled wide = compileText(own, devices);
      target = "cuda";
      Compiled narrow = compileText(own, devices);
      PlanIndex onCpu(wide.plan), onGpu(narrow.plan);
      EXPECT_EQ(productsByType(onCpu), (std::map<std::string, int>{{std::string_view(type) == "bf16" ? "bf16" : "f32", 14}}));
      EXPECT_EQ(productsByType(onGpu), (std::map<std::string, int>{{type, 14}}));
      Outcome cpu = run(onCpu, nullptr);
      test::RecordingDriver driver;
      Outcome cuda = run(onGpu, open(driver, onGpu, narrow));
      ASSERT_FALSE(cpu.failure) << cpu.failure->message;
      ASSERT_FALSE(cuda.failure) << cuda.failure->message;
      ASSERT_EQ(cpu.losses.size(), 3u);
      expectNear(cuda.losses, cpu.losses, 4 * place);
      expectClean(driver);
      test::RecordingDriver driverOfBoth;
      Outcome both = run(onCpu, open(driverOfBoth, onCpu, wide));
      ASSERT_FALSE(both.failure) << both.failure->message;
      expectNear(both.losses, cpu.losses, 4 * place);
      expectClean(driverOfBoth);
    }
}

// Kernels of plans for GPUs alone read narrow values where others read casts of them, and make more of them at once. Attention
// keeps its output in bf16 there.
TEST_F(CudaTraining, NarrowExamples) {
  const std::string bf16 = "amp_level: O2, amp_dtype: bf16, ";
  const compiler::KeyValues smallImages{{"size", "32"},   {"classes", "4"}, {"batch", "2"},   {"width", "2"},
                                        {"blocks1", "1"}, {"blocks2", "1"}, {"blocks3", "1"}, {"blocks4", "1"}};
  for (auto [name, defines, devices, tolerance] :
       {std::tuple("gpt2", smallGpt, 1, 1e-2), std::tuple("gpt2", smallGpt, 2, 1e-2), std::tuple("resnet50", smallImages, 1, 3e-2)}) {
    SCOPED_TRACE(fmt::format("{} on {}", name, devices));
    RunOptions options;
    options.steps = 2;
    target = "auto";
    Compiled wide = compileExample(name, devices, defines, bf16);
    target = "cuda";
    Compiled narrow = compileExample(name, devices, defines, bf16);
    PlanIndex onCpu(wide.plan), onGpu(narrow.plan);
    Outcome cpu = run(onCpu, nullptr, options);
    test::RecordingDriver driver;
    driver.hasCudnn = true;
    Outcome cuda = run(onGpu, open(driver, onGpu, narrow), options);
    ASSERT_FALSE(cpu.failure) << cpu.failure->message;
    ASSERT_FALSE(cuda.failure) << cuda.failure->message;
    ASSERT_EQ(cpu.losses.size(), 2u);
    expectNear(cuda.losses, cpu.losses, tolerance);
    expectClean(driver);
    fmt::print("  {} on {}: {} and {}\n", name, devices, fmt::join(cuda.losses, ", "), fmt::join(cpu.losses, ", "));
  }
}

// A narrow product adds its bias before it is rounded, where the sum is kept for the backward pass and large.
TEST_F(CudaTraining, NarrowProductsAddABias) {
  const std::string text = R"(network wide(%x: f32[ROWS, 8], %t: f32[ROWS, 8]) {
  param %w: f32[8, 1024] = Normal(0.3)
  param %b: f32[1024] = Normal(0.3)
  param %v: f32[1024, 8] = Normal(0.1)
  %m = MatMul(%x, %w)
  %h = BiasAdd(%m, %b)
  %a = GeLU(%h, approximate: tanh)
  %y = MatMul(%a, %v)
  %loss = MSELoss(%y, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 2}
train {amp_level: O2, amp_dtype: bf16, optimizer: Momentum(learning_rate: 0.05, momentum: 0.5), minimize: loss, epochs: 1}
)";
  target = "cuda";
  for (auto [rows, adds] : {std::pair(2048, 1), std::pair(2040, 0)}) {
    SCOPED_TRACE(rows);
    Compiled compiled = compileText(std::regex_replace(text, std::regex("ROWS"), std::to_string(rows)), 1);
    PlanIndex onGpu(compiled.plan);
    int biases = 0;
    for (const plan::Step &step : onGpu.plan().programs(0).variants(0).steps())
      biases += step.has_matmul() && step.matmul().bias() != 0;
    EXPECT_EQ(biases, adds);
    test::RecordingDriver driver;
    Outcome cuda = run(onGpu, open(driver, onGpu, compiled));
    ASSERT_FALSE(cuda.failure) << cuda.failure->message;
    target = "auto";
    Compiled wide = compileText(std::regex_replace(text, std::regex("ROWS"), std::to_string(rows)), 1);
    target = "cuda";
    PlanIndex onCpu(wide.plan);
    Outcome cpu = run(onCpu, nullptr);
    ASSERT_FALSE(cpu.failure) << cpu.failure->message;
    ASSERT_EQ(cpu.losses.size(), 2u);
    expectNear(cuda.losses, cpu.losses, 1e-2);
    expectClean(driver);
  }
}

TEST_F(CudaTraining, KernelsOfTheRuntimeAssembleAndSpillLittle) {
  if (test::ptxasPath().empty())
    GTEST_SKIP() << "ptxas is not installed";
  auto mostSpills = [](const std::string &entry) { // ptxas has some kernels run in few registers, so that more run at once
    bool foldsRows = entry.starts_with("msc_sums_") || entry.starts_with("msc_maxima_") || entry.starts_with("msc_minima_");
    return foldsRows ? 96u : entry.starts_with("msc_pool_max_input_") || entry == "msc_turn_last_2" ? 16u : 0u;
  };
  for (const char *chip : {"sm_80", "sm_90"}) {
    test::Assembly assembly = test::assemble(device::cuda::kernelsPtx, chip);
    EXPECT_EQ(assembly.error, "");
    EXPECT_EQ(assembly.kernels.size(), 90u);
    for (const auto &[entry, kernel] : assembly.kernels)
      EXPECT_LE(kernel.spillBytes, mostSpills(entry)) << chip << " " << entry;
    assembly = test::assemble(device::cuda::rowAttentionPtx, chip);
    EXPECT_EQ(assembly.error, "");
    EXPECT_EQ(assembly.kernels.size(), 14u);
    for (const auto &[entry, kernel] : assembly.kernels) // right before fast
      EXPECT_LE(kernel.spillBytes, 160u) << chip << " " << entry;
    for (const auto &[at, set] : llvm::enumerate(device::cuda::attentionKernels)) {
      // ptxas takes seconds for each: in short runs on one chip, which f16 and bf16, four sets each, take turns with.
      if (!test::isLongRun() && ((at + at / 4) % 2 == 0) != (chip == std::string("sm_90")))
        continue;
      assembly = test::assemble(set.ptx, chip);
      EXPECT_EQ(assembly.error, "");
      EXPECT_EQ(assembly.kernels.size(), 3u);
      for (const auto &[entry, kernel] : assembly.kernels) // on tensor cores fewer columns at a time would spill nothing, and were slower
        EXPECT_LE(kernel.spillBytes, set.numberBytes == 2 ? 256u : 32u) << chip << " " << set.type << " " << set.depth << " " << set.sides[0] << " " << entry;
    }
  }
}

// More than 1 MiB: the next batch is sent while a step runs.
TEST_F(CudaTraining, LargeInputsTravelBesideComputation) {
  std::string text = R"(network large(%x: f32[4, 70000], %t: f32[4, 1]) {
  param %w: f32[70000, 1] = Normal(0.01)
  %y = MatMul(%x, %w)
  %loss = MSELoss(%y, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 4SAME}
train {optimizer: SGD(learning_rate: 0.001), minimize: loss, epochs: 2}
)";
  for (const char *same : {"", ", same_batch: true"}) {
    std::string made = text;
    made.replace(made.find("SAME"), 4, same);
    SCOPED_TRACE(same);
    compare(compileText(made, 1));
    Compiled compiled = compileText(made, 1);
    PlanIndex index(compiled.plan);
    test::RecordingDriver driver;
    EXPECT_FALSE(run(index, open(driver, index, compiled)).failure);
    EXPECT_EQ(driver.calls("uploads on other streams than the first"), *same ? 1 : 8);
  }
}

TEST_F(CudaTraining, AnIndexThatNumbersNothingIsNamed) {
  Compiled compiled = compileText(R"(network wrong(%x: i32[6]) {
  param %table: f32[4, 3] = Normal(1)
  %far = Add(%x, 7)
  %y = Gather(%table, %far, 0)
  return out: %y
}
dataset {source: Random(seed: 3), columns: {x: integers(0, 2)}, steps: 1}
)",
                                  1);
  PlanIndex index(compiled.plan);
  Outcome cpu = run(index, nullptr);
  test::RecordingDriver driver;
  Outcome cuda = run(index, open(driver, index, compiled));
  ASSERT_TRUE(cpu.failure && cuda.failure);
  EXPECT_EQ(cuda.failure->code, cpu.failure->code);
  size_t says = cpu.failure->message.find("index ");
  ASSERT_NE(says, std::string::npos) << cpu.failure->message;
  EXPECT_NE(cuda.failure->message.find(cpu.failure->message.substr(says)), std::string::npos) << cuda.failure->message;
  expectClean(driver);
}

TEST_F(CudaTraining, FirstStepWaitsAndTheOthersAreOneGraph) {
  Compiled compiled = compileFile(example("quickstart"), 1);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  Outcome cuda = run(index, open(driver, index, compiled));
  ASSERT_EQ(cuda.losses.size(), 20u);
  EXPECT_EQ(driver.calls("cuStreamBeginCapture"), 1);
  EXPECT_EQ(driver.calls("cuGraphInstantiateWithFlags"), 1);
  EXPECT_EQ(driver.calls("cuGraphLaunch"), 19);
  EXPECT_EQ(driver.calls("products in tf32"), 0);
  // Each text is compiled once.
  EXPECT_LE(driver.calls("cuModuleLoadDataEx"), 2);
}

TEST_F(CudaTraining, CapturedAndUncapturedAgreeToTheBit) {
  Compiled compiled = compileText(perceptron, 1);
  PlanIndex index(compiled.plan);
  Outcome runs[2];
  for (bool graphs : {false, true}) {
    test::RecordingDriver driver;
    runs[graphs] = run(index, open(driver, index, compiled, {.graphs = graphs}));
    EXPECT_EQ(driver.calls("cuGraphLaunch"), graphs ? 7 : 0);
    expectClean(driver);
  }
  EXPECT_EQ(runs[0].losses, runs[1].losses);
  EXPECT_EQ(runs[0].printed, runs[1].printed);
}

TEST_F(CudaTraining, TensorFloatOnlyWhereItIsAsked) {
  Compiled compiled = compileFile(example("quickstart"), 1);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  run(index, open(driver, index, compiled, {.tensorFloat = true}));
  EXPECT_EQ(driver.calls("products in f32"), 0);
  EXPECT_GT(driver.calls("products in tf32"), 0);
}

TEST_F(CudaTraining, CheckpointsGoToAndFro) {
  Compiled compiled = compileText(perceptron, 1);
  PlanIndex index(compiled.plan);
  RunOptions saves, resumes;
  saves.checkpoint.directory = resumes.checkpoint.directory = folder / "ckpt";
  saves.epochs = 1;
  resumes.checkpoint.resume = "latest";
  Outcome whole = run(index, nullptr);
  std::vector<double> second(whole.losses.begin() + 4, whole.losses.end());
  for (bool cudaSaves : {false, true}) {
    test::RecordingDriver driver;
    std::shared_ptr<device::Backend> cuda = open(driver, index, compiled);
    ASSERT_FALSE(run(index, cudaSaves ? cuda : nullptr, saves).failure);
    testing::internal::CaptureStderr();
    Outcome rest = run(index, cudaSaves ? nullptr : cuda, resumes);
    testing::internal::GetCapturedStderr();
    ASSERT_FALSE(rest.failure) << rest.failure->message;
    expectNear(rest.losses, second);
    cuda.reset();
    expectClean(driver);
    std::filesystem::remove_all(folder / "ckpt");
  }
}

TEST_F(CudaTraining, OneGpuOfGptAndOfUnevenPieces) {
  compare(compileExample("gpt2", 4, smallGpt), 3);
  for (int64_t devices : {3, 5})
    compare(compileText(perceptron, devices), 3);
}

/// A value of some type that is small enough for sums and products of a few of them to be exact, or of every sign and size.
template <typename Element> Element valueOf(int64_t seed) {
  int64_t mixed = seed * 2654435761 % 1009;
  if constexpr (std::is_same_v<Element, uint8_t>)
    return mixed % 3 == 0;
  else if constexpr (std::is_integral_v<Element>)
    return static_cast<Element>((mixed - 500) * 1000003);
  else
    return static_cast<Element>((static_cast<double>(mixed) - 500) / 97);
}

/// AllReduce and ReduceScatter of one type on one GPU, beside what the hosts make of the same values.
template <typename Element> void reduceOnOneGpu(device::Backend &backend, int64_t ranks, comm::ElementType type) {
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::thread> threads;
  constexpr int64_t count = 37, columns = 5;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto world = hub->world(rank);
      auto made = backend.create({rank, rank, ranks, world.get()});
      ASSERT_TRUE(made.isOk()) << made.error().message;
      device::Device &device = **made;
      EXPECT_EQ(device.collectiveForm(), device::CollectiveForm::Separate);
      std::byte *arena = *device.allocateArena(4096);
      comm::Partition partition(static_cast<size_t>(ranks), 0);
      ASSERT_TRUE(device.openGroups({partition}).isOk());
      std::vector<int64_t> members(static_cast<size_t>(ranks));
      std::iota(members.begin(), members.end(), int64_t{0});
      comm::Group *hosts = *world->group(members);
      std::vector<Element> own, expected(count), got(count);
      for (int64_t i = 0; i < count; ++i)
        own.push_back(valueOf<Element>(rank * 1000 + i));
      for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Min, ReduceKind::Max}) {
        device::CollectiveSpec spec;
        spec.kind = device::CollectiveSpec::Kind::AllReduce;
        spec.partition = &partition, spec.hosts = hosts, spec.type = type, spec.reduction = kind;
        spec.reduces = {{arena, arena + 1024, count}};
        auto sum = device.prepareCollective(spec);
        ASSERT_TRUE(sum.isOk()) << sum.error().message;
        // Columns of a matrix of `columns` columns, in as equal shares as there can be.
        std::vector<comm::Region> pieces;
        for (int64_t m = 0; m < ranks; ++m) {
          int64_t first = m * columns / ranks, last = (m + 1) * columns / ranks;
          pieces.push_back({first, {7, last - first}, {columns, 1}});
        }
        std::vector<comm::ScatterPart> scatters{{arena, arena + 2048, pieces}};
        spec.kind = device::CollectiveSpec::Kind::ReduceScatter;
        spec.scatters = scatters;
        auto scatter = device.prepareCollective(spec);
        ASSERT_TRUE(scatter.isOk()) << scatter.error().message;
        ASSERT_TRUE(device.finishPreparation().isOk());
        auto kept = static_cast<size_t>(pieces[static_cast<size_t>(rank)].count());
        for (int round = 0; round < 2; ++round) {
          ASSERT_TRUE(device.upload(arena, own.data(), own.size() * sizeof(Element)).isOk());
          ASSERT_TRUE((*sum)->run().isOk() && (*scatter)->run().isOk() && device.synchronize().isOk());
          ASSERT_TRUE(device.download(got.data(), arena + 1024, got.size() * sizeof(Element)).isOk());
          ASSERT_TRUE(hosts->allReduce(own.data(), expected.data(), count, type, kind, {"sum", ""}).isOk());
          EXPECT_EQ(memcmp(got.data(), expected.data(), count * sizeof(Element)), 0) << static_cast<int>(kind);
          ASSERT_TRUE(device.download(got.data(), arena + 2048, kept * sizeof(Element)).isOk());
          ASSERT_TRUE(hosts->reduceScatter(own.data(), expected.data(), pieces, type, kind, {"scatter", ""}).isOk());
          EXPECT_EQ(memcmp(got.data(), expected.data(), kept * sizeof(Element)), 0) << static_cast<int>(kind);
        }
      }
      EXPECT_TRUE(device.closeGroups().isOk());
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(CudaTraining, OneGpuReducesToTheBitsOfCpus) {
  Compiled compiled = compileText(perceptron, 1);
  PlanIndex index(compiled.plan);
  for (int64_t ranks : {2, 3, 8}) {
    test::RecordingDriver driver;
    std::shared_ptr<device::Backend> backend = open(driver, index, compiled);
    reduceOnOneGpu<float>(*backend, ranks, comm::ElementType::F32);
    reduceOnOneGpu<double>(*backend, ranks, comm::ElementType::F64);
    reduceOnOneGpu<int32_t>(*backend, ranks, comm::ElementType::I32);
    reduceOnOneGpu<int64_t>(*backend, ranks, comm::ElementType::I64);
    reduceOnOneGpu<uint8_t>(*backend, ranks, comm::ElementType::Bool);
    backend.reset();
    expectClean(driver);
  }
}

TEST_F(CudaTraining, AFailureOnOneGpuEndsAllRanks) {
  Compiled compiled = compileText(perceptron, 4);
  PlanIndex index(compiled.plan);
  for (int launch : {3, 30, 60}) {
    test::RecordingDriver driver;
    std::shared_ptr<device::Backend> backend = open(driver, index, compiled);
    driver.failCall("cuLaunchKernel", launch, CUDA_ERROR_INVALID_VALUE);
    Outcome cuda = run(index, std::move(backend));
    ASSERT_TRUE(cuda.failure);
    EXPECT_NE(cuda.failure->message.find("cuLaunchKernel returned 1"), std::string::npos) << cuda.failure->message;
    expectClean(driver);
  }
}

TEST_F(CudaTraining, AllGatherOfRanks) {
  Compiled compiled = compileFile(example("allgather"), 4);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  driver.gpus = 2;
  Outcome cuda = run(index, open(driver, index, compiled)), cpu = run(index, nullptr);
  ASSERT_FALSE(cuda.failure) << cuda.failure->message;
  EXPECT_EQ(cuda.printed, cpu.printed);
  expectClean(driver);
}

TEST_F(CudaTraining, AFailingKernelIsNamedInTheFirstStep) {
  Compiled compiled = compileFile(example("quickstart"), 1);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  std::shared_ptr<device::Backend> backend = open(driver, index, compiled);
  std::string entry = compiled.plan.kernels(0).variants(0).gpu().entry();
  driver.failKernel(entry, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  Outcome cuda = run(index, backend);
  ASSERT_TRUE(cuda.failure);
  EXPECT_NE(cuda.failure->message.find(
                "cuStreamSynchronize returned CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"),
            std::string::npos)
      << cuda.failure->message;
  EXPECT_NE(cuda.failure->message.find("net.mir:"), std::string::npos) << cuda.failure->message;
  EXPECT_EQ(cuda.failure->help, "");
  EXPECT_EQ(cuda.failure->code, ExitCode::Internal);
}

// In a graph nobody knows which operator it was; without one it is named in any step.
TEST_F(CudaTraining, AFailingKernelOfALaterStepIsNamedWithoutAGraph) {
  Compiled compiled = compileText(perceptron, 2);
  PlanIndex index(compiled.plan);
  for (bool graphs : {true, false}) {
    test::RecordingDriver driver;
    std::shared_ptr<device::Backend> backend = open(driver, index, compiled, {.graphs = graphs});
    const std::string entry = compiled.plan.kernels(0).variants(0).gpu().entry();
    driver.failKernel(entry, 9, CUDA_ERROR_ILLEGAL_ADDRESS); // of two ranks
    Outcome cuda = run(index, backend);
    ASSERT_TRUE(cuda.failure);
    const std::string &message = cuda.failure->message;
    EXPECT_TRUE(std::regex_search(message, std::regex("^epoch [12] step [1-4]: .*rank [01] of 2"))) << message;
    EXPECT_NE(message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << message;
    EXPECT_EQ(message.find("net.mir:") != std::string::npos, !graphs) << message;
    EXPECT_EQ(cuda.failure->help.find("--no-cuda-graph") != std::string::npos, graphs) << cuda.failure->help;
    EXPECT_EQ(cuda.failure->code, ExitCode::Internal);
  }
}

} // namespace
