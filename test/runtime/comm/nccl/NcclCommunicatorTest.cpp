// The NCCL communicator on a recording NCCL: what it computes, how it starts, ends and fails. It tests how we use the interface;
// none of this has run on NVIDIA's code.
#include "runtime/comm/nccl/Transport.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "test/runtime/comm/nccl/RecordingNccl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <thread>

using namespace msc;
using namespace msc::comm;
using namespace msc::comm::nccl;
using namespace msc::test;
using namespace std::chrono_literals;

namespace {

/// One rank: a thread with a GPU of its own, and memory there.
struct Rank {
  World &world;
  StreamCommunicator &communicator;
  const device::cuda::DriverTable &driver;
  CUstream stream = nullptr;
  int64_t number = 0;

  std::byte *put(const std::vector<float> &values) {
    CUdeviceptr memory = 0;
    driver.cuMemAlloc(&memory, values.size() * 4 + 4);
    std::copy(values.begin(), values.end(), pinned);
    driver.cuMemcpyHtoDAsync(memory, pinned, values.size() * 4, stream);
    driver.cuStreamSynchronize(stream);
    memories.push_back(memory);
    return reinterpret_cast<std::byte *>(memory);
  }
  std::byte *room(size_t count) { return put(std::vector<float>(count, NAN)); }
  std::vector<float> get(const std::byte *memory, size_t count) {
    driver.cuMemcpyDtoHAsync(pinned, reinterpret_cast<CUdeviceptr>(memory), count * 4, stream);
    driver.cuStreamSynchronize(stream);
    return {pinned, pinned + count};
  }
  Status wait() {
    communicator.setWaiting(true);
    driver.cuStreamSynchronize(stream);
    communicator.setWaiting(false);
    return communicator.check();
  }
  void open() {
    driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    void *memory = nullptr;
    driver.cuMemHostAlloc(&memory, 256, 0);
    pinned = static_cast<float *>(memory);
  }
  void release() {
    driver.cuMemFreeHost(pinned);
    for (CUdeviceptr memory : memories)
      driver.cuMemFree(memory);
    driver.cuStreamDestroy(stream);
  }
  float *pinned = nullptr;
  std::vector<CUdeviceptr> memories;
};

class NcclCommunicator : public testing::Test {
protected:
  NcclCommunicator() : nccl(driver) { driver.gpus = 8; }

  /// Runs `body` on every rank; returns what each of them came to. Ranks that succeed close.
  std::vector<Status> onRanks(int64_t ranks, const std::function<Status(Rank &)> &body) {
    auto transport = makeTransport(nccl.table(), options);
    EXPECT_TRUE(transport);
    auto hub = *ThreadHub::create(ranks);
    std::vector<Status> outcomes(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int64_t number = 0; number < ranks; ++number)
      threads.emplace_back([&, number] {
        auto world = hub->world(number);
        world->setTimeout(timeout);
        outcomes[static_cast<size_t>(number)] = runRank(**transport, *world, body);
      });
    for (std::thread &thread : threads)
      thread.join();
    return outcomes;
  }
  Status runRank(StreamTransport &transport, World &world, const std::function<Status(Rank &)> &body) {
    auto tables = driver.tables();
    const device::cuda::DriverTable &cuda = tables.driver;
    CUcontext context = nullptr;
    cuda.cuDevicePrimaryCtxRetain(&context, static_cast<CUdevice>(world.rank()));
    cuda.cuCtxSetCurrent(context);
    auto communicator = transport.connect(world);
    Status status = communicator ? Status() : Status(communicator.error());
    if (status) {
      Rank rank{world, **communicator, cuda, nullptr, world.rank(), nullptr, {}};
      rank.open();
      status = body(rank);
      if (status)
        status = rank.communicator.close();
      if (!status && !world.firstFailure())
        world.abort(status.error());
      (*communicator)->abort();
      cuda.cuStreamSynchronize(rank.stream);
      rank.release();
      communicator->reset();
    } else if (!world.firstFailure()) {
      world.abort(status.error());
    }
    cuda.cuDevicePrimaryCtxRelease(static_cast<CUdevice>(world.rank()));
    return status;
  }
  void TearDown() override {
    EXPECT_EQ(nccl.finish(), "");
    EXPECT_EQ(driver.violations(), std::vector<std::string>{});
    EXPECT_EQ(driver.leaks(), "");
  }
  static void expectAll(const std::vector<Status> &outcomes) {
    for (const Status &status : outcomes)
      EXPECT_TRUE(status) << status.error().message;
  }

