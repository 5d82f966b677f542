// Convolutions through cuDNN, which is recorded: results as on CPUs in every direction, with uneven padding and windows of
// images that are cut, which engines may compute, and what happens without it. Nothing here runs on a GPU.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cuda/CudnnPlan.h"
#include "runtime/plan/calls/Convolution.h"
#include "runtime/plan/calls/Window.h"
#include "test/e2e/CudaTraining.h"

#include <cmath>
#include <cstring>
#include <map>
#include <regex>

using namespace msc;
using namespace msc::e2e;

namespace {

using Ints = std::vector<int64_t>;

/// A convolution of which this rank has `rows` of the result, or of y where that is the weights.
struct Geometry {
  Ints x, w; ///< whole sizes
  Ints stride = {1}, dilation = {1}, pad = {0};
  int64_t group = 1;
  Range rows = {}; ///< empty: all, and images are not cut
};

int64_t countOf(const CallTensor &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.localShape())
    count *= size;
  return count;
}

/// Tensors of a call in one piece of memory, behind each other.
struct Tensors {
  CallTensor x, w, y;
  CallAttributes attributes;
  size_t bytes = 0;

  Tensors(const Geometry &g, ConvolutionResult result, plan::DataType type) {
    WindowAttributes windows{
        .kernel = {g.w[2], g.w[3]}, .stride = g.stride, .dilation = g.dilation, .padMode = "pad", .pad = g.pad};
    std::string why;
    Window over = (*windowsOver(windows, g.x[2], g.x[3], why))[0], across = (*windowsOver(windows, g.x[2], g.x[3], why))[1];
    attributes.set("stride", g.stride);
    attributes.set("dilation", g.dilation);
    attributes.set("pad", g.pad);
    attributes.set("group", {g.group});
    attributes.setText("pad_mode", "pad");
    x = whole(type, g.x), w = whole(type, g.w), y = whole(type, {g.x[0], g.w[0], over.output, across.output});
    if (g.rows.size() > 0) {
      bool isInput = result == ConvolutionResult::Input;
      (isInput ? x : y).box[2] = g.rows;
      CallTensor &other = isInput ? y : x;
      int64_t held = (isInput ? over.over(g.rows) : over.under(g.rows)).size() + 1; // one that nobody reads
      other.windowed = {0, 0, other.shape[2], 0};
      other.shape[2] = 3 * held;
      other.box[2] = {held, 2 * held};
    }
    for (CallTensor *tensor : {&x, &w, &y}) {
      tensor->data = reinterpret_cast<std::byte *>(bytes);
      bytes += static_cast<size_t>(countOf(*tensor)) * elementBytes(type);
    }
  }

  CallSpec spec(ConvolutionResult result, std::byte *base) const {
    auto placed = [&](CallTensor tensor) {
      tensor.data = base + reinterpret_cast<size_t>(tensor.data);
      return tensor;
    };
    CallTensor a = placed(x), b = placed(w), c = placed(y);
    switch (result) {
    case ConvolutionResult::Output: return {"Conv2D", {a, b}, {c}, attributes, 1};
    case ConvolutionResult::Input: return {"Conv2DBackpropInput", {c, b}, {a}, attributes, 1};
    default: return {"Conv2DBackpropFilter", {c, a}, {b}, attributes, 1};
    }
  }

private:
  static CallTensor whole(plan::DataType type, const Ints &sizes) {
    CallTensor tensor{type, sizes, {}, nullptr};
    for (int64_t size : sizes)
      tensor.box.push_back({0, size});
    return tensor;
  }
};

class CudaConvolution : public CudaTraining {
protected:
  static constexpr ConvolutionResult directions[] = {ConvolutionResult::Output, ConvolutionResult::Input,
                                                     ConvolutionResult::Filter};

  /// Runs the call on a CPU and, three times, on a recorded GPU; the results have to be near.
  void compareCall(test::RecordingDriver &driver, const Geometry &geometry, ConvolutionResult result, plan::DataType type,
                   device::CudaOptions options = {}) {
    device::calls::withFloat(type, [&]<typename Element>(Element) {
      Tensors tensors(geometry, result, type);
      std::vector<Element> values(tensors.bytes / sizeof(Element));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<Element>(static_cast<float>(static_cast<int>(i * 7919 % 41) - 20) / 16);
      auto got = onGpu(driver, tensors, result, values, options), expected = onCpu(tensors, result, values);
      ASSERT_EQ(got.size(), expected.size());
      double tolerance = sizeof(Element) == 2 ? 1e-2 : 1e-5;
      for (size_t i = 0; i < got.size(); ++i) {
        auto a = static_cast<double>(static_cast<ComputeType<Element>>(got[i]));
        auto b = static_cast<double>(static_cast<ComputeType<Element>>(expected[i]));
        ASSERT_NEAR(a, b, tolerance * (1 + std::fabs(b))) << "element " << i << " of " << got.size();
      }
    });
  }

