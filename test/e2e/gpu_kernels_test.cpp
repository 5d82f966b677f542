// Every kernel for GPUs that random networks, the examples and networks of narrow types need, forward, backward and update: it
// computes on the emulated GPU what the kernel for CPUs computes, and NVIDIA's assembler takes it without spills.
#include "compiler/Compiler.h"
#include "test/e2e/Case.h"
#include "test/passes/codegen/KernelTestSupport.h"
#include "test/passes/codegen/PtxSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>

using namespace msc;
using namespace msc::e2e;

namespace {

/// Distinct clusters as functions of the name "main", in the order in which they were met.
class Clusters {
public:
  void compileNetwork(const compiler::CompileOptions &given) {
    compiler::CompileOptions options = given;
    options.onCluster = [&](const std::string &text) { add(text); };
    Result<compiler::CompileOutcome> outcome = compiler::compile(options);
    ASSERT_TRUE(outcome.isOk()) << options.input << ": " << outcome.error().message;
  }

  const std::vector<std::string> &texts() const { return list; }

private:
  void add(const std::string &text) {
    size_t begin = text.find('@') + 1, end = text.find('(', begin);
    std::string plain = text.substr(0, begin) + "main" + text.substr(end);
    if (known.insert(plain).second)
      list.push_back(plain);
  }