  RecordingDriver driver;
  RecordingNccl nccl;
  Options options{.interval = 2ms};
  std::chrono::milliseconds timeout{0};
};

Status run(Rank &rank, StreamGroup::Prepared call) {
  if (!call)
    return call.error();
  if (Status status = (*call)->enqueue(rank.stream); !status)
    return status;
  return rank.wait();
}

/// All kinds of collectives of all ranks.
Status everything(Rank &rank) {
  auto number = static_cast<float>(rank.number);
  auto group = rank.communicator.group(Partition(static_cast<size_t>(rank.world.size()), 0));
  if (!group)
    return group.error();
  auto size = static_cast<size_t>((*group)->size());
  std::byte *a = rank.put({number, 10}), *b = rank.put({number * 2}), *sum = rank.room(2);
  if (Status done = run(rank, (*group)->prepareAllReduce({{a, sum, 2}, {b, b, 1}}, ElementType::F32, ReduceKind::Sum, {})); !done)
    return done;
  float total = static_cast<float>(size * (size - 1) / 2);
  EXPECT_EQ(rank.get(sum, 2), (std::vector<float>{total, 10 * static_cast<float>(size)}));
  EXPECT_EQ(rank.get(b, 1), (std::vector<float>{2 * total}));
  std::vector<float> blocks;
  for (size_t m = 0; m < size; ++m)
    blocks.push_back(static_cast<float>(m) + number);
  std::byte *scattered = rank.put(blocks), *kept = rank.room(1);
  auto scatter = (*group)->prepareReduceScatter({{scattered, kept, 1}}, ElementType::F32, ReduceKind::Max, {});
  if (Status done = run(rank, std::move(scatter)); !done)
    return done;
  EXPECT_EQ(rank.get(kept, 1), (std::vector<float>{number + static_cast<float>(size) - 1}));
  std::byte *gathered = rank.room(2 * size);
  if (Status done = run(rank, (*group)->prepareAllGather(a, gathered, 2, ElementType::F32, {})); !done)
    return done;
  EXPECT_EQ(rank.get(gathered, 2 * size)[2 * size - 2], static_cast<float>(size) - 1);
  if (size == 1)
    return {};
  // To the next one, of unequal lengths.
  auto next = static_cast<int32_t>((rank.number + 1) % rank.world.size()),
       previous = static_cast<int32_t>((rank.number + rank.world.size() - 1) % rank.world.size());
  std::byte *got = rank.room(3);
  if (Status done = run(rank, (*group)->prepareExchange({{next, a, 2}, {next, scattered, 1}},
                                                        {{previous, got, 2}, {previous, got + 8, 1}}, ElementType::F32, {}));
      !done)
    return done;
  EXPECT_EQ(rank.get(got, 3), (std::vector<float>{static_cast<float>(previous), 10, static_cast<float>(previous)}));
  return {};
}

TEST_F(NcclCommunicator, AllCollectives) {
  for (int64_t ranks : {1, 2, 3, 8})
    expectAll(onRanks(ranks, everything));
  EXPECT_EQ(nccl.calls("ncclGetUniqueId"), 4); // by one rank of each run
}

TEST_F(NcclCommunicator, CallsThatGoOnBehindTheirReturn) {
  for (int looks : {1, 2, 5, 300}) {
    nccl.looks = looks;
    expectAll(onRanks(3, everything));
  }
}

TEST_F(NcclCommunicator, TruthValuesAreReducedAsBytes) {
  expectAll(onRanks(2, [](Rank &rank) -> Status {
    auto group = rank.communicator.group({0, 0});
    uint8_t own[] = {1, rank.number == 0, 0, 0};
    float packed = 0;
    memcpy(&packed, own, 4);
    for (auto [kind, expected] : {std::pair(ReduceKind::Sum, 0x0101u), std::pair(ReduceKind::Prod, 0x0001u)}) {
      std::byte *data = rank.put({packed});
      if (Status done = run(rank, (*group)->prepareAllReduce({{data, data, 4}}, ElementType::Bool, kind, {})); !done)
        return done;
      uint32_t bits = 0;
      float result = rank.get(data, 1)[0];
      memcpy(&bits, &result, 4);
      EXPECT_EQ(bits, expected);
    }
    return {};
  }));
}

TEST_F(NcclCommunicator, GroupsAreSplitInOneOrder) {
  nccl.looks = 3;
  expectAll(onRanks(6, [](Rank &rank) -> Status {
    // Halves, pairs across them, three alone and the others together.
    std::vector<Partition> partitions{{0, 0, 0, 3, 3, 3}, {0, 1, 2, 0, 1, 2}, {0, 1, 2, 3, 3, 3}, {0, 0, 0, 3, 3, 3}};
    std::vector<StreamGroup *> groups;
    for (const Partition &partition : partitions) {
      auto group = rank.communicator.group(partition);
      if (!group)
        return group.error();
      groups.push_back(*group);
    }
    EXPECT_EQ(groups[0], groups[3]);
    EXPECT_EQ(groups[0]->size(), 3);
    EXPECT_EQ(groups[0]->rank(), rank.number % 3);
    EXPECT_EQ(groups[1]->size(), 2);
    EXPECT_EQ(groups[1]->rank(), rank.number / 3);
    EXPECT_EQ(groups[2] == nullptr, rank.number < 3);
    for (StreamGroup *group : {groups[0], groups[1], groups[2]}) {
      if (!group)
        continue;
      std::byte *data = rank.put({static_cast<float>(rank.number)});
      if (Status done = run(rank, group->prepareAllReduce({{data, data, 1}}, ElementType::F32, ReduceKind::Sum, {})); !done)
        return done;
      float expected = group == groups[1] ? static_cast<float>(2 * (rank.number % 3) + 3) : rank.number < 3 ? 3.f : 12.f;
      EXPECT_EQ(rank.get(data, 1), (std::vector<float>{expected}));
    }
    return {};
  }));
  EXPECT_EQ(nccl.calls("ncclCommSplit"), 3 * 6);
}

TEST_F(NcclCommunicator, MemoryIsOfNccl) {
  expectAll(onRanks(2, [](Rank &rank) -> Status {
    auto memory = rank.communicator.allocate(64);
    EXPECT_TRUE(memory && *memory);
    return {};
  }));
  EXPECT_EQ(nccl.calls("ncclMemAlloc"), 2);
  EXPECT_EQ(nccl.calls("ncclMemFree"), 2);
  nccl.failCall("ncclMemAlloc", 3, Code::UnhandledCudaError);
  expectAll(onRanks(1, [](Rank &rank) -> Status { // the device has memory of its own
    auto memory = rank.communicator.allocate(64);
    EXPECT_TRUE(memory && !*memory);
    return {};
  }));
}

/// Reduces for ever, so that only a failure ends it.
Status reduceOn(Rank &rank, int times = 1000) {
  auto group = rank.communicator.group(Partition(static_cast<size_t>(rank.world.size()), 0));
  if (!group)
    return group.error();
  std::byte *data = rank.put({1});
  for (int i = 0; i < times; ++i)
    if (Status done = run(rank, (*group)->prepareAllReduce({{data, data, 1}}, ElementType::F32, ReduceKind::Sum, {})); !done)
      return done;
  return {};
}

TEST_F(NcclCommunicator, ARemoteErrorEndsAllRanks) {
  nccl.breakRank(1, 5, Code::RemoteError);
  auto outcomes = onRanks(3, [](Rank &rank) { return reduceOn(rank); });
  for (const Status &outcome : outcomes) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ExitCode::PeerFailed);
    const char *says = "ncclCommGetAsyncError returned 6 (remote process exited or there was a network error)";
    EXPECT_NE(outcome.error().message.find(says), std::string::npos) << outcome.error().message;
  }
  EXPECT_EQ(nccl.calls("ncclCommAbort"), 3);
}