  std::string note; ///< of the last device

private:
  template <typename Element> using ComputeType = device::calls::ComputeType<Element>;

  template <typename Element>
  std::vector<Element> onCpu(const Tensors &tensors, ConvolutionResult result, std::vector<Element> values) {
    auto cpu = device::createCpuDevice(*device::KernelLibrary::load(plan::Plan()), {1, {}});
    auto operation = cpu->prepareCall(tensors.spec(result, reinterpret_cast<std::byte *>(values.data())));
    EXPECT_TRUE(operation.isOk()) << (operation ? "" : operation.error().message);
    EXPECT_TRUE(cpu->finishPreparation().isOk() && (*operation)->run().isOk());
    return values;
  }

  template <typename Element>
  std::vector<Element> onGpu(test::RecordingDriver &driver, const Tensors &tensors, ConvolutionResult result,
                             std::vector<Element> values, const device::CudaOptions &options) {
    Bytes bytes(tensors.bytes);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    auto prepare = [&](device::Device &device, std::byte *arena) { return device.prepareCall(tensors.spec(result, arena)); };
    bytes = runOperation(driver, std::move(bytes), prepare, 3, options, &note);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

const std::vector<Geometry> geometries{
    {{2, 4, 9, 8}, {6, 4, 3, 3}, {1}, {1}, {1}},
    {{1, 3, 8, 10}, {4, 3, 3, 3}, {2}, {1}, {1}},                   // the last row and column of padding are not reached
    {{2, 4, 9, 11}, {6, 2, 3, 2}, {2, 1}, {1, 2}, {1, 1, 1, 1}, 2}, // groups
    {{2, 4, 9, 8}, {4, 1, 3, 3}, {1}, {1}, {1}, 4},                 // one channel each
    {{2, 3, 11, 8}, {4, 3, 1, 1}, {3}, {1}, {0}},                   // inputs between windows and behind the last one
    {{2, 3, 13, 11}, {4, 3, 3, 2}, {2, 3}, {2, 1}, {2, 0, 0, 3}},   // uneven padding
    {{1, 2, 12, 7}, {3, 2, 3, 3}, {1}, {1}, {1}, 1, {0, 5}},        // the first, a middle, and the last rank
    {{2, 2, 12, 7}, {3, 2, 3, 3}, {1}, {1}, {1}, 1, {4, 8}},
    {{1, 2, 12, 7}, {3, 2, 3, 3}, {1}, {1}, {1}, 1, {8, 12}},
    {{2, 2, 13, 7}, {3, 2, 3, 3}, {2}, {1}, {1}, 1, {3, 6}},
    {{2, 2, 13, 9}, {3, 2, 1, 1}, {3}, {1}, {0}, 1, {1, 4}},
    {{2, 4, 14, 9}, {4, 2, 5, 3}, {2, 1}, {1, 2}, {3, 1, 0, 2}, 2, {2, 6}}};

constexpr size_t uneven = 5;

// Of the usual engine, or copied into what it takes; or as they are, by one that takes all.
TEST_F(CudaConvolution, AsOnCpus) {
  for (bool takesAll : {false, true})
    for (size_t i = 0; i < geometries.size(); ++i)
      for (ConvolutionResult result : directions) {
        SCOPED_TRACE(fmt::format("geometry {}, result {}, takes all: {}", i, static_cast<int>(result), takesAll));
        test::RecordingDriver driver;
        driver.hasCudnn = true, driver.cudnnTakesAll = takesAll;
        compareCall(driver, geometries[i], result, plan::F32);
        EXPECT_EQ(note, "convolutions by cuDNN 9.13.0");
        EXPECT_EQ(driver.calls("cudnnBackendExecute"), 2); // waited for, and captured
        if (i < uneven)                                    // what every engine takes is not copied
          EXPECT_EQ(driver.calls("cuLaunchKernel"), 0);
        if (i == uneven)
          EXPECT_EQ(driver.calls("convolutions by engine 7"), takesAll ? 2 : 0);
      }
}

// Channels of f16 and bf16 become neighbours where planes begin anywhere, where channels are few, and where most inputs are skipped.
TEST_F(CudaConvolution, ChannelsAreTurned) {
  struct Case {
    Geometry geometry;
    std::array<int, 3> launches; ///< for the output, the gradient of the input, that of the weights
  };
  for (const Case &one : {Case{{{3, 16, 7, 7}, {24, 16, 3, 3}, {1}, {1}, {1}}, {3, 3, 3}},
                          Case{{{2, 72, 9, 7}, {136, 72, 1, 1}, {1}, {1}, {0}}, {2, 2, 2}}, // weights as they are
                          Case{{{2, 3, 24, 30}, {16, 3, 7, 7}, {2}, {1}, {3}}, {3, 3, 3}},  // few channels
                          Case{{{2, 8, 24, 32}, {8, 8, 1, 1}, {2}, {1}, {0}}, {2, 2, 2}},   // skips
                          Case{{{2, 70, 21, 19}, {64, 70, 3, 2}, {1}, {1}, {1}}, {3, 3, 3}}, // large planes
                          Case{{{2, 8, 2, 257}, {64, 8, 1, 9}, {1}, {1}, {0}}, {3, 3, 3}},   // planes as wide as a tile's lines are apart
                          Case{{{2, 8, 8, 8}, {8, 8, 3, 3}, {1}, {1}, {1}}, {0, 0, 0}},
                          Case{{{2, 8, 7, 7}, {12, 8, 3, 3}, {1}, {1}, {1}}, {0, 0, 0}},
                          Case{{{2, 16, 7, 7}, {16, 8, 3, 3}, {1}, {1}, {1}, 2}, {0, 0, 0}}})
    for (ConvolutionResult result : directions)
      for (plan::DataType type : {plan::BF16, plan::F16, plan::F32}) {
        SCOPED_TRACE(fmt::format("{} by {}, result {}, type {}", fmt::join(one.geometry.x, ","), fmt::join(one.geometry.w, ","),
                                 static_cast<int>(result), static_cast<int>(type)));
        test::RecordingDriver driver;
        driver.hasCudnn = true;
        compareCall(driver, one.geometry, result, type, {.turnFrom = 0});
        EXPECT_EQ(driver.calls("cudnnBackendExecute"), 2);
        EXPECT_EQ(driver.calls("cuLaunchKernel"), type == plan::F32 ? 0 : 2 * one.launches[static_cast<size_t>(result)]);
      }
}

TEST_F(CudaConvolution, EnginesKeepToWhatIsAsked) {
  auto engineOf = [&](plan::DataType type, bool tensorFloat, bool proposes = true) {
    test::RecordingDriver driver;
    driver.hasCudnn = true, driver.cudnnProposes = proposes;
    compareCall(driver, geometries[0], ConvolutionResult::Output, type, {.tensorFloat = tensorFloat});
    for (int engine = 0; engine < 8; ++engine)
      if (driver.calls(fmt::format("convolutions by engine {}", engine)) > 0)
        return engine;
    return -1;
  };
  EXPECT_EQ(engineOf(plan::F32, false), 3); // not that of tensor cores
  EXPECT_EQ(engineOf(plan::F32, true), 0);
  EXPECT_EQ(engineOf(plan::F32, false, false), 3);
  EXPECT_EQ(engineOf(plan::F16, false), 0);
  EXPECT_EQ(engineOf(plan::BF16, false), 0);
  EXPECT_EQ(engineOf(plan::F64, false), -1);
}

// Measured once; then the file says which engine, whatever that may be.
TEST_F(CudaConvolution, TheFastestEngineIsKept) {
  const std::string path = (folder / "ways.txt").string();
  auto engineOf = [&](int &executions) {
    test::RecordingDriver driver;
    driver.hasCudnn = driver.cudnnTakesAll = true;
    compareCall(driver, geometries[0], ConvolutionResult::Output, plan::F32, {.tuning = path});
    executions = driver.calls("cudnnBackendExecute");
    for (int engine = 0; engine < 8; ++engine)
      if (driver.calls(fmt::format("convolutions by engine {}", engine)) == 2)
        return engine;
    return -1;
  };
  // Where nothing may be measured, heuristics choose, and the file stays as it is.
  {
    test::RecordingDriver driver;
    driver.hasCudnn = driver.cudnnTakesAll = true;
    compareCall(driver, geometries[0], ConvolutionResult::Output, plan::F32, {.tuning = path, .deterministic = true});
    EXPECT_EQ(driver.calls("cudnnBackendExecute"), 2);
  }
  EXPECT_EQ(note, "convolutions by cuDNN 9.13.0; the file of --tune lacks 1, of 1 convolutions and products, and none is measured here: one process without "
                  "--deterministic does that");
  EXPECT_TRUE(linesOf(path).empty());
  int executions = 0;
  engineOf(executions);
  EXPECT_EQ(executions, 2 + 2 * 4); // engines 3 and 7
  std::vector<std::string> lines = linesOf(path);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(std::regex_match(lines[0], std::regex("[01] .*cuDNN 9.13.0: output of type .* x 2,4,9,8 .*"))) << lines[0];
  for (int way : {0, 1}) {
    std::ofstream(path) << way << lines[0].substr(1) << "\n";
    EXPECT_EQ(engineOf(executions), way == 0 ? 3 : 7);
    EXPECT_EQ(executions, 2);
  }
  std::ofstream(path) << "no such line\n";
  test::RecordingDriver driver;
  auto refused = device::cuda::createBackend(driver.tables(), {.tuning = path});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("ways.txt:1: no line of a file that --tune wrote"), std::string::npos) << refused.error().message;
}

TEST_F(CudaConvolution, OtherwiseByKernels) {
  auto noteOf = [&](auto change) {
    test::RecordingDriver driver;
    driver.hasCudnn = true;
    change(driver);
    compareCall(driver, geometries[0], ConvolutionResult::Output, plan::F32);
    EXPECT_EQ(driver.calls("cudnnBackendExecute"), 0);
    return note;
  };
  std::string slow = "convolutions by plain kernels, which are slow; cuDNN 9 would be fast: ";
  EXPECT_EQ(noteOf([](auto &driver) { driver.hasCudnn = false; }), slow + "libcudnn.so.9 is not recorded");
  EXPECT_EQ(noteOf([](auto &driver) { driver.failCall("cudnnCreate", 1, CUDA_ERROR_UNKNOWN); }),
            slow + "cudnnCreate returned 5000 (CUDNN_STATUS)");
  EXPECT_EQ(noteOf([](auto &driver) { driver.failCall("cudnnBackendFinalize", 5, CUDA_ERROR_UNKNOWN); }),
            "convolutions by plain kernels, which are slow");
}

TEST_F(CudaConvolution, ImagesTrain) {
  const std::string text = R"(network images(%x: f32[2, 4, 13, 11], %t: f32[2, 6]) {
  param %w: f32[8, 2, 3, 2] = Normal(0.5)
  param %v: f32[6, 8, 3, 3] = Normal(0.3)
  param %u: f32[6, 6, 3, 3] = Normal(0.3)
  %a = Conv2D(%x, %w) {group: 2, stride: (2, 1), dilation: (1, 2), pad_mode: "pad", pad: (2, 1, 0, 3)}
  %b = Conv2D(%a, %v) {pad_mode: "same"}
  %c = Conv2D(%b, %u) {pad_mode: "same"}
  %d = AdaptiveAvgPool2D(%c, (1, 1))
  %y = Reshape(%d, (2, 6))
  %loss = MSELoss(%y, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 3}
train {optimizer: Momentum(learning_rate: 0.1, momentum: 0.5), minimize: loss, epochs: 1}
)";
  for (int64_t devices : {1, 2}) {
    Compiled compiled = compileText(text, devices);
    PlanIndex index(compiled.plan);
    Outcome cpu = run(index, nullptr);
    test::RecordingDriver driver;
    driver.hasCudnn = true;
    testing::internal::CaptureStderr();
    Outcome cuda = run(index, open(driver, index, compiled));
    EXPECT_NE(testing::internal::GetCapturedStderr().find("note: convolutions by cuDNN 9.13.0\n"), std::string::npos);
    ASSERT_FALSE(cuda.failure) << cuda.failure->message;
    ASSERT_EQ(cuda.losses.size(), 3u);
    expectNear(cuda.losses, cpu.losses);
    expectClean(driver);
    EXPECT_GT(driver.calls("cudnnBackendExecute"), 0);
  }
}

