#include "passes/sharding/cost/CertainOrder.h"
#include "passes/sharding/cost/StepUnits.h"
#include "test/Campaign.h"

#include "gtest/gtest.h"
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

using namespace msc::passes;

namespace {

using Loops = std::vector<KernelLoops::Loop>;

/// A step that is made event by event; numbers are buffers.
struct Made {
  StepEvents step;

  int32_t buffer() {
    step.buffers.push_back({.bytes = 64});
    return static_cast<int32_t>(step.buffers.size() - 1);
  }
  int32_t viewOf(int32_t shown) {
    const int32_t made = buffer();
    step.buffers[made].viewOf = shown;
    return made;
  }
  int32_t event(StepKind kind, std::vector<int32_t> reads, bool isEpilogue = false) {
    step.events.push_back({.kind = kind, .isEpilogue = isEpilogue, .reads = std::move(reads), .writes = {buffer()}});
    return step.events.back().writes.front();
  }
  /// Elements of rows, all operands of the same shape.
  int32_t elementwise(std::vector<int32_t> reads, Loops loops = {{8}, {16}}) {
    std::vector<int32_t> dims;
    for (size_t i = 0; i < loops.size(); ++i)
      dims.push_back(static_cast<int32_t>(i));
    return kernel({std::move(loops), std::vector(reads.size(), dims), {dims}}, reads);
  }
  int32_t kernel(KernelLoops loops, std::vector<int32_t> reads, bool isEpilogue = false) {
    const int32_t made = event(StepKind::Kernel, std::move(reads), isEpilogue);
    step.events.back().loops = static_cast<int32_t>(step.kernels.size());
    step.kernels.push_back(std::move(loops));
    return made;
  }
  std::vector<int64_t> steps() const {
    const StepUnits units(step);
    std::vector<int64_t> list;
    for (size_t i = 0; i < step.events.size(); ++i)
      list.push_back(units.stepOf(i));
    return list;
  }
};

using Steps = std::vector<int64_t>;

TEST(StepUnits, AKernelWaitsForWhatALaterOneReads) {
  Made made;
  const int32_t input = made.buffer(), label = made.buffer();
  const int32_t x = made.elementwise({input});
  const int32_t whole = made.event(StepKind::Call, {label}); // needs nothing of the kernel
  made.elementwise({x, whole});
  EXPECT_EQ(made.steps(), (Steps{1, 0, 1}));
}

TEST(StepUnits, NothingJoinsWhatItWaitsFor) {
  Made made;
  const int32_t x = made.elementwise({made.buffer()});
  const int32_t product = made.event(StepKind::Product, {x});
  made.elementwise({x, product});
  EXPECT_EQ(made.steps(), (Steps{0, 1, 2}));
}

TEST(StepUnits, WhatIsShownInAnotherShapeIsAnotherStep) {
  Made made;
  const int32_t x = made.elementwise({made.buffer()});
  made.elementwise({made.viewOf(x)});
  made.elementwise({x, made.viewOf(x)});
  EXPECT_EQ(made.steps(), (Steps{0, 1, 2}));
}

TEST(StepUnits, ReductionsOfOneKernelHaveTheSameDimensions) {
  const KernelLoops overColumns{{{8, false}, {16, true}}, {{0, 1}}, {{0, KernelLoops::none}}}, overAll{{{8, true}, {16, true}}, {{0, 1}}, {{}}};
  Made made;
  const int32_t x = made.elementwise({made.buffer()});
  made.kernel(overColumns, {x});
  made.kernel(overAll, {x});
  made.kernel(overColumns, {x});
  EXPECT_EQ(made.steps(), (Steps{0, 0, 1, 0}));
}

TEST(StepUnits, RowsJoinWhatReducesToThem) {
  Made made;
  const int32_t rows = made.kernel({{{8, false}, {16, true}}, {{0, 1}}, {{0, KernelLoops::none}}}, {made.buffer()});
  const int32_t scaled = made.elementwise({rows}, {{8}, {1}});
  made.kernel({{{8, false}, {16, false}}, {{0, 1}, {0, KernelLoops::none}}, {{0, 1}}}, {made.buffer(), scaled});
  made.elementwise({rows}, {{8}, {1}});
  EXPECT_EQ(made.steps(), (Steps{0, 0, 0, 0}));
  const int32_t other = made.elementwise({made.buffer()}, {{5}, {16}});
  made.kernel({{{8, false}, {16, false}}, {{0, 1}, {KernelLoops::none, 1}}, {{0, 1}}}, {made.buffer(), other});
  EXPECT_EQ(made.steps().back(), 2); // one has 5 rows
}

TEST(StepUnits, AProductTakesItsEpilogueAlong) {
  const KernelLoops bias{{{8}, {16}}, {{0, 1}, {1}}, {{0, 1}}};
  Made made;
  const int32_t first = made.event(StepKind::Product, {made.buffer()});
  made.kernel(bias, {first, made.buffer()}, true);
  const int32_t second = made.event(StepKind::Product, {made.buffer()});
  made.kernel(bias, {second, made.buffer()}, true);
  made.event(StepKind::Call, {second}); // somebody else reads it, too
  EXPECT_EQ(made.steps(), (Steps{0, 0, 1, 2, 3}));
}

// For GPUs alone: as passes::UnitOptions says, and where the sum is stored for its own sake.
TEST(StepUnits, ANarrowProductAddsABiasThatIsStoredAnyway) {
  const KernelLoops bias{{{8}, {16}}, {{0, 1}, {1}}, {{0, 1}}};
  struct Case {
    const char *reader;
    int64_t bytes, step; ///< of the sum
  };
  for (const Case &one : {Case{"call", 4 << 20, 0}, Case{"call", (4 << 20) - 1, 1}, Case{"kernel", 4 << 20, 1}, Case{"backward", 4 << 20, 0},
                          Case{"view", 4 << 20, 0}, Case{"fetched", 4 << 20, 0}}) {
    SCOPED_TRACE(fmt::format("{} {}", one.reader, one.bytes));
    Made made;
    const std::string reader = one.reader;
    const int32_t product = made.event(StepKind::Product, {made.buffer()}), sum = made.kernel(bias, {product, made.buffer()}, true);
    made.step.events.back().isNarrow = true;
    made.step.buffers[sum].bytes = one.bytes;
    made.step.buffers[sum].isFetched = reader == "fetched";
    if (reader == "call")
      made.event(StepKind::Call, {sum});
    else if (reader != "fetched")
      made.elementwise({reader == "view" ? made.viewOf(sum) : sum});
    made.step.events.back().isBackward = reader == "backward";
    EXPECT_EQ(StepUnits(made.step).stepOf(1), one.step);
  }
}

TEST(StepUnits, ACastJoinsWhatItsPassMade) {
  for (bool isBackward : {false, true}) { // of what is cast
    Made made;
    const int32_t first = made.elementwise({made.buffer()}), cast = made.elementwise({first});
    made.step.events.back().isBackward = isBackward;
    made.elementwise({cast});
    made.step.events.back().isBackward = made.step.events.back().isCast = true;
    EXPECT_EQ(made.steps(), isBackward ? Steps({0, 0, 0}) : Steps({0, 0, 1}));
  }
}

TEST(StepUnits, ASumInAnotherDirectionMakesItsTermsItself) {
  for (bool isCheap : {true, false})
    for (bool isReadElsewhere : {true, false}) {
      Made made;
      const int32_t x = made.buffer(), centred = made.elementwise({x});
      made.kernel({{{8}, {16, true}}, {{0, 1}}, {{0}}}, {centred});
      const int32_t terms = made.elementwise({centred});
      made.kernel({{{8, true}, {16}}, {{0, 1}}, {{1}}}, {terms});
      if (isReadElsewhere)
        made.elementwise({terms});
      for (StepEvent &event : made.step.events)
        event.isBackward = event.isCheap = true;
      made.step.events.front().isCheap = isCheap;
      const StepUnits units(made.step);
      EXPECT_EQ(units.stepOf(3), 1);
      EXPECT_EQ(units.readsOf(made.step, 3), std::vector<int32_t>({isReadElsewhere || !isCheap ? terms : x}));
    }
}

/// Kernels, products with epilogues and steps over whatever is there. Some are others under other strategies, and moves stand in front of
/// some reads. In a third of them most events read what is cast for them, and kernels behind them cast what they make.
struct Drawn {
  Made made;
  std::vector<OrderedEvent> events; ///< of all strategies
  size_t values = 0;
  std::vector<int32_t> place; ///< of each of `events` in the step; -1: it is not there
};

Drawn drawn(uint64_t structure, uint64_t strategy) {
  std::mt19937_64 draw(structure), other(strategy);
  Drawn all;
  std::vector<int32_t> buffers{all.made.buffer(), all.made.buffer()}; // of values
  std::vector<std::pair<int32_t, int32_t>> brought;                   // value, event of the list in front of which it may be moved
  std::vector<int32_t> broughtTo;                                     // buffer
  int32_t lastProduct = -1;
  std::set<int32_t> wide; // values that only the kernel reads that casts them
  auto add = [&](OrderedEvent event, bool isThere, bool castsReads) {
    std::vector<int32_t> reads;
    for (const OrderedEvent::Read &read : event.reads) {
      const std::pair key(read.value, read.since);
      const auto at = std::ranges::find(brought, key) - brought.begin();
      if (at == std::ssize(brought)) {
        brought.push_back(key);
        broughtTo.push_back(-1);
      }
      if (isThere && broughtTo[at] < 0)
        broughtTo[at] = read.since == static_cast<int32_t>(all.events.size()) && other() % 4 == 0 ? all.made.event(StepKind::Call, {buffers[read.value]})
                                                                                                 : buffers[read.value];
      reads.push_back(isThere ? broughtTo[at] : 0);
    }
    if (isThere) {
      const std::vector<int32_t> dims{0, 1};
      for (int32_t &read : reads)
        read = castsReads ? all.made.kernel({{{8}, {16}}, {dims}, {dims}}, {read}) : read;
      int32_t written;
      if (event.kind == OrderedEvent::Kind::Kernel) {
        const bool isOther = other() % 5 == 0; // of another size under this strategy: joins nothing
        KernelLoops loops{{{isOther ? 7 : 8}, {16}}, std::vector(reads.size(), dims), {dims}};
        if (event.addsOnly) { // in one of the two directions
          const int32_t left = event.writes.front() % 2;
          loops.loops[1 - left].isReduced = true;
          loops.writes = {{left}};
        }
        written = all.made.kernel(std::move(loops), reads, event.isEpilogue);
      } else {
        written = all.made.event(event.kind == OrderedEvent::Kind::Product ? StepKind::Product : StepKind::Call, reads);
      }
      buffers[event.writes.front()] = written;
      all.made.step.events.back().isCheap = event.isCheap;
    }
    all.place.push_back(isThere ? static_cast<int32_t>(all.made.step.events.size() - 1) : -1);
    all.events.push_back(std::move(event));
  };
  auto kindOf = [](uint64_t kind) {
    return kind < 3 ? OrderedEvent::Kind::Kernel : kind == 3 ? OrderedEvent::Kind::Product : OrderedEvent::Kind::Step;
  };
  const size_t count = 6 + draw() % 20;
  const bool isNarrow = structure % 3 == 0; // most of its events compute in f32 between casts
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<int32_t>(buffers.size());
    const auto here = static_cast<int32_t>(all.events.size());
    const uint64_t kind = draw() % 6;
    OrderedEvent event{.kind = kindOf(kind), .isEpilogue = kind == 5 && lastProduct >= 0, .reads = {}, .writes = {value}};
    if (event.isEpilogue) {
      event.kind = OrderedEvent::Kind::Kernel;
      event.reads.push_back({lastProduct, -1}); // never moved
    }
    std::set<int32_t> read;
    for (uint64_t n = draw() % 3 + !event.isEpilogue; n > 0; --n) {
      const auto near = std::min<size_t>(buffers.size(), 2 + draw() % 8);
      const auto from = static_cast<int32_t>(buffers.size() - 1 - draw() % near);
      if (!read.insert(from).second || from == lastProduct || wide.contains(from))
        continue;
      const auto before = std::ranges::find(brought, from, &std::pair<int32_t, int32_t>::first);
      const bool isAsBefore = draw() % 3 == 0 && before != brought.end() && before->second >= 0; // read where something before it read it
      event.reads.push_back({from, isAsBefore ? before->second : here});
    }
    if (event.reads.empty())
      event.reads.push_back({0, -1});
    const bool isRounded = isNarrow && draw() % 4 != 0 && !event.isEpilogue;
    buffers.push_back(-1);
    const bool isTwofold = draw() % 6 == 0 && !event.isEpilogue;
    event.isCheap = draw() % 5 != 0;
    event.addsOnly = draw() % 2 == 0 && event.kind == OrderedEvent::Kind::Kernel && event.reads.size() == 1 && !event.isEpilogue && !isRounded && !isTwofold;
    OrderedEvent otherwise = event;
    otherwise.kind = kindOf(draw() % 5);
    if (otherwise.reads.size() > 1 && draw() % 2)
      otherwise.reads.pop_back();
    for (OrderedEvent::Read &of : otherwise.reads)
      of.since = of.since == here ? here + 1 + isRounded : of.since;
    const bool isFirst = !isTwofold || other() % 2 == 0;
    if (event.kind == OrderedEvent::Kind::Product && !isTwofold && !isRounded)
      lastProduct = value;
    if (isRounded) {
      event.writes = {static_cast<int32_t>(buffers.size())};
      buffers.push_back(-1);
    }
    const int32_t written = event.writes.front();
    add(std::move(event), isFirst, isRounded);
    if (isRounded) {
      wide.insert(written);
      add({.kind = OrderedEvent::Kind::Kernel, .reads = {{written, -1}}, .writes = {value}}, isFirst, false);
    }
    if (isTwofold)
      add(std::move(otherwise), !isFirst, false);
  }
  all.values = buffers.size();
  for (StepEvent &event : all.made.step.events)
    event.isBackward = true;
  return all;
}

