// Every step sequence is executed on real data, on all ranks, and compared with the definition.
#include "AllShardings.h"

#include "dialects/dist/Reshard.h"

#include <gtest/gtest.h>

#include <map>

using namespace msc;
using namespace msc::dist;

namespace {

using Shape = std::vector<int64_t>;

/// One rank's shard: its box and the elements, row-major.
struct Shard {
  Box box;
  std::vector<int64_t> data;
};

/// Calls `visit` with every global index of the box, row-major.
template <typename Visit> void forEach(const Box &box, Visit visit) {
  std::vector<int64_t> at;
  for (const Range &range : box) {
    if (range.size() == 0)
      return;
    at.push_back(range.begin);
  }
  while (true) {
    visit(at);
    size_t dim = box.size();
    while (dim-- > 0) {
      if (++at[dim] < box[dim].end)
        break;
      at[dim] = box[dim].begin;
    }
    if (dim == static_cast<size_t>(-1))
      return;
  }
}

bool contains(const Box &box, const Shape &at) {
  for (size_t dim = 0; dim < at.size(); ++dim)
    if (at[dim] < box[dim].begin || at[dim] >= box[dim].end)
      return false;
  return true;
}

int64_t valueIn(const Shard &shard, const Shape &at) {
  int64_t offset = 0;
  for (size_t dim = 0; dim < at.size(); ++dim)
    offset = offset * shard.box[dim].size() + at[dim] - shard.box[dim].begin;
  return shard.data[offset];
}

/// The term that a rank holds of the element at `at`: depends on its coordinates on the partial axes.
int64_t termOf(const Sharding &s, int64_t rank, const Shape &at) {
  int64_t term = 1;
  std::vector<int64_t> coordinates = s.coordinates(rank);
  for (int64_t i : at)
    term = term * 31 + i;
  for (const PartialAxis &p : s.partial)
    term = term * 7 + coordinates[p.axis] + 1;
  return term;
}

std::vector<Shard> initial(const Sharding &s, const Shape &shape) {
  std::vector<Shard> ranks;
  for (int64_t rank = 0; rank < s.devices(); ++rank) {
    Shard shard{s.localBox(shape, rank), {}};
    forEach(shard.box, [&](const Shape &at) { shard.data.push_back(termOf(s, rank, at)); });
    ranks.push_back(std::move(shard));
  }
  return ranks;
}

/// The sum over the partial axes of an element.
int64_t definition(const Sharding &s, const Shape &at) {
  std::vector<int32_t> axes;
  for (const PartialAxis &p : s.partial)
    axes.push_back(p.axis);
  int64_t sum = 0;
  for (int64_t rank : groupOf(s.axes, axes, 0))
    sum += termOf(s, rank, at);
  return sum;
}

/// What is wrong with a step, or empty; `ranks` becomes the state after it.
std::string execute(const ReshardStep &step, const Shape &shape, std::vector<Shard> &ranks) {
  std::vector<Shard> after;
  int64_t most = 0;
  bool sums = step.kind == MoveKind::AllReduce || step.kind == MoveKind::ReduceScatter;
  for (int64_t rank = 0; rank < static_cast<int64_t>(ranks.size()); ++rank) {
    std::vector<int64_t> group =
        step.groupAxes.empty() ? std::vector<int64_t>{rank} : groupOf(step.groupMatrix, step.groupAxes, rank);
    Shard shard{step.after.localBox(shape, rank), {}};
    const Box &own = ranks[rank].box;
    std::string wrong;
    int64_t received = 0;
    forEach(shard.box, [&](const Shape &at) {
      std::vector<int64_t> holders;
      for (int64_t member : group)
        if (contains(ranks[member].box, at))
          holders.push_back(member);
      if (sums) {
        if (holders != group)
          wrong = "a member of the group lacks a term";
        int64_t sum = 0;
        for (int64_t member : holders)
          sum += valueIn(ranks[member], at);
        shard.data.push_back(sum);
        return;
      }
      bool local = contains(own, at);
      received += !local;
      if (holders.empty())
        wrong = "nobody in the group holds an element";
      else if (step.kind == MoveKind::Slice && !local)
        wrong = "a slice lacks an element";
      else if (step.kind == MoveKind::AllGather && holders.size() != 1)
        wrong = "gathered twice";
      else
        shard.data.push_back(valueIn(ranks[local ? rank : holders.front()], at));
    });
    if (!wrong.empty())
      return wrong;
    if (step.kind == MoveKind::AllReduce) {
      if (shard.box != own)
        return "an AllReduce changes the box";
      received = allReduceElements(static_cast<int64_t>(shard.data.size()), static_cast<int64_t>(group.size()));
    } else if (step.kind == MoveKind::ReduceScatter) {
      received = static_cast<int64_t>(shard.data.size() * (group.size() - 1));
    }
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      bool changes = shard.box[dim] != own[dim], grows = shard.box[dim].size() >= own[dim].size();
      auto is = [&](int64_t named) { return named == static_cast<int64_t>(dim); };
      if (step.kind == MoveKind::AllGather && changes && (!is(step.dimension) || !grows))
        return "AllGather changes another dimension";
      if (step.kind == MoveKind::AlltoAll && changes && !(is(step.dimension) && grows) && !(is(step.splitDimension)))
        return "AlltoAll changes another dimension";
    }
    if (step.kind == MoveKind::CollectivePermute &&
        std::none_of(group.begin(), group.end(), [&](int64_t member) { return ranks[member].box == shard.box; }))
      return "a permuted shard comes from several ranks";
    most = std::max(most, step.kind == MoveKind::Slice ? static_cast<int64_t>(shard.data.size()) : received);
    after.push_back(std::move(shard));
  }
  ranks = std::move(after);
  if (most != step.receivedElements)
    return "claims to receive " + std::to_string(step.receivedElements) + " elements, receives " + std::to_string(most);
  return "";
}