/// How many convolutions and poolings of a plan read that type.
std::map<std::string, int> callsByType(const PlanIndex &index) {
  std::map<std::string, int> counts;
  for (const plan::Step &step : index.plan().programs(0).variants(0).steps())
    if (step.has_call() && slidesWindows(step.call().kernel()))
      ++counts[dataTypeName(index.buffer(step.call().operands(0)).dtype())];
  return counts;
}

// Plans for GPUs alone convolve and pool bf16 and f16 as they are, those for both convolve bf16: the losses of CPUs, which cast the rest to f32,
// but for the order of sums. Gradients of weights that are summed over devices stay in f32.
TEST_F(CudaConvolution, NarrowImagesTrain) {
  const std::string text = R"(network images(%x: f32[2, 4, 9, 7], %t: f32[2, 3]) {
  param %w: f32[4, 2, 3, 2] = Normal(0.5)
  param %v: f32[3, 4, 3, 3] = Normal(0.3)
  param %u: f32[3, 3, 3, 3] = Normal(0.3)
  param %scale: f32[3] = Ones()
  param %bias: f32[3] = Zeros()
  param %mean: f32[3] = Zeros()
  param %variance: f32[3] = Ones()
  %a = Conv2D(%x, %w) {group: 2, stride: (2, 1), dilation: (1, 2), pad_mode: "pad", pad: (2, 1, 0, 3)}
  %m = MaxPool(%a) {kernel_size: 3, strides: 2, pad_mode: "same"}
  %b = Conv2D(%m, %v) {pad_mode: "same", in_strategy: ROWS}
  %n, %means, %variances = BatchNorm(%b, %scale, %bias, %mean, %variance)
  %r = ReLU(%n)
  %c = Conv2D(%r, %u) {pad_mode: "same"}
  %s = Add(%c, %r)
  %p = AvgPool(%s) {kernel_size: 2, strides: 1}
  %d = AdaptiveAvgPool2D(%p, (1, 1))
  %y = Reshape(%d, (2, 3))
  %loss = MSELoss(%y, %t)
  return loss: %loss
}
dataset {source: Random(seed: 5), columns: {x: normal, t: normal}, steps: 3}
train {optimizer: Momentum(learning_rate: 0.1, momentum: 0.5), minimize: loss, epochs: 1, amp_level: O2, amp_dtype: TYPE}
context {parallel_mode: semi_auto_parallel}
)";
  using Counts = std::map<std::string, int>;
  for (auto [type, place] : {std::pair("bf16", 1.0 / 256), std::pair("f16", 1.0 / 2048)})
    for (int64_t devices : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} on {}", type, devices));
      const std::string own = std::regex_replace(
          std::regex_replace(text, std::regex("TYPE"), type), std::regex("ROWS"), fmt::format("((1, 1, {}, 1), (1, 1, 1, 1))", devices));
      target = "auto";
      Compiled wide = compileText(own, devices);
      target = "cuda";
      Compiled narrow = compileText(own, devices);
      PlanIndex onCpu(wide.plan), onGpu(narrow.plan);
      const int narrowOnes = type != std::string("bf16") ? 0 : devices == 1 ? 8 : 5; // convolutions
      EXPECT_EQ(callsByType(onCpu), narrowOnes == 0 ? (Counts{{"f32", 14}}) : (Counts{{type, narrowOnes}, {"f32", 14 - narrowOnes}}));
      EXPECT_EQ(callsByType(onGpu), devices == 1 ? (Counts{{type, 14}}) : (Counts{{type, 11}, {"f32", 3}}));
      Outcome cpu = run(onCpu, nullptr);
      ASSERT_FALSE(cpu.failure) << cpu.failure->message;
      ASSERT_EQ(cpu.losses.size(), 3u);
      for (bool hasCudnn : {false, true})
        for (bool isForBoth : {false, true}) {
          test::RecordingDriver driver;
          driver.hasCudnn = hasCudnn;
          Outcome cuda = isForBoth ? run(onCpu, open(driver, onCpu, wide)) : run(onGpu, open(driver, onGpu, narrow));
          ASSERT_FALSE(cuda.failure) << cuda.failure->message;
          expectNear(cuda.losses, cpu.losses, 4 * place);
          expectClean(driver);
          EXPECT_EQ(driver.calls("cudnnBackendExecute") > 0, hasCudnn);
        }
    }
}

TEST_F(CudaConvolution, AFailureIsTold) {
  Compiled compiled = compileText(R"(network fails(%x: f32[2, 4, 9, 9]) {
  param %w: f32[8, 4, 3, 3] = Normal(0.5)
  %y = Conv2D(%x, %w)
  return out: %y
}
dataset {source: Random(seed: 5), columns: {x: normal}, steps: 2}
)",
                                  1);
  PlanIndex index(compiled.plan);
  test::RecordingDriver driver;
  driver.hasCudnn = true;
  std::shared_ptr<device::Backend> backend = open(driver, index, compiled);
  driver.failCall("cudnnBackendExecute", 1, CUDA_ERROR_UNKNOWN);
  Outcome cuda = run(index, std::move(backend));
  ASSERT_TRUE(cuda.failure);
  EXPECT_NE(cuda.failure->message.find("cudnnBackendExecute returned 5000 (CUDNN_STATUS)"), std::string::npos)
      << cuda.failure->message;
  expectClean(driver);
}

} // namespace
