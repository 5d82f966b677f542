// The CUDA device on the recording driver: what it says where something is missing, copies, products, streams, failures. None
// of this runs on a GPU.
#include "runtime/device/cuda/CudaBackend.h"
#include "runtime/plan/Bfloat16.h"
#include "test/runtime/device/cuda/RecordingDriver.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

using namespace msc;
using namespace msc::test;
using device::Collectives;
using device::CudaOptions;
using device::RankCount;
using device::cuda::createBackend;

namespace {

Error refusalOf(RecordingDriver &driver) {
  auto backend = createBackend(driver.tables(), {});
  if (!backend)
    return backend.error();
  auto device = (*backend)->create({});
  return device ? Error{ExitCode::Done, "it works", ""} : device.error();
}

void expectRefusal(RecordingDriver &driver, const std::string &message, const std::string &help) {
  Error error = refusalOf(driver);
  EXPECT_EQ(error.code, ExitCode::NoResource);
  EXPECT_EQ(error.message, message);
  EXPECT_EQ(error.help, help);
  EXPECT_EQ(driver.leaks(), "");
}

const char *const visible = "CUDA_VISIBLE_DEVICES says which GPUs a process sees; run on CPUs with --device cpu";

TEST(CudaBackend, SaysWhatIsMissing) {
  {
    RecordingDriver driver;
    driver.failCall("cuInit", 1, CUDA_ERROR_NO_DEVICE);
    expectRefusal(driver, "no GPU: cuInit returned CUDA_ERROR_NO_DEVICE (recorded)", visible);
  }
  {
    RecordingDriver driver;
    driver.gpus = 0;
    expectRefusal(driver, "no GPU: the driver shows none", visible);
  }
  {
    RecordingDriver driver;
    driver.driverVersion = 11080;
    expectRefusal(driver, "the driver is of CUDA 11.8, this build needs CUDA " + std::to_string(CUDA_VERSION / 1000),
                  "install a newer driver, or run on CPUs with --device cpu");
  }
  {
    RecordingDriver driver;
    driver.computeMajor = 7;
    expectRefusal(driver, "GPU 0 (recording) is an sm_70, the plan's kernels need sm_80 or later",
                  "choose another GPU with CUDA_VISIBLE_DEVICES, or run on CPUs with --device cpu");
  }
}

TEST(CudaBackend, SaysHowRanksShareGpus) {
  RecordingDriver driver;
  driver.gpus = 2;
  auto backend = createBackend(driver.tables(), {});
  ASSERT_TRUE(backend.isOk());
  EXPECT_EQ((*backend)->note({1, 1, true}), "");
  EXPECT_EQ((*backend)->note({2, 2, true}), "collectives go through the memory of the host");
  EXPECT_EQ((*backend)->note({8, 8, true}), "8 logical ranks on 2 GPUs; collectives go through the memory of the host");
  driver.gpus = 1;
  backend = createBackend(driver.tables(), {});
  EXPECT_EQ((*backend)->note({8, 8, true}), "8 logical ranks on 1 GPU; collectives by its kernels");
  EXPECT_EQ((*backend)->note({8, 8, false}), "8 logical ranks on 1 GPU; collectives go through the memory of the host");
}

TEST(CudaBackend, SaysHowRanksCommunicate) {
  RecordingDriver driver;
  driver.gpus = 4;
  CudaOptions options;
  options.ncclProblem = "NCCL is missing: libnccl.so.2: cannot open shared object file";
  auto noteOf = [&](const RankCount &ranks) { return (*createBackend(driver.tables(), options))->note(ranks); };
  EXPECT_EQ(noteOf({4, 4, true}), "collectives go through the memory of the host: NCCL is missing: libnccl.so.2: cannot open shared "
                                  "object file");
  EXPECT_EQ(noteOf({8, 8, true}), "8 logical ranks on 4 GPUs; collectives go through the memory of the host");
  options.collectives = Collectives::Host;
  EXPECT_EQ(noteOf({4, 4, false}), "collectives go through the memory of the host");
  options.collectives = Collectives::Nccl;
  auto none = createBackend(driver.tables(), options);
  ASSERT_FALSE(none.isOk());
  EXPECT_EQ(none.error().message, options.ncclProblem);
}

class CudaDevice : public testing::Test {
protected:
  void SetUp() override {
    auto made = createBackend(driver.tables(), {});
    ASSERT_TRUE(made.isOk());
    backend = std::move(*made);
    auto opened = backend->create({});
    ASSERT_TRUE(opened.isOk());
    device = std::move(*opened);
    auto memory = device->allocateArena(1 << 16);
    ASSERT_TRUE(memory.isOk());
    arena = *memory;
  }
  void TearDown() override {
    sequences.clear();
    operations.clear();
    device.reset();
    backend.reset();
    EXPECT_EQ(driver.violations(), std::vector<std::string>{});
    EXPECT_EQ(driver.leaks(), "");
  }

