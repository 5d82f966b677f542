// The step loop allocates nothing. A program of its own, because it replaces operator new.
#include "test/runtime/executor/OnRanks.h"

#include <atomic>
#include <cstdlib>
#include <new>

using namespace msc;
using namespace msc::test;

namespace {
thread_local bool counting = false; ///< allocations of this thread count
std::atomic<int64_t> allocations{0};
} // namespace

void *operator new(size_t bytes) {
  if (counting)
    ++allocations;
  if (void *memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

TEST(Executor, StepsAllocateNothing) {
  // Without matrix products, whose library keeps books of its own on every call.
  PlanBuilder builder(2, plan::Program::PREDICT);
  uint32_t p = builder.buffer("p", {64, 3}, builder.partial(2)), q = builder.buffer("q", {64, 3}, builder.cut(2, -1));
  uint32_t rows = builder.buffer("rows", {64, 3}, builder.cut(2, 0)), columns = builder.buffer("columns", {64, 3}, builder.cut(2, 1));
  uint32_t scattered = builder.buffer("scattered", {64, 3}, builder.cut(2, 0));
  builder.fill("p", p, 1);
  builder.collective("reduce", plan::Collective::ALL_REDUCE, p, q);
  builder.collective("scatter", plan::Collective::REDUCE_SCATTER, p, scattered);
  builder.copy("slice", q, rows);
  builder.launch("mark", {rows}, {rows}, {rows}, {0, 1}, 4);
  builder.collective("transpose", plan::Collective::ALL_TO_ALL, rows, columns);
  builder.testKernels();
  onAllRanks(builder, [&](Bound &rank) {
    ASSERT_TRUE(rank.executor.runStep()); // buffers inside the communicator grow once
    std::vector<int64_t> times(2 * static_cast<size_t>(builder.variant->steps_size()));
    counting = true;
    for (int step = 0; step < 100; ++step)
      if (!rank.executor.runStep() || !rank.executor.runStep(times))
        ++allocations;
    counting = false;
  });
  EXPECT_EQ(allocations.load(), 0);
}

} // namespace
