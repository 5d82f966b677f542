#include "test/runtime/executor/OnRanks.h"

#include <numeric>

using namespace msc;
using namespace msc::test;

namespace {

float inputValue(int64_t i) { return static_cast<float>(i % 13) - 6; }
float weightValue(int64_t i) { return static_cast<float>(i % 7) * 0.5f - 1; }

TEST(Executor, PartialProductsAreCompleted) {
  std::vector<float> expected(30, 0.0f);
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 5; ++j)
      for (int64_t k = 0; k < 8; ++k)
        expected[i * 5 + j] += inputValue(i * 8 + k) * weightValue(k * 5 + j);
  for (int64_t devices : {1, 2, 3, 4, 8}) {
    onAllRanks(matmulAllReduce(devices), [&](Bound &rank) {
      rank.set(0, inputValue);
      rank.set(1, weightValue);
      for (int round = 0; round < 3; ++round)
        ASSERT_TRUE(rank.executor.runStep());
      // Small integers and halves: sums are exact in any order.
      std::vector<float> mine(30);
      std::memcpy(mine.data(), rank.arena + rank.index.buffer(3).offset(), 120);
      EXPECT_EQ(mine, expected) << devices << " devices, rank " << rank.world.rank();
    });
  }
}

TEST(Executor, RanksWithoutElementsJoinCollectives) {
  // 12 devices, 8 columns: four ranks hold an empty part of the sum and contribute zeros.
  PlanBuilder builder = matmulAllReduce(12);
  std::vector<float> result;
  onAllRanks(builder, [&](Bound &rank) {
    rank.set(0, [](int64_t) { return 1.0f; });
    rank.set(1, [](int64_t) { return 2.0f; });
    ASSERT_TRUE(rank.executor.runStep());
    std::vector<float> out = rank.get(3);
    if (rank.world.rank() == 0)
      result = out;
  });
  EXPECT_EQ(result, std::vector<float>(30, 16.0f));
}

/// A value through a chain of moves; the last buffer must equal the first.
TEST(Executor, CollectivesMoveDataWhereShardingsSay) {
  PlanBuilder builder(6, plan::Program::PREDICT);
  std::vector<int64_t> shape{7, 9};
  Sharding a{{2, 3}, {{0}, {1}}, {}}, b{{3, 2}, {{0}, {1}}, {}}, c{{6}, {{}, {0}}, {}}, d{{6}, {{}, {}}, {}}, e{{2, 3}, {{1, 0}, {}}, {}};
  std::vector<uint32_t> chain;
  for (const Sharding &sharding : {a, b, c, d, e, a})
    chain.push_back(builder.buffer("v" + std::to_string(chain.size()), shape, sharding,
                                   chain.empty() ? plan::Buffer::INPUT : plan::Buffer::ACTIVATION));
  builder.input(chain[0]);
  builder.randomColumn("v0", "uniform");
  builder.collective("exchange", plan::Collective::EXCHANGE, chain[0], chain[1]);
  builder.collective("alltoall", plan::Collective::ALL_TO_ALL, chain[1], chain[2]);
  builder.collective("allgather", plan::Collective::ALL_GATHER, chain[2], chain[3]);
  builder.copy("slice", chain[3], chain[4]);
  builder.collective("back", plan::Collective::EXCHANGE, chain[4], chain[5]);
  for (uint32_t buffer : chain)
    builder.output(buffer);
  onAllRanks(builder, [&](Bound &rank) {
    rank.set(chain[0], [](int64_t i) { return static_cast<float>(i); });
    ASSERT_TRUE(rank.executor.runStep());
    std::vector<float> expected(63);
    std::iota(expected.begin(), expected.end(), 0.0f);
    for (uint32_t buffer : chain) {
      std::vector<float> whole = rank.get(buffer);
      if (rank.world.rank() == 0)
        EXPECT_EQ(whole, expected) << buffer;
    }
  });
}

TEST(Executor, ReduceScatterAndAsynchronousReduceInPlace) {
  PlanBuilder builder(4, plan::Program::PREDICT);
  uint32_t terms = builder.buffer("terms", {10, 3}, builder.partial(2)), rows = builder.buffer("rows", {10, 3}, builder.cut(2, 0));
  uint32_t sum = builder.viewOf(terms, "sum", {10, 3}, builder.cut(2, -1));
  builder.fill("terms", terms, 1.25);
  builder.collective("scatter", plan::Collective::REDUCE_SCATTER, terms, rows);
  plan::Step *start = builder.collective("reduce", plan::Collective::ALL_REDUCE, terms, sum);
  start->mutable_collective()->set_asynchronous(true);
  builder.wait("wait", 2);
  builder.output(rows);
  builder.output(sum);
  onAllRanks(builder, [&](Bound &rank) {
    ASSERT_TRUE(rank.executor.runStep());
    for (uint32_t buffer : {rows, sum}) {
      std::vector<float> whole = rank.get(buffer);
      if (rank.world.rank() == 0)
        EXPECT_EQ(whole, std::vector<float>(30, 5.0f));
    }
  });
}

