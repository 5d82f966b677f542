// What entries of a sequence wait for.
#include "runtime/executor/EntryOrder.h"

#include <gtest/gtest.h>

using namespace msc;

namespace {

using Entries = std::vector<uint32_t>;

plan::Step stepOn(uint32_t stream, std::vector<uint32_t> after = {}) {
  plan::Step step;
  step.set_stream(stream);
  for (uint32_t earlier : after)
    step.add_after(earlier);
  return step;
}
plan::Step waitFor(uint32_t start, uint32_t stream = 0) {
  plan::Step step = stepOn(stream);
  step.mutable_wait()->set_step(start);
  return step;
}

TEST(EntryOrder, OtherStreamsOnly) {
  EntryOrder order;
  EXPECT_EQ(order.append(0, stepOn(0), 0), Entries{});
  EXPECT_EQ(order.append(1, stepOn(0, {0}), 1), Entries{});
  EXPECT_EQ(order.append(2, stepOn(1, {0, 1}), 2), Entries{1}); // what comes later on that stream is enough
}

TEST(EntryOrder, AWaitHoldsBackWhatFollowsOnItsStream) {
  EntryOrder order;
  order.append(0, stepOn(0), 0);
  order.append(1, stepOn(1, {0}), 1); // a start
  EXPECT_EQ(order.append(2, stepOn(0), 2), Entries{}); // beside it
  order.pass(3, waitFor(1));
  EXPECT_EQ(order.append(4, stepOn(0), 3), Entries{1});
  EXPECT_EQ(order.append(5, stepOn(0), 4), Entries{}); // the entry before has waited
}

TEST(EntryOrder, AStartedCollectiveRunsBesideWhatFollows) {
  EntryOrder order;
  order.append(0, stepOn(0), 0);
  EXPECT_EQ(order.start(1, stepOn(0), 1, 1), Entries{0}); // behind what was there on its stream
  EXPECT_EQ(order.append(2, stepOn(0), 2), Entries{});
  EXPECT_EQ(order.start(3, stepOn(0), 3, 1), Entries{2});
  order.pass(4, waitFor(1));
  EXPECT_EQ(order.append(5, stepOn(0), 4), Entries{1});
  order.pass(6, waitFor(3));
  EXPECT_EQ(order.append(7, stepOn(0), 5), Entries{3});
}

TEST(EntryOrder, SeveralWaitsInARow) {
  EntryOrder order;
  order.append(0, stepOn(1), 0);
  order.append(1, stepOn(2), 1);
  order.pass(2, waitFor(0));
  order.pass(3, waitFor(1));
  EXPECT_EQ(order.append(4, stepOn(0), 2), (Entries{0, 1}));
}

TEST(EntryOrder, AfterAWaitIsAfterAllThatItComesAfter) {
  EntryOrder order;
  order.append(0, stepOn(1), 0);
  order.append(1, stepOn(0), 1);
  order.pass(2, waitFor(0));
  EXPECT_EQ(order.append(3, stepOn(2, {2}), 2), (Entries{1, 0}));
}

TEST(EntryOrder, StepsWithNothingToDoPassOnWhatTheyWaitFor) {
  EntryOrder order;
  order.append(0, stepOn(1), 0);
  order.pass(1, stepOn(0, {0})); // idle on this rank
  EXPECT_EQ(order.append(2, stepOn(2, {1}), 1), Entries{0});
  EXPECT_EQ(order.append(3, stepOn(0), 2), Entries{0});
}

TEST(EntryOrder, ASequenceBeginsAnew) {
  EntryOrder order;
  order.append(0, stepOn(1), 0);
  order.restart();
  EXPECT_EQ(order.append(1, stepOn(0, {0}), 0), Entries{});
}

} // namespace