  device::Operation *keep(Result<std::unique_ptr<device::Operation>> operation) {
    EXPECT_TRUE(operation.isOk()) << (operation ? "" : operation.error().message);
    operations.push_back(std::move(*operation));
    return operations.back().get();
  }
  device::Operation *fill(int64_t offset, int64_t count, double value) {
    return keep(device->prepareFill({arena + offset, count, plan::F32, value}));
  }
  device::Operation *copy(int64_t target, int64_t source, int64_t count) {
    comm::Region whole{0, {count}, {1}};
    return keep(device->prepareCopy({arena + source, arena + target, whole, whole, 4}));
  }
  device::Sequence *sequence(std::vector<device::SequenceEntry> entries) {
    EXPECT_TRUE(device->finishPreparation().isOk());
    sequences.push_back(device->makeSequence(std::move(entries)));
    return sequences.back().get();
  }
  void run(device::Sequence *sequence, int times) {
    for (int i = 0; i < times; ++i) {
      size_t failed = 0;
      Status status = sequence->run(failed);
      ASSERT_TRUE(status.isOk()) << status.error().message;
    }
    ASSERT_TRUE(device->synchronize().isOk());
  }
  std::vector<float> values(int64_t offset, size_t count) {
    std::vector<float> result(count);
    EXPECT_TRUE(device->download(result.data(), arena + offset, count * 4).isOk());
    return result;
  }
  void put(int64_t offset, const std::vector<float> &data) {
    ASSERT_TRUE(device->upload(arena + offset, data.data(), data.size() * 4).isOk());
  }