TEST_F(NcclCommunicator, ARankThatFailsEndsAllRanksWhateverTheyWaitFor) {
  std::latch haveGroups(3);
  auto outcomes = onRanks(3, [&](Rank &rank) -> Status {
    Partition pairs{0, 0, 2};
    auto group = rank.communicator.group(pairs);
    haveGroups.arrive_and_wait(); // before one fails
    if (!group)
      return group.error();
    if (rank.number == 1)
      return Error{ExitCode::BadFile, "its data are bad", ""};
    return reduceOn(rank);
  });
  EXPECT_EQ(outcomes[0].error().message, "rank 1 failed: its data are bad");
  EXPECT_EQ(outcomes[0].error().code, ExitCode::BadFile);
  EXPECT_EQ(outcomes[2].error().code, ExitCode::BadFile);
  EXPECT_EQ(nccl.calls("ncclCommAbort"), 5); // all that ranks have, each by each
}

TEST_F(NcclCommunicator, ARankThatFailsBeforeTheStartEndsTheStart) {
  nccl.failCall("ncclCommInitRankConfig", 2, Code::SystemError);
  auto outcomes = onRanks(3, everything);
  for (const Status &outcome : outcomes) {
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find("ncclCommInitRankConfig returned 2 (recorded error)"), std::string::npos)
        << outcome.error().message;
    EXPECT_EQ(outcome.error().code, ExitCode::PeerFailed);
  }
}

