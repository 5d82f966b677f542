// Calibration of machines with nodes, on a communicator whose collectives take no time but advance a clock by what a
// model says.
#include "runtime/calibrate/Calibrate.h"
#include "runtime/calibrate/Measure.h"
#include "runtime/comm/thread/ThreadWorld.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

using namespace msc;

namespace {

/// What a collective costs, by whether its group lies within a node; the same for all kinds but AllReduce, whose two
/// phases start twice.
LinkCost costOf(MoveKind kind, bool crosses) {
  LinkCost cost = crosses ? LinkCost{.alphaUs = 60, .hopUs = 5, .betaUsPerByte = 8e-3}
                          : LinkCost{.alphaUs = 7, .hopUs = 0.5, .betaUsPerByte = 1e-3};
  if (kind == MoveKind::AllReduce)
    cost.alphaUs *= 2, cost.hopUs *= 2;
  return cost;
}

class ModelGroup final : public comm::Group {
public:
  ModelGroup(comm::Group &real, bool crosses, double &now) : real(real), crosses(crosses), now(now) {}
  int rank() const override { return real.rank(); }
  int size() const override { return real.size(); }
  const std::vector<int64_t> &members() const override { return real.members(); }

  /// The stopwatch's own, of F64, are real: the ranks have to agree.
  Status allReduce(const void *source, void *target, int64_t count, comm::ElementType type, ReduceKind kind,
                   const comm::OperationLabel &label) override {
    if (type != comm::ElementType::F32)
      return real.allReduce(source, target, count, type, kind, label);
    return take(MoveKind::AllReduce, 2.0 * 4 * static_cast<double>(count) * (size() - 1) / size());
  }
  Status reduceScatter(const void *, void *, std::span<const comm::Region> pieces, comm::ElementType, ReduceKind,
                       const comm::OperationLabel &) override {
    return take(MoveKind::ReduceScatter, 4.0 * static_cast<double>(pieces[rank()].count()) * (size() - 1));
  }
  Status exchange(const void *, void *, const comm::ExchangePlan &plan, const comm::OperationLabel &) override {
    double received = 0;
    for (const comm::Transfer &transfer : plan.receives)
      received += transfer.peer == rank() ? 0 : 4.0 * static_cast<double>(transfer.target.count());
    return take(MoveKind::Exchange, received);
  }
  Status barrier(const comm::OperationLabel &label) override { return real.barrier(label); }
  Status broadcast(void *data, size_t bytes, int root, const comm::OperationLabel &label) override {
    return real.broadcast(data, bytes, root, label);
  }

private:
  Status take(MoveKind kind, double bytes) {
    now += costOf(kind, crosses).us(size(), bytes);
    return {};
  }

  comm::Group &real;
  bool crosses;
  double &now;
};

/// Ranks in nodes of `node`; `now` is this rank's clock.
class ModelWorld final : public comm::World {
public:
  ModelWorld(std::unique_ptr<comm::World> real, int64_t node, double &now)
      : real(std::move(real)), node(node), now(now) {}
  int64_t rank() const override { return real->rank(); }
  int64_t size() const override { return real->size(); }
  int64_t localSize() const override { return node; }
  int64_t localRank() const override { return rank() % node; }
  const char *transport() const override { return "model"; }
  Result<comm::Group *> group(const std::vector<int64_t> &ranks) override {
    Result<comm::Group *> group = real->group(ranks);
    if (!group)
      return group;
    groups.push_back(std::make_unique<ModelGroup>(**group, ranks.front() / node != ranks.back() / node, now));
    return groups.back().get();
  }
  void abort(const Error &error) override { real->abort(error); }
  std::optional<Error> firstFailure() override { return real->firstFailure(); }
  bool takeReport() override { return real->takeReport(); }
  void enterStep(uint64_t epoch, uint64_t step) override { real->enterStep(epoch, step); }
  void setTimeout(std::chrono::milliseconds limit) override { real->setTimeout(limit); }
  std::chrono::milliseconds timeout() const override { return real->timeout(); }

private:
  std::unique_ptr<comm::World> real;
  int64_t node;
  double &now;
  std::vector<std::unique_ptr<comm::Group>> groups;
};

/// The levels that `ranks` ranks on nodes of `node` find; `given` as --ranks-per-node.
std::vector<LinkLevel> levelsOf(int64_t ranks, int64_t node, int64_t given) {
  auto hub = *comm::ThreadHub::create(ranks);
  std::vector<std::vector<LinkLevel>> found(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      double now = 0;
      ModelWorld world(hub->world(rank), node, now);
      Result<std::vector<LinkLevel>> levels = calibrateLevels(world, 0.3, given, [&] { return now; });
      ASSERT_TRUE(levels) << levels.error().message;
      found[static_cast<size_t>(rank)] = *levels;
    });
  for (std::thread &thread : threads)
    thread.join();
  return found[0];
}

void expectCosts(const LinkLevel &level, bool crosses) {
  for (size_t kind = 1; kind < moveKinds; ++kind) {
    LinkCost truth = costOf(static_cast<MoveKind>(kind), crosses);
    const LinkCost &cost = level.costs[kind];
    std::string name = level.name + " " + moveKindName(static_cast<MoveKind>(kind));
    EXPECT_NEAR(cost.us(2, 0), truth.us(2, 0), 0.05 * truth.us(2, 0)) << name;
    EXPECT_NEAR(cost.us(3, 1e6) - cost.us(3, 0), truth.us(3, 1e6) - truth.us(3, 0), 0.03 * truth.us(3, 1e6)) << name;
    for (double bytes : {1e3, 1e4, 1e5, 1e6})
      EXPECT_NEAR(cost.us(4, bytes), truth.us(4, bytes), 0.03 * truth.us(4, bytes)) << name << " " << bytes;
  }
}

TEST(CalibrateLevels, FindsTheCostsOfEachLevel) {
  std::vector<LinkLevel> levels = levelsOf(8, 4, 0);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].ranks, 4);
  EXPECT_EQ(levels[1].ranks, 0);
  expectCosts(levels[0], false);
  expectCosts(levels[1], true);
}

TEST(CalibrateLevels, TakesTheNodesThatAreGiven) {
  std::vector<LinkLevel> levels = levelsOf(6, 2, 2);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].ranks, 2);
  expectCosts(levels[1], true);
}

TEST(CalibrateLevels, HasOneLevelOnOneNodeAndOnNodesOfOneRank) {
  EXPECT_EQ(levelsOf(4, 4, 0).size(), 1u);
  EXPECT_EQ(levelsOf(4, 1, 0).size(), 1u);
  EXPECT_EQ(levelsOf(4, 1, 0)[0].name, "model");
}

TEST(GroupForms, CoverAllRanks) {
  EXPECT_EQ(consecutiveGroups(8).size(), 3u);
  std::vector<GroupForm> across = groupsAcross(12, 4); // one of each of 3 nodes, and all
  ASSERT_EQ(across.size(), 2u);
  EXPECT_EQ(across[0].size, 3);
  EXPECT_EQ(across[0].stride, 4);
  EXPECT_EQ(across[1].size, 12);
}

} // namespace