  RecordingDriver driver;
  std::shared_ptr<device::Backend> backend;
  std::unique_ptr<device::Device> device;
  std::byte *arena = nullptr;
  std::vector<std::unique_ptr<device::Operation>> operations;
  std::vector<std::unique_ptr<device::Sequence>> sequences;
};

TEST_F(CudaDevice, TheArenaIsZero) {
  EXPECT_EQ(values(0, 100), std::vector<float>(100, 0));
}

TEST_F(CudaDevice, UploadTakesTheValuesOfTheCall) {
  std::vector<float> data{1, 2, 3};
  put(64, data);
  data = {4, 5, 6};
  put(128, data);
  EXPECT_EQ(values(64, 3), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values(128, 3), (std::vector<float>{4, 5, 6}));
}

TEST_F(CudaDevice, UploadsBeyondThePinnedMemory) {
  auto large = backend->create({});
  ASSERT_TRUE(large.isOk());
  constexpr size_t count = 11 << 20; // 44 MiB through 16
  auto memory = (*large)->allocateArena(count * 4);
  ASSERT_TRUE(memory.isOk());
  std::vector<uint32_t> data(count), back(count);
  for (size_t i = 0; i < count; ++i)
    data[i] = static_cast<uint32_t>(i * 2654435761u);
  ASSERT_TRUE((*large)->upload(*memory, data.data(), count * 4).isOk());
  ASSERT_TRUE((*large)->download(back.data(), *memory, count * 4).isOk());
  EXPECT_TRUE(data == back);
  EXPECT_GT(driver.calls("cuEventSynchronize"), 0);
}

TEST_F(CudaDevice, StreamsOfThePlanAreOrderedByItsDependencies) {
  device::Sequence *steps =
      sequence({{fill(0, 16, 3), 0, {}}, {copy(64, 0, 16), 1, {0}}, {fill(128, 16, 5), 0, {}}, {copy(192, 64, 16), 0, {1}}});
  run(steps, 3);
  EXPECT_EQ(values(192, 16), std::vector<float>(16, 3));
  EXPECT_EQ(driver.calls("cuGraphLaunch"), 2);
}

TEST_F(CudaDevice, StreamsMeetAtTheEndOfAStep) {
  // What the second stream writes is read by the first one in the next step, and by the host.
  device::Sequence *steps = sequence({{fill(0, 16, 3), 0, {}}, {fill(64, 16, 4), 1, {}}});
  run(steps, 4);
  EXPECT_EQ(values(64, 16), std::vector<float>(16, 4));
}

TEST_F(CudaDevice, AnErrorWhileCapturingNamesItsEntryAndEndsTheCapture) {
  device::Sequence *steps = sequence({{fill(0, 16, 3), 0, {}}, {copy(64, 0, 16), 0, {}}});
  run(steps, 1);
  driver.failCall("cuMemcpyDtoDAsync", 2, CUDA_ERROR_INVALID_VALUE);
  size_t failed = 0;
  Status status = steps->run(failed);
  ASSERT_FALSE(status.isOk());
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(status.error().message, "cuMemcpyDtoDAsync returned 1 (recorded)");
  EXPECT_TRUE(device->synchronize().isOk());
}

TEST_F(CudaDevice, ProductsInEveryForm) {
  std::vector<float> left, right, bias{0.5f, -100.f, 2.f, 0.25f};
  for (int i = 0; i < 2 * 3 * 5; ++i)
    left.push_back(static_cast<float>(i % 7) - 3);
  for (int i = 0; i < 2 * 5 * 4; ++i)
    right.push_back(static_cast<float>(i % 5) - 2);
  put(0, left), put(1024, right), put(2048, bias);
  for (int form = 0; form < 16; ++form) {
    bool transposeLeft = form & 1, transposeRight = form & 2, biased = form & 4, relu = form & 8;
    // The right operand repeats along the batch.
    device::MatMulSpec spec{
        .rows = 3, .columns = 4, .depth = 5, .transposeLeft = transposeLeft, .transposeRight = transposeRight};
    spec.left = arena, spec.right = arena + 1024, spec.result = arena + 4096, spec.bias = biased ? arena + 2048 : nullptr,
    spec.relu = relu;
    spec.batches = {{0, 0, 0}, {15, 0, 12}};
    run(sequence({{keep(device->prepareMatMul(spec)), 0, {}}}), 1);
    std::vector<float> expected;
    for (int batch = 0; batch < 2; ++batch)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) {
          float sum = biased ? bias[static_cast<size_t>(j)] : 0;
          for (int k = 0; k < 5; ++k)
            sum += left[static_cast<size_t>(batch * 15 + (transposeLeft ? k * 3 + i : i * 5 + k))] *
                   right[static_cast<size_t>(transposeRight ? j * 5 + k : k * 4 + j)];
          expected.push_back(relu ? std::max(sum, 0.f) : sum);
        }
    EXPECT_EQ(values(4096, 24), expected) << "form " << form;
  }
  EXPECT_EQ(driver.calls("cublasLtMatmul"), 16); // one per form: equal distances are one call
}

/// Numbers that the type holds, products that it does not: sums come out as f32, or rounded once.
template <typename Narrow> std::vector<uint16_t> narrowed(const std::vector<float> &data) {
  std::vector<uint16_t> bits;
  for (float value : data)
    bits.push_back(std::bit_cast<uint16_t>(static_cast<Narrow>(value)));
  return bits;
}