TEST(CertainOrder, HoldsUnderAllStrategies) {
  int64_t claims = 0, waits = 0, pairs = 0, remade = 0;
  for (uint64_t structure = 1; structure <= msc::test::campaignCases(400); ++structure) {
    const Drawn some = drawn(structure, 0);
    const std::vector<OrderedEvent> &events = some.events;
    const JoinableEvents joinable(events, some.values);
    std::vector<CertainOrder> orders;
    for (size_t at = 0; at < events.size(); ++at)
      orders.emplace_back(joinable, at);
    for (uint64_t strategy = 0; strategy < 12; ++strategy) {
      const Drawn run = drawn(structure, structure * 1000 + strategy);
      ASSERT_EQ(run.events, events);
      const StepUnits units(run.made.step);
      for (size_t at = 0; at < events.size(); ++at) {
        if (events[at].kind == OrderedEvent::Kind::Kernel || run.place[at] < 0)
          continue;
        const int64_t begins = units.stepOf(run.place[at]);
        for (size_t i = 0; i < events.size(); ++i) {
          if (run.place[i] < 0)
            continue;
          const int64_t step = units.stepOf(run.place[i]);
          pairs += i < at || (i > at && events[i].kind != OrderedEvent::Kind::Kernel);
          if (i < at && orders[at].isDone(i)) {
            ASSERT_LT(step, begins) << "structure " << structure << ", strategy " << strategy << ": " << i << " before " << at;
            ++claims;
          }
          if (i > at && orders[at].isLeft(i)) {
            ASSERT_GE(step, begins + (events[i].kind != OrderedEvent::Kind::Kernel)) // as its epilogue at the earliest
                << "structure " << structure << ", strategy " << strategy << ": " << i << " behind " << at;
            claims += events[i].kind != OrderedEvent::Kind::Kernel;
          }
          waits += i < at && step > begins;
        }
      }
      for (size_t i = 0; i < run.made.step.events.size(); ++i)
        remade += units.readsOf(run.made.step, i) != run.made.step.events[i].reads;
    }
  }
  EXPECT_GT(waits, 0); // some do
  EXPECT_GT(remade, 0);
  EXPECT_GT(static_cast<double>(claims), 0.5 * static_cast<double>(pairs));
  std::printf("%ld of %ld pairs are certain; %ld waited, %ld sums made their terms\n", claims, pairs, waits, remade);
}

} // namespace
