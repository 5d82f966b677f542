// The recording NCCL itself: it finds what it is made to find.
#include "test/runtime/comm/nccl/OneRank.h"
#include "test/runtime/comm/nccl/RecordingNccl.h"

#include <gtest/gtest.h>

#include <thread>

using namespace msc::comm::nccl;
using namespace msc::test;

namespace {

class RecordingNcclTest : public testing::Test {
protected:
  RecordingNcclTest() : nccl(driver), table(nccl.table()), cuda(driver.tables().driver) { driver.gpus = 2; }

  /// Two communicators of two ranks: both are of this thread, which shows no order of its own.
  void open() {
    UniqueId id;
    table.ncclGetUniqueId(&id);
    Config config;
    config.blocking = 0;
    for (int rank : {0, 1}) {
      use(rank);
      table.ncclCommInitRankConfig(&world[rank], 2, id, rank, &config);
      cuda.cuStreamCreate(&stream[rank], CU_STREAM_NON_BLOCKING);
      cuda.cuMemAlloc(&memory[rank], 64);
    }
    settle(world);
    for (int rank : {0, 1})
      table.ncclCommSplit(world[rank], 0, rank, &pair[rank], nullptr);
    settle(world);
    settle(pair);
  }
  void use(int gpu) { cuda.cuCtxSetCurrent(reinterpret_cast<CUcontext>(static_cast<uintptr_t>(gpu) + 1)); }
  void settle(const Handle (&handles)[2]) {
    Code code = Code::Success;
    for (int i = 0; i < 20; ++i)
      table.ncclCommGetAsyncError(handles[i % 2], &code);
  }
  Code reduce(int rank, Handle handle, size_t count = 4) {
    use(rank);
    void *data = reinterpret_cast<void *>(memory[rank]);
    return table.ncclAllReduce(data, data, count, DataType::Float32, Reduction::Sum, handle, stream[rank]);
  }
  void runBoth() {
    std::thread other([&] { cuda.cuStreamSynchronize(stream[1]); });
    cuda.cuStreamSynchronize(stream[0]);
    other.join();
  }
  std::string violation() {
    nccl.finish();
    return driver.violations().empty() ? "" : driver.violations().front();
  }

