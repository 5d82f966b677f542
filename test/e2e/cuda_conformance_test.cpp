// The suite for communicators (test/runtime/comm/conformance_test.cpp) on those of GPUs, as plans use them: MSC_COLLECTIVES=local, ranks on one GPU that are
// threads, or processes under mpirun, or nccl, a GPU for every rank. Driver and NCCL are recorded, kernels emulated: this tests how the backend uses them, and nothing here runs on a GPU.
// The program gpu_conformance runs the same on GPUs.
#include "runtime/comm/nccl/Transport.h"
#include "runtime/device/cuda/CudaBackend.h"
#include "test/Campaign.h"
#include "test/e2e/EmulatedKernels.h"
#include "test/runtime/comm/DeviceWorld.h"
#include "test/runtime/comm/Harness.h"
#include "test/runtime/comm/nccl/RecordingNccl.h"

#include <optional>

using namespace msc;

namespace {

class RecordedDevices final : public comm::test::Devices {
public:
  void begin(int64_t ranks) override {
    driver.emplace();
    driver->gpus = byNccl ? static_cast<int>(ranks) : 1;
    driver->sharesMemory = comm::test::mpiWorld() != nullptr;
    e2e::addRuntimeKernels(*driver, MSC_KERNELS_IR);
    device::CudaOptions options;
    options.collectives = byNccl ? device::Collectives::Nccl : device::Collectives::Local;
    if (byNccl) {
      nccl.emplace(*driver);
      auto transport = comm::nccl::makeTransport(nccl->table(), {.interval = std::chrono::milliseconds(2)});
      ASSERT_TRUE(transport.isOk());
      options.nccl = std::move(*transport);
    }
    auto made = device::cuda::createBackend(driver->tables(), options);
    ASSERT_TRUE(made.isOk()) << made.error().message;
    backend = std::move(*made);
  }
  void end() override {
    backend.reset();
    if (nccl)
      EXPECT_EQ(nccl->finish(), "");
    EXPECT_EQ(driver->violations(), std::vector<std::string>{});
    EXPECT_EQ(driver->leaks(), "");
    // Collectives of NCCL are part of graphs, those of our kernels are not.
    int collectives = 0;
    for (const char *function : {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclSend"})
      collectives += nccl ? nccl->calls(function) : 0;
    EXPECT_EQ(driver->calls("cuGraphLaunch") > 0, collectives > 0);
    nccl.reset();
    driver.reset();
  }
  Result<std::unique_ptr<comm::World>> connect(comm::World &hosts) override {
    if (!backend)
      return Error{ExitCode::Failed, "there is no backend", ""};
    return comm::test::makeDeviceWorld(hosts, *backend);
  }
  bool addsInAnyOrder() const override { return byNccl; }
  int64_t mostElements() const override { return test::isLongRun() ? INT64_MAX : 70'000; } // emulated, element by element

private:
  const bool byNccl = comm::test::asksForNccl();
  std::optional<test::RecordingDriver> driver;
  std::optional<test::RecordingNccl> nccl;
  std::shared_ptr<device::Backend> backend;
} recordedDevices;

} // namespace
