// Trains networks on CPUs and through the CUDA backend on the recording driver, with emulated kernels.
#pragma once

#include "compiler/Compiler.h"
#include "runtime/device/cuda/CudaBackend.h"
#include "runtime/executor/Run.h"
#include "test/e2e/EmulatedKernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>

namespace msc::e2e {

struct Compiled {
  plan::Plan plan;
  std::string gpuIr; ///< of its kernels
};

struct Outcome {
  std::vector<double> losses;
  std::string printed;
  std::optional<Error> failure;
};

class CudaTraining : public testing::Test {
protected:
  CudaTraining() {
    std::string pattern = (std::filesystem::temp_directory_path() / "msc-cuda-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~CudaTraining() override { std::filesystem::remove_all(folder); }

  Compiled compileFile(const std::string &path, int64_t devices, const compiler::KeyValues &defines = {}) {
    Compiled result;
    compiler::CompileOptions options;
    options.input = path;
    options.devices = devices;
    options.defines = defines;
    options.machine = machine;
    if (target != "auto")
      options.context = {{"device_target", target}};
    options.onGpuIr = [&](const std::string &text) { result.gpuIr = text; };
    Result<compiler::CompileOutcome> outcome = compiler::compile(options);
    EXPECT_TRUE(outcome.isOk()) << path << ": " << (outcome ? "" : outcome.error().message);
    if (outcome)
      result.plan = outcome->plan;
    return result;
  }
  Compiled compileText(const std::string &text, int64_t devices) {
    std::string path = folder / "net.mir";
    std::ofstream(path) << text;
    return compileFile(path, devices);
  }
  /// An example beside the layer library; `precision` goes into its train block.
  Compiled compileExample(const std::string &name, int64_t devices, const compiler::KeyValues &defines, const std::string &precision = "") {
    std::filesystem::path source = MSC_SOURCE;
    std::filesystem::create_directories(folder / "examples" / name);
    auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(source / "examples" / name / "net.mir", folder / "examples" / name / "net.mir", over);
    std::filesystem::copy_file(source / "frontend/nn.mir", folder / "examples" / "nn.mir", over);
    std::filesystem::copy_file(source / "frontend/nn.mir", folder / "examples" / name / "nn.mir", over);
    const std::filesystem::path network = folder / "examples" / name / "net.mir";
    std::ifstream file(network);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    file.close();
    if (size_t at = text.find("train {"); at != std::string::npos)
      std::ofstream(network) << text.insert(at + 7, precision);
    return compileFile(network, devices, defines);
  }
  static std::string example(const std::string &name) { return fmt::format("{}/examples/{}/net.mir", MSC_SOURCE, name); }

  Outcome run(const PlanIndex &index, std::shared_ptr<device::Backend> backend, RunOptions options = {}) {
    SharedRun shared;
    shared.index = &index;
    shared.options = options;
    shared.options.report = folder / "report.json";
    shared.options.checkpoint.off = options.checkpoint.directory.empty();
    shared.backend = std::move(backend);
    if (!shared.backend)
      shared.kernels = *device::KernelLibrary::load(index.plan());
    Outcome result;
    testing::internal::CaptureStdout();
    (void)runThreads(shared, std::chrono::seconds(120), [&](const Error &error) { result.failure = error; }).isOk();
    result.printed = testing::internal::GetCapturedStdout();
    std::ifstream file(shared.options.report);
    nlohmann::json report = file && !result.failure ? nlohmann::json::parse(file) : nlohmann::json();
    if (!report.is_null())
      for (const auto &step : report["steps"])
        result.losses.push_back(step["loss"].is_number() ? step["loss"].get<double>() : std::nan(""));
    std::filesystem::remove(shared.options.report);
    return result;
  }

  /// The backend on the driver, with what `compiled` needs.
  std::shared_ptr<device::Backend> open(test::RecordingDriver &driver, const PlanIndex &index, const Compiled &compiled,
                                        device::CudaOptions options = {}) {
    e2e::addPlanKernels(driver, launchesOf(index), compiled.gpuIr);
    e2e::addRuntimeKernels(driver, MSC_KERNELS_IR);
    for (const plan::CodeObject &object : index.plan().objects())
      if (object.isa() == "nvptx64")
        options.ptx = object.code();
    auto backend = device::cuda::createBackend(driver.tables(), options);
    EXPECT_TRUE(backend.isOk());
    return std::move(*backend);
  }

  using Bytes = std::vector<std::byte>;
  using Prepare = std::function<Result<std::unique_ptr<device::Operation>>(device::Device &device, std::byte *arena)>;
  /// What an operation makes of the bytes of an arena; the second and later runs are of a graph. `note`: of the device.
  static Bytes runOperation(test::RecordingDriver &driver, Bytes bytes, const Prepare &prepare, int runs,
                            const device::CudaOptions &options = {}, std::string *note = nullptr) {
    addRuntimeKernels(driver, MSC_KERNELS_IR);
    std::shared_ptr<device::Backend> backend = std::move(*device::cuda::createBackend(driver.tables(), options));
    auto device = std::move(*backend->create({}));
    std::byte *arena = *device->allocateArena(bytes.size());
    auto operation = prepare(*device, arena);
    EXPECT_TRUE(operation.isOk()) << (operation ? "" : operation.error().message);
    if (!operation)
      return bytes;
    EXPECT_TRUE(device->finishPreparation().isOk());
    if (note)
      *note = device->note();
    {
      auto sequence = device->makeSequence({{operation->get(), 0, {}}});
      for (int run = 0; run < runs; ++run) {
        EXPECT_TRUE(device->upload(arena, bytes.data(), bytes.size()).isOk());
        size_t failed = 0;
        Status status = sequence->run(failed);
        EXPECT_TRUE(status.isOk()) << (status ? "" : status.error().message);
      }
      EXPECT_TRUE(device->synchronize().isOk());
      EXPECT_TRUE(device->download(bytes.data(), arena, bytes.size()).isOk());
    }
    operation->reset();
    device.reset();
    backend.reset();
    expectClean(driver);
    return bytes;
  }

  static std::vector<std::string> linesOf(const std::string &path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
    return lines;
  }
  static void expectClean(const test::RecordingDriver &driver) {
    EXPECT_EQ(driver.violations(), std::vector<std::string>{});
    EXPECT_EQ(driver.leaks(), "");
  }
  static void expectNear(const std::vector<double> &got, const std::vector<double> &expected, double relative = 1e-4) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      if (!std::isnan(got[i]) || !std::isnan(expected[i])) // what is not trained has no loss
        EXPECT_NEAR(got[i], expected[i], relative * std::abs(expected[i])) << "step " << i;
  }

  /// Trains on CPUs and through the CUDA backend.
  void compare(const Compiled &compiled, std::optional<uint64_t> steps = {}) {
    PlanIndex index(compiled.plan);
    RunOptions options;
    options.steps = steps;
    Outcome cpu = run(index, nullptr, options);
    ASSERT_FALSE(cpu.failure) << cpu.failure->message;
    test::RecordingDriver driver;
    driver.hasCudnn = hasCudnn;
    Outcome cuda = run(index, open(driver, index, compiled), options);
    ASSERT_FALSE(cuda.failure) << cuda.failure->message;
    ASSERT_FALSE(cpu.losses.empty());
    expectNear(cuda.losses, cpu.losses);
    expectClean(driver);
    fmt::print("  {} steps, {} kernels and products, {} graphs launched\n", cuda.losses.size(), driver.ran(),
               driver.calls("cuGraphLaunch"));
  }
  /// A text whose TYPE is f32 or f64, on one device and on two.
  void compareTypes(const std::string &text) {
    for (const char *type : {"f32", "f64"})
      for (int64_t devices : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} on {}", type, devices));
        compare(compileText(std::regex_replace(text, std::regex("TYPE"), type), devices));
      }
  }

