// The suite for communicators (test/runtime/comm/conformance_test.cpp) on the GPUs of this machine, for tools/test_cuda.sh, which it comes along with:
//   MSC_COLLECTIVES=local gpu_conformance                     ranks that are threads on one GPU
//   MSC_COLLECTIVES=local mpirun -n RANKS gpu_conformance     or processes
//   gpu_conformance --gtest_filter=OneRank.*                  what one rank can show of NCCL
//   MSC_COLLECTIVES=nccl mpirun -n RANKS gpu_conformance      a GPU for every process, or one for all with an NCCL_HOSTID for each
#include "runtime/comm/nccl/Transport.h"
#include "runtime/device/cuda/CudaBackend.h"
#include "runtime/device/cuda/Gpu.h"
#include "test/runtime/comm/DeviceWorld.h"
#include "test/runtime/comm/Harness.h"
#include "test/runtime/comm/nccl/OneRank.h"

#include <gtest/gtest.h>

#include <optional>

using namespace msc;

namespace {

class Gpus final : public comm::test::Devices {
public:
  void begin(int64_t) override {
    if (backend || problem)
      return;
    device::CudaOptions options;
    options.collectives = byNccl ? device::Collectives::Nccl : device::Collectives::Local;
    if (byNccl) {
      Result<comm::nccl::Table> table = comm::nccl::loadTable();
      auto transport = table ? comm::nccl::makeTransport(*table) : Result<std::unique_ptr<comm::StreamTransport>>(table.error());
      if (!transport) {
        problem = transport.error();
        return;
      }
      options.nccl = std::move(*transport);
    }
    Result<device::cuda::Tables> tables = device::cuda::loadTables();
    auto made = tables ? device::cuda::createBackend(*tables, options) : Result<std::unique_ptr<device::Backend>>(tables.error());
    if (made)
      backend = std::move(*made);
    else
      problem = made.error();
  }
  void end() override {}
  void close() override { backend.reset(); } // before the driver ends with the process
  Result<std::unique_ptr<comm::World>> connect(comm::World &hosts) override {
    if (problem)
      return *problem;
    return comm::test::makeDeviceWorld(hosts, *backend);
  }
  bool addsInAnyOrder() const override { return byNccl; }

private:
  const bool byNccl = comm::test::asksForNccl();
  std::shared_ptr<device::Backend> backend;
  std::optional<Error> problem;
} gpus;

// Of every process on its own, the first GPU that it sees; whatever the others communicate by.
TEST(OneRank, OfNcclStartsSplitsIsCapturedAndAborts) {
  Result<comm::nccl::Table> nccl = comm::nccl::loadTable();
  ASSERT_TRUE(nccl.isOk()) << "error: " << nccl.error().message;
  Result<device::cuda::Tables> tables = device::cuda::loadTables();
  ASSERT_TRUE(tables.isOk()) << "error: " << tables.error().message;
  auto gpu = device::cuda::Gpu::open(*tables, 0);
  ASSERT_TRUE(gpu.isOk()) << "error: " << gpu.error().message;
  ASSERT_TRUE((*gpu)->makeCurrent().isOk());
  const Status status = comm::nccl::test::probeOneRank(*nccl, tables->driver);
  EXPECT_TRUE(status.isOk()) << "error: " << status.error().message;
}

} // namespace
