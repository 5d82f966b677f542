// libcuda.so.1 and libcublasLt as one library for msrun on machines without a GPU: the recording driver, with the kernels of the plan that compile_for_stub
// has written to the folder MSC_STUB_CUDA. So the whole way from the command line to the driver runs in tests; nothing of NVIDIA's code does.
//
// MSC_STUB_GPUS: how many there are; MSC_STUB_FAIL=FUNCTION:N: the Nth call of a function fails. What a process did wrong, or "clean", is in the folder when it
// has ended: report.<process>.
#include "test/e2e/EmulatedKernels.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace msc;

namespace {

// The functions are found by name in this library, and are jumps to those of the driver.
extern "C" {
#define MSC_TARGET(name) __attribute__((visibility("hidden"), used)) void *msc_stub_##name = nullptr;
#define MSC_DECLARED(name) MSC_TARGET_OF(name)
#define MSC_TARGET_OF(name) MSC_TARGET(name)
MSC_CUDA_DRIVER(MSC_DECLARED)
MSC_CUBLAS_LT(MSC_DECLARED)
}
#define MSC_WORD(name) #name
#define MSC_JUMP(name)                                                                                                         \
  asm(".text\n.globl " MSC_WORD(name) "\n.type " MSC_WORD(name) ",@function\n" MSC_WORD(name) ":\n\tjmp *msc_stub_" MSC_WORD(name) \
      "(%rip)\n");
MSC_CUDA_DRIVER(MSC_JUMP)
MSC_CUBLAS_LT(MSC_JUMP)

std::string textOf(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Stub {
public:
  Stub() : folder(std::getenv("MSC_STUB_CUDA") ? std::getenv("MSC_STUB_CUDA") : ".") {
    if (const char *gpus = std::getenv("MSC_STUB_GPUS"))
      driver.gpus = std::atoi(gpus);
    driver.sharesMemory = true;
    if (const char *failure = std::getenv("MSC_STUB_FAIL")) {
      const std::string text = failure;
      driver.failCall(text.substr(0, text.find(':')), std::atoi(text.c_str() + text.find(':') + 1), CUDA_ERROR_LAUNCH_FAILED);
    }
    std::ifstream launches(folder + "/launches");
    e2e::addPlanKernels(driver, e2e::PlanLaunches::read(launches), textOf(folder + "/kernels.ll"));
    e2e::addRuntimeKernels(driver, MSC_KERNELS_IR);
    const device::cuda::Tables tables = driver.tables();
#define MSC_SET_DRIVER(name) msc_set(MSC_SLOT(name), tables.driver.name);
#define MSC_SET_BLAS(name) msc_set(MSC_SLOT(name), tables.blas.name);
#define MSC_SLOT(name) MSC_SLOT_OF(name)
#define MSC_SLOT_OF(name) msc_stub_##name
    auto msc_set = [](void *&slot, auto function) { slot = reinterpret_cast<void *>(function); };
    MSC_CUDA_DRIVER(MSC_SET_DRIVER)
    MSC_CUBLAS_LT(MSC_SET_BLAS)
  }
  ~Stub() {
    std::ofstream report(fmt::format("{}/report.{}", folder, getpid()));
    const std::string leaks = driver.leaks();
    for (const std::string &violation : driver.violations())
      report << violation << '\n';
    if (!leaks.empty())
      report << "left behind: " << leaks << '\n';
    if (driver.violations().empty() && leaks.empty())
      report << "clean\n";
  }

private:
  const std::string folder;
  test::RecordingDriver driver;
} stub;

} // namespace