TEST_F(CudaDevice, NarrowProductsAddInF32) {
  std::vector<float> left, right;
  for (int i = 0; i < 2 * 3 * 5; ++i)
    left.push_back(static_cast<float>(i % 7) / 16 - 3);
  for (int i = 0; i < 5 * 4; ++i)
    right.push_back(static_cast<float>(i % 5) / 32 - 2);
  std::vector<float> expected;
  for (int row = 0; row < 6; ++row)
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 5; ++k)
        sum += left[static_cast<size_t>(row * 5 + k)] * right[static_cast<size_t>(k * 4 + j)];
      expected.push_back(sum);
    }
  for (plan::DataType type : {plan::BF16, plan::F16}) {
    auto bitsOf = type == plan::BF16 ? narrowed<Bfloat16> : narrowed<_Float16>;
    for (const auto &[offset, data] : {std::pair(2, left), std::pair(1026, right)}) {
      std::vector<uint16_t> bits = bitsOf(data);
      ASSERT_TRUE(device->upload(arena + offset, bits.data(), bits.size() * 2).isOk());
    }
    device::MatMulSpec spec{.rows = 3, .columns = 4, .depth = 5, .operands = type};
    spec.left = arena + 2, spec.right = arena + 1026, spec.result = arena + 4096;
    spec.batches = {{0, 0, 0}, {15, 0, 12}};
    run(sequence({{keep(device->prepareMatMul(spec)), 0, {}}}), 1);
    EXPECT_EQ(values(4096, 24), expected);
    spec.type = type, spec.result = arena + 4098;
    run(sequence({{keep(device->prepareMatMul(spec)), 0, {}}}), 1);
    std::vector<uint16_t> got(24);
    ASSERT_TRUE(device->download(got.data(), arena + 4098, 48).isOk());
    EXPECT_EQ(got, bitsOf(expected));
    spec.depth = 0;
    run(sequence({{keep(device->prepareMatMul(spec)), 0, {}}}), 1);
    ASSERT_TRUE(device->download(got.data(), arena + 4098, 48).isOk());
    EXPECT_EQ(got, std::vector<uint16_t>(24, 0));
  }
}

TEST_F(CudaDevice, BatchesAtUnequalDistancesAreSeveralProducts) {
  put(0, {1, 2, 3, 4}), put(1024, {10, 20, 30, 40});
  device::MatMulSpec spec{.rows = 1, .columns = 1, .depth = 1};
  spec.left = arena, spec.right = arena + 1024, spec.result = arena + 2048;
  spec.batches = {{0, 0, 0}, {1, 0, 1}, {2, 1, 2}, {3, 1, 3}};
  run(sequence({{keep(device->prepareMatMul(spec)), 0, {}}}), 1);
  EXPECT_EQ(values(2048, 4), (std::vector<float>{10, 20, 60, 80}));
}

TEST_F(CudaDevice, SumsOfNothingAreZero) {
  put(64, {1, 2});
  device::MatMulSpec spec{.rows = 1, .columns = 2, .depth = 0};
  spec.left = spec.right = arena, spec.result = arena + 64;
  spec.batches = {{0, 0, 0}};
  run(sequence({{keep(device->prepareMatMul(spec)), 0, {}}}), 1);
  EXPECT_EQ(values(64, 2), (std::vector<float>{0, 0}));
}

TEST_F(CudaDevice, RefusesWhatItLacks) {
  device::LaunchSpec launch{.symbol = "k_relu", .arguments = {arena}};
  auto made = device->prepareLaunch(launch);
  ASSERT_FALSE(made.isOk());
  EXPECT_EQ(made.error().message, "the plan holds no GPU code for kernel 'k_relu'");
  EXPECT_EQ(made.error().help, "compile the network again with --device-target auto");
  // A product with its bias, that cuBLASLt has nothing for.
  device::MatMulSpec product{.rows = 3, .columns = 4, .depth = 5};
  product.left = arena, product.right = arena + 1024, product.bias = arena + 2048, product.result = arena + 4096, product.batches = {{0, 0, 0}};
  driver.failCall("cublasLtMatmulAlgoGetHeuristic", 1, CUDA_ERROR_NOT_SUPPORTED);
  made = device->prepareMatMul(product);
  ASSERT_FALSE(made.isOk());
  EXPECT_EQ(made.error().message, "cuBLASLt cannot multiply 3x5 by 5x4: CUBLAS_STATUS");
  EXPECT_EQ(made.error().help, "compile the network again with --no-fusion: kernels of their own add the bias then");
}

