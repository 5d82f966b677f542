#include "runtime/executor/FreeMemory.h"
#include "runtime/plan/PlanChecker.h"
#include "test/runtime/PlanBuilder.h"

#include <gtest/gtest.h>

#include <random>

using namespace msc;
using namespace msc::test;

namespace {

using Ranges = std::vector<FreeMemory::Range>;

TEST(FreeMemory, IsWhatNoStepUsesBetweenItsFirstAndItsLast) {
  PlanBuilder builder(2, plan::Program::PREDICT);
  const Sharding whole{{2}, {{}}, {}};
  auto buffer = [&](const char *name, plan::Buffer::Kind kind) { return builder.buffer(name, {16}, whole, kind); }; // 64 bytes each
  const uint32_t x = buffer("x", plan::Buffer::INPUT), c = buffer("c", plan::Buffer::CONSTANT);
  const uint32_t a = buffer("a", plan::Buffer::ACTIVATION), b = buffer("b", plan::Buffer::ACTIVATION);
  const uint32_t sum = buffer("sum", plan::Buffer::ACTIVATION), y = buffer("y", plan::Buffer::ACTIVATION);
  builder.input(x);
  builder.constant("fill", c, 1);                                   // 0
  builder.copy("first", x, a);                                      // 1
  plan::Step *start = builder.collective("sum", plan::Collective::ALL_REDUCE, a, sum); // 2
  start->mutable_collective()->set_asynchronous(true);
  builder.copy("beside", c, b);                                     // 3
  builder.wait("sum.wait", 2);                                      // 4
  const uint32_t view = builder.viewOf(b, "view", {16}, whole);
  builder.copy("last", sum, y);                                     // 5
  builder.copy("of a view", view, a);                               // 6: `a` again
  builder.output(y);
  plan::Plan plan = builder.plan;
  plan.set_arena_bytes(7 * 64);
  const PlanIndex index(plan);
  FreeMemory free(index, plan.programs(0), plan.programs(0).variants(0));
  // x, c and y are in use always; a from 1 to 6; b, which the view shows, from 3 to 6; the sum from 2 to 5.
  EXPECT_EQ(free.at(0), (Ranges{{128, 320}, {384, 448}}));
  EXPECT_EQ(free.at(1), (Ranges{{192, 320}, {384, 448}}));
  EXPECT_EQ(free.at(2), (Ranges{{192, 256}, {384, 448}}));
  EXPECT_EQ(free.at(4), (Ranges{{384, 448}}));
  EXPECT_EQ(free.at(6), (Ranges{{256, 320}, {384, 448}}));
}

TEST(FreeMemory, WhatWasStartedKeepsItsBuffersUntilItsWait) {
  PlanBuilder builder(2, plan::Program::PREDICT);
  const Sharding whole{{2}, {{}}, {}};
  auto buffer = [&](const char *name, plan::Buffer::Kind kind) { return builder.buffer(name, {16}, whole, kind); };
  const uint32_t x = buffer("x", plan::Buffer::INPUT), a = buffer("a", plan::Buffer::ACTIVATION), sum = buffer("sum", plan::Buffer::ACTIVATION);
  const uint32_t y = buffer("y", plan::Buffer::ACTIVATION);
  builder.input(x);
  builder.copy("first", x, a);
  builder.collective("sum", plan::Collective::ALL_REDUCE, a, sum)->mutable_collective()->set_asynchronous(true);
  builder.copy("beside", x, y);
  builder.wait("sum.wait", 1);
  builder.copy("behind", x, y);
  const PlanIndex index(builder.plan);
  FreeMemory free(index, builder.plan.programs(0), builder.plan.programs(0).variants(0));
  EXPECT_EQ(free.at(0), (Ranges{{128, 256}}));
  EXPECT_EQ(free.at(2), Ranges()); // nothing reads `a` and the sum here, but they are under way
  EXPECT_EQ(free.at(4), (Ranges{{64, 192}}));
}

} // namespace
