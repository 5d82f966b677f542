// Threads that disagree, fail, leave or stall: nobody hangs, and everybody learns the first cause.
#include "runtime/comm/Operation.h"
#include "runtime/comm/shared/SharedRun.h"
#include "runtime/comm/thread/ThreadWorld.h"
#include "test/Campaign.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

using namespace msc;
using namespace msc::comm;
using std::chrono::milliseconds;

namespace {

const OperationLabel kLabel{"grad", "net.mir:14"};

/// Runs `body(world, group of all)` on threads and returns what each rank got.
std::vector<Status> outcomes(int64_t ranks, const std::function<Status(World &, Group &)> &body,
                             milliseconds timeout = milliseconds(0)) {
  auto hub = *ThreadHub::create(ranks);
  std::vector<Status> results(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto world = hub->world(r);
      world->setTimeout(timeout);
      std::vector<int64_t> all(ranks);
      std::iota(all.begin(), all.end(), 0);
      // A rank that comes late finds a run that has failed already, and gets the cause instead of a group.
      Result<Group *> group = world->group(all);
      results[r] = group ? body(*world, **group) : Status(group.error());
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

bool holds(const Status &status, const std::string &text) {
  return !status.isOk() && status.error().message.find(text) != std::string::npos;
}

Status sum(Group &group, int64_t count, ElementType type = ElementType::F32, ReduceKind kind = ReduceKind::Sum) {
  std::vector<double> data(count);
  return group.allReduce(data.data(), data.data(), count, type, kind, kLabel);
}

} // namespace

TEST(ThreadFailure, DifferentCountsNameBothSides) {
  for (int64_t count : {4, 4000}) {
    auto results = outcomes(4, [&](World &world, Group &group) { return sum(group, world.rank() == 2 ? 7 : count); });
    for (const Status &status : results) {
      ASSERT_FALSE(status.isOk());
      EXPECT_EQ(status.error().code, ExitCode::PeerFailed);
      EXPECT_TRUE(holds(status, "rank 0 is in AllReduce 'grad' of " + std::to_string(count) +
                                    " f32 (sum) at net.mir:14 (operation 1 of the group), rank 2 is in AllReduce "
                                    "'grad' of 7 f32"))
          << status.error().message;
    }
  }
}

TEST(ThreadFailure, DifferentTypesKindsAndOperationsAreFound) {
  auto types = outcomes(2, [](World &world, Group &group) {
    return sum(group, 8, world.rank() ? ElementType::I32 : ElementType::F32);
  });
  EXPECT_TRUE(holds(types[0], "8 f32") && holds(types[0], "8 i32"));
  auto kinds = outcomes(2, [](World &world, Group &group) {
    return sum(group, 8, ElementType::F32, world.rank() ? ReduceKind::Max : ReduceKind::Sum);
  });
  EXPECT_TRUE(holds(kinds[1], "(sum)") && holds(kinds[1], "(max)"));
  auto operations = outcomes(3, [](World &world, Group &group) {
    return world.rank() == 1 ? group.barrier({"epoch end", ""}) : sum(group, 900);
  });
  EXPECT_TRUE(holds(operations[0], "AllReduce 'grad'") && holds(operations[0], "Barrier 'epoch end'"));
}

TEST(ThreadFailure, ExchangeThatIsNotMutualIsFound) {
  auto results = outcomes(2, [](World &, Group &group) {
    std::vector<float> data(16), target(16);
    int peer = 1 - group.rank();
    Region four{0, {4}, {1}}, five{0, {5}, {1}};
    ExchangePlan plan{{{peer, four, four}}, {{peer, group.rank() ? five : four, four}}, ElementType::F32};
    return group.exchange(data.data(), target.data(), plan, kLabel);
  });
  for (const Status &status : results)
    EXPECT_TRUE(holds(status, "rank 0 expects 4 elements from rank 1, which sends 5")) << status.error().message;
}

TEST(ThreadFailure, AbortWakesEverybodyWithTheFirstCause) {
  auto start = std::chrono::steady_clock::now();
  auto results = outcomes(8, [](World &world, Group &group) -> Status {
    if (world.rank() == 3) {
      std::this_thread::sleep_for(milliseconds(100));
      world.abort({ExitCode::BadFile, "record 12 is broken", "fix it"});
      world.abort({ExitCode::Internal, "a later consequence", ""});
      return *world.firstFailure();
    }
    return sum(group, 100000);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(2000));
  for (int r = 0; r < 8; ++r) {
    ASSERT_FALSE(results[r].isOk());
    EXPECT_EQ(results[r].error().code, ExitCode::BadFile);
    EXPECT_EQ(results[r].error().message, r == 3 ? "record 12 is broken" : "rank 3 failed: record 12 is broken");
    EXPECT_EQ(results[r].error().help, "fix it");
  }
}

TEST(ThreadFailure, OneRankReportsAFailure) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> reports{0};
    auto results = outcomes(4, [&](World &world, Group &group) -> Status {
      world.enterStep(2, 7);
      Status done = world.rank() == 1 ? Status::ok() : sum(group, round % 2 ? 10 : 5000 + world.rank());
      reports += world.takeReport() + world.takeReport();
      return done;
    });
    EXPECT_EQ(reports, 1);
    if (round % 2 == 0) {
      EXPECT_FALSE(results[0].isOk());
    }
  }
}

TEST(ThreadFailure, AfterAFailureEveryOperationFails) {
  auto results = outcomes(2, [](World &world, Group &group) -> Status {
    if (world.rank() == 0)
      world.abort({ExitCode::NoResource, "no memory", ""});
    (void)sum(group, 4);
    return group.barrier(kLabel);
  });
  EXPECT_EQ(results[0].error().code, ExitCode::NoResource);
  EXPECT_EQ(results[1].error().code, ExitCode::NoResource);
}

TEST(ThreadFailure, ARankThatEndsIsNamed) {
  auto results = outcomes(3, [](World &world, Group &group) -> Status {
    return world.rank() == 1 ? Status::ok() : sum(group, 10);
  });
  EXPECT_TRUE(results[1].isOk());
  for (int r : {0, 2}) {
    EXPECT_TRUE(holds(results[r], "rank 1 failed: it ended while its peers wait in AllReduce 'grad'"));
    EXPECT_EQ(results[r].error().code, ExitCode::PeerFailed);
  }
}

TEST(ThreadFailure, TimeoutNamesWhoIsMissingAndWhereItIs) {
  auto results = outcomes(
      3,
      [](World &world, Group &group) -> Status {
        if (Status first = group.barrier({"start", ""}); !first)
          return first;
        if (world.rank() == 2)
          std::this_thread::sleep_for(milliseconds(1500));
        return sum(group, 10);
      },
      milliseconds(300));
  for (const Status &status : results) {
    ASSERT_FALSE(status.isOk());
    EXPECT_EQ(status.error().code, ExitCode::Timeout);
    EXPECT_TRUE(holds(status, "waiting for rank 2; rank 2 is busy since Barrier 'start'")) << status.error().message;
  }
}

TEST(ThreadFailure, AStallIsReportedOnceAndSurvived) {
  testing::internal::CaptureStderr();
  auto results = outcomes(4, [](World &world, Group &group) -> Status {
    if (world.rank() % 2)
      std::this_thread::sleep_for(milliseconds(5600));
    return sum(group, 10);
  });
  std::string said = testing::internal::GetCapturedStderr();
  for (const Status &status : results)
    EXPECT_TRUE(status.isOk());
  EXPECT_NE(said.find("made no progress for 5."), std::string::npos) << said;
  EXPECT_NE(said.find("waiting for ranks 1, 3"), std::string::npos) << said;
  EXPECT_NE(said.find("AllReduce 'grad' of 10 f32 (sum) at net.mir:14 of 4 ranks"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(WaitingTime, DoesNotCountWhileTheWaitingRankIsStopped) {
  WaitingTime time;
  std::this_thread::sleep_for(milliseconds(1500));
  EXPECT_EQ(time.sinceStart(), milliseconds(1000));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_GE(time.sinceStart(), milliseconds(1100));
}

TEST(ThreadFailure, BuffersOfAFailedRankMayGoAwayAtOnce) {
  // Under the address and thread sanitizers this finds a peer that still reads memory of a rank that has left.
  for (int round = 0; round < 20; ++round)
    outcomes(4, [&](World &world, Group &group) -> Status {
      for (int i = 0;; ++i) {
        auto data = std::make_unique<std::vector<float>>(40000 + 1000 * round);
        if (world.rank() == 1 && i == 3)
          world.abort({ExitCode::Failed, "stop", ""});
        if (Status done = group.allReduce(data->data(), data->data(), static_cast<int64_t>(data->size()),
                                          ElementType::F32, ReduceKind::Sum, kLabel);
            !done)
          return done;
      }
    });
}

TEST(ThreadHub, RefusesImpossibleNumbersOfRanks) {
  EXPECT_FALSE(ThreadHub::create(0).isOk());
  EXPECT_FALSE(ThreadHub::create(100000).isOk());
}

namespace {

enum class Fault { None, Abort, Leave, Count, Type, Operation, Slow };

/// A rank of a run in which `culprit` commits `fault` at operation `when` of 12; all ranks draw the same operations.
Status runWithFault(uint64_t seed, Fault fault, int64_t culprit, int when, World &world, Group &group) {
  std::mt19937_64 random(seed);
  for (int operation = 0; operation < 12; ++operation) {
    uint64_t kind = random() % 4;
    int64_t count = static_cast<int64_t>(random() % (random() % 2 ? 16 : 20000)) + 1;
    bool now = operation == when && world.rank() == culprit;
    if (now && fault == Fault::Abort)
      world.abort({ExitCode::BadFile, "record 12 is broken", ""});
    if (now && fault == Fault::Leave)
      return Status::ok();
    if (now && fault == Fault::Slow)
      std::this_thread::sleep_for(milliseconds(2));
    if (now && fault == Fault::Operation)
      kind = (kind + 1) % 2;
    bool otherType = now && fault == Fault::Type;
    std::vector<double> data(static_cast<size_t>(count) + 1);
    Status done = kind == 0   ? group.barrier(kLabel)
                  : kind == 1 ? group.broadcast(data.data(), static_cast<size_t>(count), 0, kLabel)
                              : sum(group, count + (now && fault == Fault::Count), otherType ? ElementType::I64 : ElementType::F64);
    if (!done)
      return done;
  }
  return Status::ok();
}

} // namespace

TEST(ThreadFailure, AnyFaultAnywhereReachesAllRanks) {
  const uint64_t cases = test::campaignCases(400);
  uint64_t failed = 0;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto ranks = static_cast<int64_t>(2 + random() % 7), culprit = static_cast<int64_t>(random() % static_cast<uint64_t>(ranks));
    auto fault = static_cast<Fault>(random() % 7);
    int when = static_cast<int>(random() % 12);
    auto results = outcomes(
        ranks, [&](World &world, Group &group) { return runWithFault(seed, fault, culprit, when, world, group); }, milliseconds(20000));
    // The operation before may be one that the fault leaves as it is: a barrier has no type.
    std::optional<Error> first;
    for (const Status &status : results)
      if (!status && !first)
        first = status.error();
    failed += first.has_value();
    if (fault == Fault::None || fault == Fault::Slow) {
      EXPECT_FALSE(first) << first->message;
    }
    if (fault == Fault::Abort || (fault == Fault::Leave && ranks > 1)) {
      ASSERT_TRUE(first);
      EXPECT_EQ(first->code, fault == Fault::Abort ? ExitCode::BadFile : ExitCode::PeerFailed);
      EXPECT_TRUE(fault == Fault::Abort || first->message.find("rank " + std::to_string(culprit) + " failed") == 0) << first->message;
    }
    for (size_t r = 0; first && r < results.size(); ++r) {
      bool left = fault == Fault::Leave && static_cast<int64_t>(r) == culprit;
      ASSERT_EQ(results[r].isOk(), left) << "rank " << r;
      if (!left) {
        EXPECT_EQ(results[r].error().code, first->code);
      }
    }
  }
  test::printCampaign(cases, "runs with a fault at a random place, " + std::to_string(failed) + " failed as they should");
  EXPECT_GT(failed, cases / 3);
}

TEST(OperationRecord, NamesTheOperatorOfTheUserAndCutsNoGeneratedName) {
  const std::string name = "redistribution_op_18446744073709551615CollectivePermute";
  OperationRecord record = makeRecord(Operation::ReduceScatter, 1, 64, ElementType::F32, ReduceKind::Sum,
                                      {name, "net.mir:14", "encoder.layer1.matmul"});
  EXPECT_EQ(record.str(), "ReduceScatter '" + name + "' for 'encoder.layer1.matmul' of 64 f32 (sum) at net.mir:14");
  record = makeRecord(Operation::Barrier, 1, 0, ElementType::F32, ReduceKind::Sum, {"", "", std::string(100, 'a') + ".matmul"});
  EXPECT_EQ(record.str(), "Barrier for '..." + std::string(46, 'a') + ".matmul'");
}