TEST(CudaScratch, IsZeroAtFirstAndOfOneLaunch) {
  RecordingDriver driver;
  std::vector<std::vector<uint64_t>> calls;
  RecordedModule module;
  module.entries = {"g_sum"};
  module.argumentCount = [](const std::string &) { return 3; };
  module.accesses = [](const KernelCall &call) { return std::vector<Access>{{call.arguments[1], call.arguments[1] + 48, true}}; };
  module.run = [&](const KernelCall &call) -> std::string {
    auto *scratch = reinterpret_cast<int64_t *>(call.arguments[1]);
    int64_t runs = 0;
    for (const auto &earlier : calls)
      runs += earlier[1] == call.arguments[1];
    for (int i = 0; i < 6; ++i)
      if (scratch[i]++ != runs)
        return "the scratch holds what this launch did not write";
    calls.push_back(call.arguments);
    return "";
  };
  driver.addModule([](const std::string &text) { return text == "sums"; }, module);
  auto backend = createBackend(driver.tables(), {.ptx = "sums"});
  ASSERT_TRUE(backend.isOk());
  auto device = (*backend)->create({});
  ASSERT_TRUE(device.isOk());
  auto arena = (*device)->allocateArena(64);
  ASSERT_TRUE(arena.isOk());
  device::LaunchSpec launch{.symbol = "k", .arguments = {*arena}, .end = 2, .entry = "g_sum", .block = 32, .blocks = 2, .scratch = 48};
  auto first = (*device)->prepareLaunch(launch), second = (*device)->prepareLaunch(launch);
  ASSERT_TRUE(first.isOk() && second.isOk());
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE((*first)->run().isOk() && (*second)->run().isOk() && (*device)->synchronize().isOk());
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0], calls[2]);
  EXPECT_EQ(calls[1], calls[3]);
  EXPECT_NE(calls[0][1], calls[1][1]);
  EXPECT_EQ(calls[0][0], reinterpret_cast<uint64_t>(*arena));
  EXPECT_EQ(calls[0][2], 2u);
}

TEST_F(CudaDevice, MemoryThatIsNotThere) {
  auto other = backend->create({});
  ASSERT_TRUE(other.isOk());
  auto memory = (*other)->allocateArena(uint64_t{3} << 30);
  ASSERT_FALSE(memory.isOk());
  EXPECT_EQ(memory.error().message, "the arena takes 3.00 GiB, but 1.00 of 1.00 GiB are free on GPU 0 (recording)");
  EXPECT_EQ(memory.error().help, "use more devices");
}

TEST(CudaPtx, ARefusedTextGivesTheFirstLineOfTheLog) {
  RecordingDriver driver;
  auto backend = createBackend(driver.tables(), {.ptx = "nonsense"});
  ASSERT_TRUE(backend.isOk());
  auto device = (*backend)->create({});
  ASSERT_TRUE(device.isOk());
  device::LaunchSpec launch{.symbol = "k", .entry = "g_k", .block = 32, .blocks = 1};
  auto made = (*device)->prepareLaunch(launch);
  ASSERT_FALSE(made.isOk());
  EXPECT_EQ(made.error().message,
            "cuModuleLoadDataEx returned CUDA_ERROR_INVALID_PTX (recorded): ptxas application ptx input, line 1; "
            "fatal   : Missing .version directive");
  EXPECT_EQ(made.error().help, "install a newer driver, or run on CPUs with --device cpu");
}

} // namespace