class ReshardAll : public testing::TestWithParam<int64_t> {};

/// Runs all ordered pairs; returns how often each kind of step occurred.
std::map<MoveKind, int64_t> runAllPairs(int64_t devices, const Shape &shape) {
  std::map<MoveKind, int64_t> seen;
  MachineModel machine = MachineModel::cpuLocal();
  std::vector<Sharding> targets = test::allShardings(devices, shape.size(), false);
  for (const Sharding &from : test::allShardings(devices, shape.size(), true)) {
    std::vector<Shard> start = initial(from, shape);
    for (const Sharding &to : targets) {
      std::vector<Shard> ranks = start;
      std::vector<ReshardStep> steps = planReshard(from, to, shape, 4, machine);
      std::string name = from.str() + " -> " + to.str();
      for (const ReshardStep &step : steps) {
        ++seen[step.kind];
        std::string wrong = execute(step, shape, ranks);
        EXPECT_EQ(wrong, "") << name << " " << moveKindName(step.kind);
        if (!wrong.empty())
          return seen;
      }
      // Nobody passes through full replication who does not start or end there.
      Sharding completed = from;
      completed.partial.clear();
      if (!to.isReplicated() && !completed.isReplicated())
        for (const ReshardStep &step : steps)
          EXPECT_FALSE(step.after.isReplicated()) << name;
      for (int64_t rank = 0; rank < devices; ++rank) {
        size_t next = 0;
        EXPECT_EQ(ranks[rank].box, to.localBox(shape, rank)) << name;
        forEach(ranks[rank].box, [&](const Shape &at) {
          if (ranks[rank].data[next++] != definition(from, at))
            ADD_FAILURE() << name << " rank " << rank << " element " << next - 1;
        });
      }
      if (testing::Test::HasFailure())
        return seen;
    }
  }
  return seen;
}

TEST_P(ReshardAll, StepsGiveTheDefinitionOnEvenAndUnevenShapes) {
  int64_t devices = GetParam();
  std::vector<Shape> shapes = {{8}, {7}, {8, 6}, {5, 3}, {16, 1}, {4, 3, 2}};
  if (devices < 8)
    shapes.push_back({6, 5, 4});
  for (const Shape &shape : shapes) {
    runAllPairs(devices, shape);
    if (HasFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ReshardAll, testing::Values(2, 3, 4, 6, 8));

TEST(Reshard, EveryKindOccurs) {
  auto seen = runAllPairs(8, {8, 8});
  EXPECT_GT(seen[MoveKind::Slice], 100);
  EXPECT_GT(seen[MoveKind::AllReduce], 100);
  EXPECT_GT(seen[MoveKind::ReduceScatter], 100);
  EXPECT_GT(seen[MoveKind::AllGather], 100);
  EXPECT_GT(seen[MoveKind::AlltoAll], 100);
  EXPECT_GT(seen[MoveKind::CollectivePermute], 100);
  EXPECT_GT(seen[MoveKind::Exchange], 100);
}

TEST(Reshard, QuickstartInputIsOneAlltoAllInItsRow) {
  auto steps = planReshard({{8}, {{0}, {}}, {}}, {{2, 4}, {{0}, {1}}, {}}, {16, 32}, 4, MachineModel::cpuLocal());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, MoveKind::AlltoAll);
  EXPECT_EQ(groupOf(steps[0].groupMatrix, steps[0].groupAxes, 0), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(steps[0].splitDimension, 1);
  EXPECT_EQ(steps[0].dimension, 0);
  EXPECT_EQ(steps[0].receivedElements, 48);
}

TEST(Reshard, PartialThatIsCutByItsAxesIsOneReduceScatter) {
  Sharding partial{{2, 4}, {{0}, {}}, {{1, ReduceKind::Sum}}};
  auto steps = planReshard(partial, {{2, 4}, {{0}, {1}}, {}}, {16, 16}, 4, MachineModel::cpuLocal());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, MoveKind::ReduceScatter);
  EXPECT_EQ(steps[0].dimension, 1);
  EXPECT_EQ(steps[0].receivedElements, 96); // 3 / 4 of 8 x 16
}

TEST(Reshard, FactorisationsWithoutRefinementExchangeDirectly) {
  auto steps = planReshard({{2, 3}, {{0}, {1}}, {}}, {{3, 2}, {{0}, {1}}, {}}, {6, 6}, 4, MachineModel::cpuLocal());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, MoveKind::Exchange);
  EXPECT_EQ(groupOf(steps[0].groupMatrix, steps[0].groupAxes, 4).size(), 6u);
}

TEST(Reshard, SwapOnASquareMeshIsOnePermute) {
  auto steps = planReshard({{2, 2}, {{0}, {1}}, {}}, {{2, 2}, {{1}, {0}}, {}}, {8, 8}, 4, MachineModel::cpuLocal());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, MoveKind::CollectivePermute);
  EXPECT_EQ(steps[0].receivedElements, 16);
}

} // namespace