TEST(Executor, CollectivesMoveSeveralTensorsAtOnce) {
  PlanBuilder builder(4, plan::Program::PREDICT);
  using C = plan::Collective;
  struct Move {
    C::Kind kind;
    Sharding from, to;
  };
  const Move list[] = {{C::ALL_REDUCE, builder.partial(2), builder.cut(2, -1)},
                       {C::REDUCE_SCATTER, builder.partial(2), builder.cut(2, 0)},
                       {C::ALL_GATHER, builder.cut(2, 0), builder.cut(2, -1)},
                       {C::ALL_TO_ALL, builder.cut(2, 0), builder.cut(2, 1)}};
  const std::vector<std::vector<int64_t>> shapes{{10, 3}, {1, 1}, {7, 129}}; // uneven, some parts are empty
  struct Result {
    uint32_t buffer;
    float value;
    int64_t count;
  };
  std::vector<Result> results;
  for (const Move &move : list) {
    std::vector<uint32_t> sources, targets;
    for (const auto &shape : shapes) {
      sources.push_back(builder.buffer("source" + std::to_string(results.size()), shape, move.from));
      builder.fill("fill", sources.back(), 1.25 + static_cast<double>(results.size()));
      targets.push_back(builder.buffer("target" + std::to_string(results.size()), shape, move.to));
      results.push_back({targets.back(), (1.25f + static_cast<float>(results.size())) * (move.from.isPartial() ? 4 : 1),
                         elementCount(shape)});
    }
    plan::Step *step = builder.collective("move", move.kind, sources[0], targets[0]);
    for (size_t i = 1; i < sources.size(); ++i)
      builder.also(step, sources[i], targets[i]);
    for (uint32_t target : targets)
      builder.output(target);
  }
  onAllRanks(builder, [&](Bound &rank) {
    ASSERT_TRUE(rank.executor.runStep());
    for (const Result &result : results) {
      std::vector<float> whole = rank.get(result.buffer);
      if (rank.world.rank() == 0)
        EXPECT_EQ(whole, std::vector<float>(static_cast<size_t>(result.count), result.value)) << result.buffer;
    }
  });
}

TEST(Executor, BatchesAreBroadcast) {
  // [2, 1, 3, 4] times [5, 4, 2]: every left batch entry meets every right one.
  PlanBuilder builder(1, plan::Program::PREDICT);
  uint32_t left = builder.buffer("left", {2, 1, 3, 4}, builder.cut(4, -1), plan::Buffer::INPUT);
  uint32_t right = builder.buffer("right", {5, 4, 2}, builder.cut(3, -1), plan::Buffer::INPUT);
  uint32_t out = builder.buffer("out", {2, 5, 3, 2}, builder.cut(4, -1), plan::Buffer::OUTPUT);
  builder.input(left);
  builder.input(right);
  builder.matmul("matmul", left, right, out)->mutable_matmul()->set_tasks(3);
  builder.output(out);
  onAllRanks(builder, [&](Bound &rank) {
    rank.set(left, inputValue);
    rank.set(right, weightValue);
    ASSERT_TRUE(rank.executor.runStep());
    std::vector<float> values = rank.get(out);
    for (int64_t a = 0; a < 2; ++a)
      for (int64_t b = 0; b < 5; ++b)
        for (int64_t i = 0; i < 3; ++i)
          for (int64_t j = 0; j < 2; ++j) {
            float expected = 0;
            for (int64_t k = 0; k < 4; ++k)
              expected += inputValue((a * 3 + i) * 4 + k) * weightValue((b * 4 + k) * 2 + j);
            EXPECT_EQ(values[((a * 5 + b) * 3 + i) * 2 + j], expected);
          }
  });
}

TEST(Executor, MissingKernelNamesRankStepAndPlace) {
  PlanBuilder builder = regression(2);
  auto *kernel = builder.plan.mutable_kernels(1);
  kernel->mutable_variants(0)->set_symbol("mark");
  EXPECT_TRUE(plan::checkPlan(builder.plan));
  builder.plan.mutable_objects(0)->set_isa("x86-64-v4");
  PlanIndex index(builder.plan);
  kernel->mutable_variants(0)->set_symbol("gone");
  auto hub = *comm::ThreadHub::create(2);
  auto library = device::KernelLibrary::load(builder.plan, device::CpuLevel::V4);
  ASSERT_TRUE(library);
  auto world = hub->world(1);
  auto device = device::createCpuDevice(*library, {1, {}});
  std::byte *arena = *device->allocateArena(builder.plan.arena_bytes());
  std::thread other([&] {
    auto peer = hub->world(0);
    (void)peer->group({0, 1}).isOk();
  });
  auto executor = Executor::create(index, *builder.program, *world, *device, arena);
  other.join();
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().message,
            "rank 1 of 2: step 'sgd' (net.mir:9) sgd: the plan's machine code has no kernel 'gone'");
}

} // namespace