  std::set<std::string> known;
  std::vector<std::string> list;
};

/// The texts from `first` on, up to `count` of them, as functions with names of their own.
std::string together(const std::vector<std::string> &texts, size_t first, size_t count) {
  std::string all;
  for (size_t i = first; i < std::min(first + count, texts.size()); ++i)
    all += texts[i].substr(0, texts[i].find("@main")) + fmt::format("@f{}", i) + texts[i].substr(texts[i].find("@main") + 5) + "\n";
  return all;
}

/// On the emulated GPU as on the CPU: equal, or within rounding where sums have another order.
void checkNumbers(const Clusters &clusters) {
  for (size_t first = 0; first < clusters.texts().size(); first += 40) {
    test::CheckOptions options{.tolerance = 1e-4, .low = first % 80 ? -2 : 0.1, .high = 2, .seed = unsigned(first + 1), .likeCpu = true};
    test::checkClusters(together(clusters.texts(), first, 40), options);
  }
}

void checkAssembly(const Clusters &clusters) {
  if (test::ptxasPath().empty()) {
    fmt::print("  ptxas is not installed: {} clusters are not assembled\n", clusters.texts().size());
    return;
  }
  auto module = test::parse(together(clusters.texts(), 0, clusters.texts().size()));
  codegen::KernelLibrary library({.cpu = false, .gpu = true});
  for (auto func : module->getOps<mlir::func::FuncOp>())
    ASSERT_TRUE(mlir::succeeded(library.add(func)));
  auto objects = library.finish(module->getLoc());
  ASSERT_TRUE(mlir::succeeded(objects));
  const std::string &ptx = (*objects)[0].bytes;
  EXPECT_EQ(test::countOf(ptx, ".local"), 0u);
  for (const char *chip : {"sm_80", "sm_90"}) {
    test::Assembly assembly = test::assemble(ptx, chip);
    EXPECT_EQ(assembly.error, "");
    EXPECT_EQ(assembly.kernels.size(), test::entriesOf(ptx).size());
    unsigned registers = 0, spills = 0;
    for (const auto &[entry, kernel] : assembly.kernels) {
      registers = std::max(registers, kernel.registers);
      spills += kernel.spillBytes != 0;
      EXPECT_EQ(kernel.spillBytes + kernel.stackBytes, 0u) << chip << " " << entry;
    }
    fmt::print("  {}: {} kernels of {} clusters, {} bytes of PTX, at most {} registers, {} with spills\n", chip,
               assembly.kernels.size(), clusters.texts().size(), ptx.size(), registers, spills);
  }
}

/// A folder for the texts of networks.
class GpuKernels : public testing::Test {
protected:
  GpuKernels() {
    std::string pattern = (std::filesystem::temp_directory_path() / "msc-gpu-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~GpuKernels() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &text) {
    std::string path = folder / fmt::format("net{}.mir", number++);
    std::ofstream(path) << text;
    return path;
  }

  /// The network of an example beside the layer library; `precision` goes into its train block.
  std::string copied(const std::string &example, const std::string &precision = "") {
    std::filesystem::path source = MSC_SOURCE, target = folder / example;
    std::filesystem::create_directories(target);
    std::stringstream text;
    text << std::ifstream(source / example / "net.mir").rdbuf();
    std::string network = text.str();
    if (size_t at = network.find("train {"); at != std::string::npos)
      network.insert(at + 7, precision);
    std::ofstream(target / "net.mir") << network;
    std::filesystem::copy_file(source / "frontend/nn.mir", target / "nn.mir", std::filesystem::copy_options::overwrite_existing);
    return target / "net.mir";
  }

  std::filesystem::path folder;
  int number = 0;
};

TEST_F(GpuKernels, OfRandomNetworks) {
  Clusters clusters;
  for (uint64_t seed = 1; seed <= 20 * test::rounds(1); ++seed) {
    Result<Case> made = makeCase(seed);
    ASSERT_TRUE(made.isOk());
    compiler::CompileOptions options;
    options.input = write(made->text);
    options.devices = made->devices;
    options.keep = made->keep;
    clusters.compileNetwork(options);
  }
  checkAssembly(clusters);
  checkNumbers(clusters);
}

struct Example {
  const char *name;
  int64_t devices;
  std::vector<std::pair<std::string, std::string>> defines;
};
const Example examples[] = {
    {"quickstart", 8, {}},
    {"resnet50", 2, {{"size", "32"}, {"classes", "10"}, {"batch", "8"}, {"width", "8"}, {"blocks3", "1"}}},
    {"vgg16", 1, {{"size", "32"}, {"classes", "10"}, {"batch", "8"}, {"width", "4"}, {"hidden", "32"}}},
    {"gpt2", 4, {{"wide", "2"}, {"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"length", "64"}, {"vocabulary", "61"}, {"batch", "4"}}},
    {"llama", 2, {{"wide", "2"}, {"layers", "2"}, {"heads", "4"}, {"kv_heads", "2"}, {"width", "32"}, {"hidden", "48"}, {"length", "10"}, {"vocabulary", "61"}, {"batch", "4"}}},
    {"bert", 2, {{"wide", "2"}, {"layers", "2"}, {"heads", "4"}, {"width", "32"}, {"hidden", "64"}, {"length", "12"}, {"vocabulary", "50"}, {"batch", "4"}}},
    {"wide_and_deep", 2, {{"wide", "2"}, {"fields", "5"}, {"vocabulary", "101"}, {"size", "6"}, {"batch", "32"}}},
    {"mlp", 2, {{"width", "64"}}},
    {"transformer", 8, {}},
    {"gpt3", 2, {{"wide", "2"}, {"layers", "1"}, {"heads", "4"}, {"width", "32"}, {"length", "12"}, {"vocabulary", "61"}, {"batch", "4"}}},
    {"moe", 2, {{"wide", "2"}, {"layers", "1"}, {"heads", "4"}, {"kv_heads", "2"}, {"width", "32"}, {"hidden", "48"}, {"length", "16"}, {"vocabulary", "61"}, {"batch", "4"}}},
};

TEST_F(GpuKernels, OfExamples) {
  Clusters clusters;
  for (const Example &example : examples) {
    compiler::CompileOptions options;
    options.input = copied(fmt::format("examples/{}", example.name));
    options.devices = example.devices;
    options.defines = example.defines;
    clusters.compileNetwork(options);
  }
  checkAssembly(clusters);
  checkNumbers(clusters);
}

// As they are measured: in mixed precision, and joined further than where CPUs share the kernels.
TEST_F(GpuKernels, OfExamplesForGpusAlone) {
  Clusters clusters;
  for (const Example &example : examples) {
    compiler::CompileOptions options;
    options.input = copied(fmt::format("examples/{}", example.name), "amp_level: O2, amp_dtype: bf16, ");
    options.devices = example.devices;
    options.defines = example.defines;
    options.context = {{"device_target", "cuda"}};
    clusters.compileNetwork(options);
  }
  checkAssembly(clusters);
  checkNumbers(clusters);
}

TEST_F(GpuKernels, OfNarrowTypes) {
  Clusters clusters;
  auto textOf = [](const std::string &name) {
    std::stringstream text;
    text << std::ifstream(fmt::format("{}/test/cli/inputs/{}", MSC_SOURCE, name)).rdbuf();
    return text.str();
  };
  auto replaced = [](std::string text, const std::string &word, const std::string &with) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at))
      text.replace(at, word.size(), with);
    return text;
  };
  for (const char *type : {"bf16", "f16"}) {
    compiler::CompileOptions options;
    options.input = write(replaced(replaced(textOf("narrow_casts.mir"), "NARROW", type), "WHOLE", "i32"));
    clusters.compileNetwork(options);
  }
  for (const char *level : {"amp_level: O1, amp_dtype: bf16", "amp_level: O2", "amp_level: O3"}) {
    compiler::CompileOptions options;
    options.input = write(replaced(textOf("mixed.mir"), "PRECISION", level));
    clusters.compileNetwork(options);
  }
  checkAssembly(clusters);
  checkNumbers(clusters);
}

} // namespace