  RecordingDriver driver;
  RecordingNccl nccl;
  Table table;
  msc::device::cuda::DriverTable cuda;
  Handle world[2] = {}, pair[2] = {};
  CUstream stream[2] = {};
  CUdeviceptr memory[2] = {};
};

TEST_F(RecordingNcclTest, NothingIsWrong) {
  open();
  reduce(0, world[0]), reduce(1, world[1]), reduce(0, pair[0]), reduce(1, pair[1]);
  runBoth();
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(nccl.finish(), "4 communicators");
  EXPECT_EQ(nccl.launches(1), (std::vector<std::string>{"AllReduce", "AllReduce"}));
}
TEST_F(RecordingNcclTest, OtherOrdersOfLaunches) {
  open();
  reduce(0, world[0]), reduce(0, pair[0]), reduce(1, pair[1]), reduce(1, world[1]);
  EXPECT_EQ(violation(), "ranks 0 and 1 launch in different orders");
}
TEST_F(RecordingNcclTest, OtherSizes) {
  open();
  reduce(0, world[0], 4), reduce(1, world[1], 5);
  runBoth();
  EXPECT_EQ(violation(), "members of world launch different things: AllReduce and AllReduce");
}
TEST_F(RecordingNcclTest, MessagesOutsideOfAGroup) {
  open();
  use(0);
  table.ncclSend(reinterpret_cast<void *>(memory[0]), 4, DataType::Float32, 1, world[0], stream[0]);
  EXPECT_EQ(violation(), "ncclSend outside of a group");
}
TEST_F(RecordingNcclTest, GroupsThatNobodyBegan) {
  EXPECT_EQ(table.ncclGroupEnd(), Code::InvalidUsage);
  EXPECT_EQ(violation(), "ncclGroupEnd without ncclGroupStart");
}
TEST_F(RecordingNcclTest, MessagesThatNobodyExpects) {
  open();
  use(0);
  table.ncclGroupStart();
  table.ncclSend(reinterpret_cast<void *>(memory[0]), 4, DataType::Float32, 1, world[0], stream[0]);
  table.ncclGroupEnd();
  reduce(1, pair[1]), reduce(0, pair[0]);
  use(1);
  table.ncclGroupStart();
  table.ncclRecv(reinterpret_cast<void *>(memory[1]), 3, DataType::Float32, 0, world[1], stream[1]);
  table.ncclGroupEnd();
  nccl.breakRank(7, 1, Code::Success);
  std::thread other([&] { cuda.cuStreamSynchronize(stream[1]); });
  table.ncclGroupStart(), table.ncclCommAbort(pair[0]), table.ncclCommAbort(pair[1]), table.ncclGroupEnd();
  cuda.cuStreamSynchronize(stream[0]);
  other.join();
  EXPECT_EQ(violation(), "0 sends 1 send, 0 receives to 1, which does not expect it");
}
TEST_F(RecordingNcclTest, CallsBesideOneInProgress) {
  nccl.looks = 2;
  open();
  table.ncclGroupStart(), reduce(0, world[0]), table.ncclGroupEnd();
  reduce(0, world[0]);
  EXPECT_EQ(violation(), "ncclAllReduce while the communicator is in progress");
}
TEST_F(RecordingNcclTest, UseAfterAnAbort) {
  open();
  table.ncclGroupStart(), table.ncclCommAbort(world[0]), table.ncclCommAbort(world[1]), table.ncclGroupEnd();
  reduce(0, world[0]);
  EXPECT_EQ(violation(), "ncclAllReduce on a communicator that was aborted");
}
TEST_F(RecordingNcclTest, AbortsOnOneRankOnly) {
  open();
  table.ncclGroupStart(), table.ncclCommAbort(world[0]), table.ncclGroupEnd();
  EXPECT_EQ(violation(), "1 of 2 ranks abort world");
}
TEST_F(RecordingNcclTest, AbortsOneAfterTheOther) {
  open();
  table.ncclCommAbort(world[0]);
  EXPECT_EQ(violation(), "ncclCommAbort outside of a group: it waits for work of other communicators");
}
TEST_F(RecordingNcclTest, OneGpuForTwoRanks) {
  UniqueId id;
  Config config;
  config.blocking = 0;
  use(0);
  for (int rank : {0, 1})
    table.ncclCommInitRankConfig(&world[rank], 2, id, rank, &config);
  EXPECT_EQ(violation(), "ranks 0 and 1 have the same GPU");
}
TEST_F(RecordingNcclTest, BlockingCommunicators) {
  UniqueId id;
  Config config;
  use(0);
  table.ncclCommInitRankConfig(&world[0], 2, id, 0, &config);
  EXPECT_EQ(violation(), "a communicator is not made to be non-blocking");
}

// What gpu_conformance does with NVIDIA's NCCL.
TEST_F(RecordingNcclTest, OneRankIsProbed) {
  use(0);
  for (int looks : {0, 3}) {
    nccl.looks = looks;
    const msc::Status status = msc::comm::nccl::test::probeOneRank(table, cuda);
    EXPECT_TRUE(status.isOk()) << status.error().message;
  }
  EXPECT_EQ(nccl.launches(0).size(), 6u);
  EXPECT_EQ(driver.calls("cuGraphLaunch"), 4);
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(driver.leaks(), "");
}

TEST_F(RecordingNcclTest, WhatFailsOnOneRankIsNamed) {
  use(0);
  for (const char *function : {"ncclCommInitRankConfig", "ncclCommSplit", "ncclMemAlloc", "ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclGroupEnd"}) {
    SCOPED_TRACE(function);
    nccl.failCall(function, nccl.calls(function) + 1, Code::SystemError);
    const msc::Status status = msc::comm::nccl::test::probeOneRank(table, cuda);
    ASSERT_FALSE(status.isOk()) << function;
    EXPECT_NE(status.error().message.find(std::string(function) + " returned 2"), std::string::npos) << status.error().message;
  }
  EXPECT_EQ(driver.leaks(), "");
}

} // namespace