  std::filesystem::path folder;
  std::string machine = "cpu-local", target = "auto"; ///< that networks are compiled for
  bool hasCudnn = false; ///< where they are compared
};

inline const compiler::KeyValues smallGpt{{"wide", "1"},    {"layers", "1"},      {"heads", "2"}, {"width", "16"},
                                   {"length", "12"}, {"vocabulary", "31"}, {"batch", "4"}};

inline const char *perceptron = R"(network mlp(%x: f32[12, 20], %y: f32[12, 5]) {
  param %w1: f32[20, 24] = Normal(0.3)
  param %b1: f32[24] = Normal(0.1)
  param %gamma: f32[24] = Ones()
  param %beta: f32[24] = Zeros()
  param %w2: f32[24, 5] = Normal(0.3)
  %m = MatMul(%x, %w1)
  %b = BiasAdd(%m, %b1)
  %h = ReLU(%b)
  %n, %mean, %variance = LayerNorm(%h, %gamma, %beta)
  %t = Transpose(%w2, (1, 0))
  %p = MatMul(%n, %t) {transpose_b: true}
  %s = Softmax(%p)
  %loss = MSELoss(%s, %y)
  return loss: %loss
}
dataset {source: Random(seed: 3), columns: {x: normal, y: uniform}, steps: 4}
train {optimizer: Adam(learning_rate: 0.01), minimize: loss, epochs: 2}
checkpoint {directory: "ckpt", every_epochs: 1}
)";

} // namespace msc::e2e