TEST_F(NcclCommunicator, WithoutAUniqueIdAllRanksSayTheSame) {
  nccl.failCall("ncclGetUniqueId", 1, Code::SystemError);
  for (const Status &outcome : onRanks(2, everything)) {
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find("ncclGetUniqueId returned 2"), std::string::npos) << outcome.error().message;
  }
}

TEST_F(NcclCommunicator, ACallThatFailsIsNamed) {
  nccl.failCall("ncclAllReduce", 7, Code::InvalidArgument);
  auto outcomes = onRanks(2, [](Rank &rank) { return reduceOn(rank); });
  EXPECT_NE((outcomes[0].error().message + outcomes[1].error().message).find("ncclAllReduce returned 4"), std::string::npos)
      << outcomes[0].error().message;
}

TEST_F(NcclCommunicator, ARankThatStopsIsWaitedForNoLongerThanTheLimit) {
  timeout = 50ms;
  nccl.breakRank(2, 3, Code::Success);
  auto outcomes = onRanks(3, [](Rank &rank) { return reduceOn(rank); });
  for (const Status &outcome : outcomes) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ExitCode::Timeout);
    EXPECT_NE(outcome.error().message.find("has waited for its GPU for longer than the limit of 50 ms"), std::string::npos)
        << outcome.error().message;
  }
}

TEST_F(NcclCommunicator, AnAbortThatHangsIsNotWaitedForWithoutLimit) {
  std::atomic<int> stuck{0};
  options.abortLimit = 50ms;
  options.onStuck = [&](const Error &cause) {
    EXPECT_EQ(cause.code, ExitCode::PeerFailed);
    if (++stuck == 2)
      nccl.letAbortsGo();
  };
  nccl.breakRank(0, 2, Code::RemoteError);
  nccl.holdAborts();
  auto outcomes = onRanks(2, [](Rank &rank) { return reduceOn(rank); });
  EXPECT_FALSE(outcomes[0]);
  EXPECT_EQ(stuck, 2);
}

TEST_F(NcclCommunicator, RanksNeedTheSameVersion) {
  // The second transport is of another version: ranks of two builds.
  auto first = makeTransport(nccl.table(), options);
  nccl.version = 23007;
  auto second = makeTransport(nccl.table(), options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*second)->name(), "NCCL 2.30.7");
  auto hub = *ThreadHub::create(2);
  std::vector<Status> outcomes(2);
  std::vector<std::thread> threads;
  for (int64_t number : {0, 1})
    threads.emplace_back([&, number] {
      auto world = hub->world(number);
      outcomes[static_cast<size_t>(number)] = runRank(number == 0 ? **first : **second, *world, everything);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(outcomes[1].error().message, "rank 0 has NCCL 2.28.9, rank 1 has 2.30.7");
  EXPECT_EQ(outcomes[0].error().message, "rank 1 failed: rank 0 has NCCL 2.28.9, rank 1 has 2.30.7");
}

} // namespace
