// What processes on one GPU tell each other of their memory, and what they say where that cannot be had. One process cannot open its own memory: that is the
// failure here; cuda_conformance_test and cli/cuda_stub_mpi.test run it between processes.
#include "runtime/comm/thread/ThreadWorld.h"
#include "runtime/device/cuda/PeerAccess.h"
#include "test/runtime/device/cuda/RecordingDriver.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::test;
using namespace msc::device::cuda;

namespace {

class PeerAccessTest : public testing::Test {
protected:
  void SetUp() override {
    driver.sharesMemory = true;
    auto opened = Gpu::open(driver.tables(), 0);
    ASSERT_TRUE(opened.isOk());
    ASSERT_TRUE((*opened)->makeCurrent().isOk());
    shared.emplace(*opened, device::CudaOptions());
    hub = *comm::ThreadHub::create(1);
    world = hub->world(0);
    access = std::move(*openPeerAccess(*shared, **world->group({0}), /*isOneProcess=*/false));
    ASSERT_EQ(shared->driver.cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
  }
  void TearDown() override {
    access.reset();
    shared->driver.cuMemFree(memory);
    shared.reset();
    EXPECT_EQ(driver.violations(), std::vector<std::string>{});
    EXPECT_EQ(driver.leaks(), "");
  }
  const void *at(uint64_t offset) const { return reinterpret_cast<const void *>(memory + offset); }

  RecordingDriver driver;
  std::optional<Shared> shared;
  std::shared_ptr<comm::ThreadHub> hub;
  std::unique_ptr<comm::World> world;
  std::unique_ptr<PeerAccess> access;
  CUdeviceptr memory = 0;
};

const char *const repair = "use --collectives host, or give all ranks one namespace of processes and one of IPC where they run in containers";

TEST_F(PeerAccessTest, AnAllocationIsToldOnce) {
  Result<PeerAddress> first = access->tell(at(0)), second = access->tell(at(1024));
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_EQ(first->allocation, second->allocation);
  EXPECT_EQ(first->offset, 0u);
  EXPECT_EQ(second->offset, 1024u);
  EXPECT_EQ(driver.calls("cuIpcGetMemHandle"), 1);
  Result<std::byte *> found = access->find(*second, 0);
  ASSERT_TRUE(found.isOk());
  EXPECT_EQ(static_cast<const void *>(*found), at(1024));
}

TEST_F(PeerAccessTest, SaysWhoseMemoryCannotBeReached) {
  Result<PeerAddress> told = access->tell(at(0));
  ASSERT_TRUE(told.isOk());
  Result<std::byte *> found = access->find(*told, 3);
  ASSERT_FALSE(found.isOk());
  EXPECT_EQ(found.error().message, "processes cannot reach the GPU memory of rank 3: cuIpcOpenMemHandle returned CUDA_ERROR_INVALID_CONTEXT (recorded)");
  EXPECT_EQ(found.error().help, repair);
}

TEST_F(PeerAccessTest, SaysThatItsOwnCannotBeTold) {
  driver.failCall("cuIpcGetMemHandle", 1, CUDA_ERROR_NOT_SUPPORTED);
  Result<PeerAddress> told = access->tell(at(0));
  ASSERT_FALSE(told.isOk());
  EXPECT_EQ(told.error().message, "processes cannot reach the GPU memory of rank 0: cuIpcGetMemHandle returned CUDA_ERROR_NOT_SUPPORTED (recorded)");
  EXPECT_EQ(told.error().help, repair);
}

// What peers know of is freed behind an end in agreement alone.
TEST_F(PeerAccessTest, MemoryThatWasToldIsLeftAfterAFailure) {
  EXPECT_TRUE(access->leave()); // nothing was told
  ASSERT_TRUE(access->tell(at(0)).isOk());
  EXPECT_FALSE(access->leave());
  EXPECT_TRUE(access->close().isOk());
  EXPECT_TRUE(access->leave());
}

} // namespace
