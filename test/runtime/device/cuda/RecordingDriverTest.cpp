// The recording driver sees what it is there to see: planted mistakes in the use of streams, events, memory and captures.
#include "test/runtime/device/cuda/RecordingDriver.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::test;

namespace {

class Recording : public testing::Test {
protected:
  Recording() : t(driver.tables().driver) {
    for (CUstream &stream : streams)
      t.cuStreamCreate(&stream, 0);
    t.cuMemAlloc(&memory, 1024);
    t.cuEventCreate(&event, 0);
  }
  void expectOnly(const std::string &violation) { EXPECT_EQ(driver.violations(), std::vector<std::string>{violation}); }
  void expectNone() { EXPECT_EQ(driver.violations(), std::vector<std::string>{}); }
  unsigned read(uint64_t offset = 0) { return *reinterpret_cast<unsigned *>(memory + offset); }

  RecordingDriver driver;
  device::cuda::DriverTable t;
  CUstream streams[2];
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
};

TEST_F(Recording, WorkWaitsUntilSomebodyWaitsForIt) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  EXPECT_NE(read(), 7u);
  t.cuStreamSynchronize(streams[1]);
  EXPECT_NE(read(), 7u);
  t.cuStreamSynchronize(streams[0]);
  EXPECT_EQ(read(), 7u);
  expectNone();
}

TEST_F(Recording, TwoStreamsWriteTheSame) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuMemsetD32Async(memory + 12, 8, 4, streams[1]);
  expectOnly("cuMemsetD32Async writes memory that cuMemsetD32Async writes, and nothing orders them");
}

TEST_F(Recording, TwoStreamsWriteSideBySide) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuMemsetD32Async(memory + 16, 8, 4, streams[1]);
  expectNone();
}

TEST_F(Recording, AnotherStreamReadsTooEarly) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuMemcpyDtoDAsync(memory + 64, memory, 16, streams[1]);
  expectOnly("cuMemcpyDtoDAsync reads memory that cuMemsetD32Async writes, and nothing orders them");
}

TEST_F(Recording, AnEventOrders) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuEventRecord(event, streams[0]);
  t.cuStreamWaitEvent(streams[1], event, 0);
  t.cuMemcpyDtoDAsync(memory + 64, memory, 16, streams[1]);
  t.cuStreamSynchronize(streams[1]);
  EXPECT_EQ(read(64), 7u);
  expectNone();
}

TEST_F(Recording, AnEventThatWasRecordedTooEarly) {
  t.cuEventRecord(event, streams[0]);
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuStreamWaitEvent(streams[1], event, 0);
  t.cuMemcpyDtoDAsync(memory + 64, memory, 16, streams[1]);
  expectOnly("cuMemcpyDtoDAsync reads memory that cuMemsetD32Async writes, and nothing orders them");
}

TEST_F(Recording, AnEventThatWasNeverRecorded) {
  t.cuStreamWaitEvent(streams[1], event, 0);
  expectOnly("a stream waits for an event that was never recorded");
}

TEST_F(Recording, TheHostOrders) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuStreamSynchronize(streams[0]);
  t.cuMemsetD32Async(memory, 8, 4, streams[1]);
  expectNone();
}

TEST_F(Recording, ReadersThenAWriter) {
  t.cuMemcpyDtoDAsync(memory + 64, memory, 16, streams[0]);
  t.cuMemcpyDtoDAsync(memory + 128, memory, 16, streams[1]);
  expectNone();
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  expectOnly("cuMemsetD32Async writes memory that cuMemcpyDtoDAsync reads, and nothing orders them");
}

TEST_F(Recording, MemoryThatIsNotAllocated) {
  t.cuMemsetD32Async(memory + 1020, 7, 2, streams[0]);
  expectOnly("cuMemsetD32Async writes 8 bytes that are not allocated");
}

TEST_F(Recording, MemoryThatIsFreedInUse) {
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuMemFree(memory);
  expectOnly("memory is freed that cuMemsetD32Async may still use");
}

TEST_F(Recording, MemoryThatIsFreedTwice) {
  t.cuMemFree(memory);
  t.cuMemFree(memory);
  expectOnly("memory is freed that was not allocated");
}

TEST_F(Recording, AGraphRunsWhenItIsLaunched) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  t.cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  ASSERT_EQ(t.cuStreamEndCapture(streams[0], &graph), CUDA_SUCCESS);
  t.cuStreamSynchronize(streams[0]);
  EXPECT_NE(read(), 7u);
  t.cuGraphInstantiateWithFlags(&executable, graph, 0);
  for (unsigned value : {1u, 2u}) {
    t.cuMemsetD32Async(memory, value, 4, streams[0]);
    t.cuGraphLaunch(executable, streams[0]);
    t.cuStreamSynchronize(streams[0]);
    EXPECT_EQ(read(), 7u);
  }
  expectNone();
  EXPECT_EQ(driver.leaks(), "2 streams, 1 event, 2 graphs, 1 allocation");
}

TEST_F(Recording, ConflictsInsideAGraph) {
  CUgraph graph = nullptr;
  t.cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  t.cuEventRecord(event, streams[0]);
  t.cuStreamWaitEvent(streams[1], event, 0);
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuMemcpyDtoDAsync(memory + 64, memory, 16, streams[1]);
  expectOnly("cuMemcpyDtoDAsync reads memory that cuMemsetD32Async writes, and nothing orders them");
  EXPECT_EQ(t.cuStreamEndCapture(streams[0], &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST_F(Recording, AGraphConflictsWithAnotherStream) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  t.cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  t.cuMemsetD32Async(memory, 7, 4, streams[0]);
  t.cuStreamEndCapture(streams[0], &graph);
  t.cuGraphInstantiateWithFlags(&executable, graph, 0);
  t.cuMemcpyDtoDAsync(memory + 64, memory, 16, streams[1]);
  t.cuGraphLaunch(executable, streams[0]);
  expectOnly("a graph writes memory that cuMemcpyDtoDAsync reads, and nothing orders them");
}

TEST_F(Recording, ACaptureForbidsWaitingAndAllocating) {
  t.cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(t.cuStreamSynchronize(streams[0]), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUdeviceptr other = 0;
  t.cuMemAlloc(&other, 16);
  EXPECT_EQ(driver.violations(),
            (std::vector<std::string>{"cuStreamSynchronize of a stream that is captured", "cuMemAlloc during a capture"}));
}

TEST_F(Recording, AnAsynchronousErrorStays) {
  driver.addModule([](const std::string &text) { return text == "ptx"; },
                   {{"kernel"},
                    [](const std::string &) { return size_t{1}; },
                    [](const KernelCall &) { return std::vector<Access>(); },
                    [](const KernelCall &) { return std::string(); }});
  driver.failKernel("kernel", 2, CUDA_ERROR_ILLEGAL_ADDRESS);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(t.cuModuleLoadDataEx(&module, "ptx", 0, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(t.cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
  EXPECT_EQ(t.cuModuleGetFunction(&function, module, "other"), CUDA_ERROR_NOT_FOUND);
  uint64_t count = 1;
  void *arguments[] = {&count};
  for (CUresult expected : {CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_ADDRESS}) {
    EXPECT_EQ(t.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, streams[0], arguments, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(t.cuStreamSynchronize(streams[0]), expected);
  }
  EXPECT_EQ(t.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, streams[0], arguments, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

} // namespace
