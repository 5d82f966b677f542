#include "test/e2e/EmulatedKernels.h"

#include "passes/codegen/KernelLibrary.h"
#include "runtime/device/cuda/Kernels.h"
#include "test/passes/codegen/GpuEmulator.h"
#include "test/passes/codegen/KernelTestSupport.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>

namespace msc::e2e {
using test::Access;
using test::KernelCall;

std::string gpuIrOf(const std::vector<std::string> &clusters) {
  codegen::KernelLibrary library({.cpu = false, .gpu = true});
  std::string text;
  for (size_t i = 0; i < clusters.size(); ++i) { // functions of one module have names of their own
    size_t begin = clusters[i].find('@') + 1, end = clusters[i].find('(', begin);
    text += clusters[i].substr(0, begin) + fmt::format("f{}", i) + clusters[i].substr(end) + "\n";
  }
  auto module = test::parse(text);
  for (auto func : module->getOps<mlir::func::FuncOp>())
    if (mlir::failed(library.add(func)))
      std::abort();
  return library.gpuIrText();
}

static std::string run(test::GpuEmulator &gpu, const KernelCall &call) {
  std::vector<void *> pointers;
  for (size_t i = 0; i + 1 < call.arguments.size(); ++i)
    pointers.push_back(reinterpret_cast<void *>(call.arguments[i]));
  return gpu.launch(call.entry, call.block, call.grid, pointers, static_cast<int64_t>(call.arguments.back()),
                    test::GpuEmulator::Order::Backward);
}

namespace {

/// What the launches of a plan read and write: a call is known by its entry and where its arguments lie in the arena.
class LaunchAccesses {
public:
  explicit LaunchAccesses(const PlanIndex &index) {
    for (const plan::Program &program : index.plan().programs())
      for (const plan::Variant &variant : program.variants())
        for (const plan::Step &step : variant.steps())
          if (step.has_launch())
            add(index, step);
  }

  std::vector<Access> of(const KernelCall &call, uint64_t arena) const {
    std::vector<uint64_t> offsets;
    for (size_t i = 0; i + 1 < call.arguments.size(); ++i)
      offsets.push_back(call.arguments[i] - arena);
    auto known = accesses.find({call.entry, offsets});
    if (known == accesses.end()) // no step launches this: bytes that nobody may touch
      return {{1, 2, true}};
    std::vector<Access> result = known->second;
    for (Access &access : result)
      access.begin += arena, access.end += arena;
    return result;
  }

private:
  void add(const PlanIndex &index, const plan::Step &step) {
    std::vector<uint64_t> offsets;
    std::vector<Access> list;
    for (uint32_t buffer : step.launch().arguments()) {
      const plan::Buffer &record = index.buffer(buffer);
      offsets.push_back(record.offset());
      bool writes = std::find(step.writes().begin(), step.writes().end(), buffer) != step.writes().end();
      list.push_back({record.offset(), record.offset() + record.bytes(), writes});
    }
    for (const plan::Kernel::Variant &variant : index.plan().kernels(static_cast<int>(step.launch().kernel())).variants())
      accesses[{variant.gpu().entry(), offsets}] = list;
  }

  std::map<std::pair<std::string, std::vector<uint64_t>>, std::vector<Access>> accesses;
};

} // namespace

void addPlanKernels(test::RecordingDriver &driver, const PlanIndex &index, const std::string &ir) {
  auto gpu = std::make_shared<test::GpuEmulator>(ir);
  auto accesses = std::make_shared<LaunchAccesses>(index);
  test::RecordedModule module;
  std::map<std::string, size_t> arguments;
  for (const plan::Kernel &kernel : index.plan().kernels())
    for (const plan::Kernel::Variant &variant : kernel.variants()) {
      module.entries.push_back(variant.gpu().entry());
      arguments[variant.gpu().entry()] = kernel.arguments() + 1;
    }
  module.argumentCount = [arguments](const std::string &entry) { return arguments.at(entry); };
  module.accesses = [accesses, &driver](const KernelCall &call) {
    return accesses->of(call, driver.allocationOf(call.arguments[0]));
  };
  module.run = [gpu](const KernelCall &call) { return run(*gpu, call); };
  std::string ptx;
  for (const plan::CodeObject &object : index.plan().objects())
    if (object.isa() == "nvptx64")
      ptx = object.code();
  driver.addModule([ptx](const std::string &text) { return text == ptx; }, module);
}

void addRuntimeKernels(test::RecordingDriver &driver, const std::string &path) {
  std::stringstream ir;
  ir << std::ifstream(path).rdbuf();
  auto gpu = std::make_shared<test::GpuEmulator>(ir.str());
  test::RecordedModule module;
  module.entries = {"msc_fill_8", "msc_copy_1", "msc_copy_2", "msc_copy_4", "msc_copy_8"};
  module.argumentCount = [](const std::string &entry) { return entry == "msc_fill_8" ? size_t{3} : size_t{4}; };
  module.accesses = [](const KernelCall &call) {
    const std::vector<uint64_t> &a = call.arguments;
    if (call.entry == "msc_fill_8")
      return std::vector<Access>{{a[0], a[0] + 8 * a[2], true}};
    uint64_t bytes = call.entry.back() - '0';
    const auto &shape = *reinterpret_cast<const device::cuda::CopyDescriptor *>(a[2]);
    // From the first element to the last one, whichever way strides run.
    auto span = [&](uint64_t start, const int64_t *strides, bool writes) {
      int64_t low = 0, high = 0;
      for (int64_t dim = 0; dim < shape.dims; ++dim)
        (strides[dim] < 0 ? low : high) += (shape.sizes[dim] - 1) * strides[dim];
      return Access{start + static_cast<uint64_t>(low) * bytes, start + static_cast<uint64_t>(high + 1) * bytes, writes};
    };
    return std::vector<Access>{span(a[0], shape.to, true), span(a[1], shape.from, false), {a[2], a[2] + sizeof(shape), false}};
  };
  module.run = [gpu](const KernelCall &call) { return run(*gpu, call); };
  driver.addModule([](const std::string &text) { return text == device::cuda::kernelsPtx; }, module);
}

} // namespace msc::e2e
