// Every step sequence is executed on real data, on all ranks, and compared with the definition.
#include "AllShardings.h"

#include "dialects/dist/Reshard.h"
#include "runtime/machine/MachineFile.h"
#include "runtime/plan/Refinement.h"
#include "test/Campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

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
    term = (term * 7 + coordinates[p.axis] + 1) * 40503 % 9973; // no order in which a minimum or maximum would be obvious
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

int64_t combine(int64_t a, int64_t b, ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum: return a + b;
  case ReduceKind::Prod: return a * b;
  case ReduceKind::Min: return std::min(a, b);
  case ReduceKind::Max: return std::max(a, b);
  }
  return a;
}

/// An element with its terms brought together along the partial axes from number `next` on, which lie inside those before:
/// the most minor axis goes first.
int64_t definition(const Sharding &s, const Shape &at, int64_t rank = 0, size_t next = 0) {
  if (next == s.partial.size())
    return termOf(s, rank, at);
  std::optional<int64_t> value;
  for (int64_t member : groupOf(s.axes, {s.partial[next].axis}, rank)) {
    int64_t term = definition(s, at, member, next + 1);
    value = value ? combine(*value, term, s.partial[next].kind) : term;
  }
  return *value;
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
        int64_t value = holders.empty() ? 0 : valueIn(ranks[holders.front()], at);
        for (size_t i = 1; i < holders.size(); ++i)
          value = combine(value, valueIn(ranks[holders[i]], at), step.reduce);
        shard.data.push_back(value);
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

/// Runs the planned steps of one pair from `start` and compares with the definition; counts the kinds of steps.
void runPair(const Sharding &from, const Sharding &to, const Shape &shape, const std::vector<Shard> &start,
             std::map<MoveKind, int64_t> &seen) {
  std::vector<Shard> ranks = start;
  std::vector<ReshardStep> steps = planReshard(from, to, shape, 4, MachineModel::cpuLocal());
  std::string name = from.str() + " -> " + to.str();
  for (const ReshardStep &step : steps) {
    ++seen[step.kind];
    std::string wrong = execute(step, shape, ranks);
    ASSERT_EQ(wrong, "") << name << " " << moveKindName(step.kind);
  }
  // Nobody passes through full replication who does not start or end there.
  Sharding completed = from;
  completed.partial.clear();
  if (!to.isReplicated() && !completed.isReplicated())
    for (const ReshardStep &step : steps)
      EXPECT_FALSE(step.after.isReplicated()) << name;
  for (int64_t rank = 0; rank < from.devices(); ++rank) {
    size_t next = 0;
    EXPECT_EQ(ranks[rank].box, to.localBox(shape, rank)) << name;
    forEach(ranks[rank].box, [&](const Shape &at) {
      if (ranks[rank].data[next++] != definition(from, at))
        ADD_FAILURE() << name << " rank " << rank << " element " << next - 1;
    });
  }
}

/// Runs all ordered pairs; returns how often each kind of step occurred.
std::map<MoveKind, int64_t> runAllPairs(int64_t devices, const Shape &shape) {
  std::map<MoveKind, int64_t> seen;
  std::vector<Sharding> targets = test::allShardings(devices, shape.size(), false);
  for (const Sharding &from : test::allShardings(devices, shape.size(), true)) {
    std::vector<Shard> start = initial(from, shape);
    for (const Sharding &to : targets) {
      runPair(from, to, shape, start, seen);
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

TEST(Reshard, PartialThatIsCutInSeveralDimensionsIsOneReduceScatter) {
  // With more axes than are searched in full, too.
  for (std::vector<int64_t> matrix : {std::vector<int64_t>{2, 4}, {2, 4, 2, 3, 2}}) {
    Sharding partial{matrix, {{}, {}}, {{0, ReduceKind::Sum}, {1, ReduceKind::Sum}}};
    Sharding wanted{matrix, {{0}, {1}}, {}};
    for (size_t axis = 2; axis < matrix.size(); ++axis)
      for (Sharding *sharding : {&partial, &wanted})
        sharding->dims.insert(sharding->dims.begin(), {static_cast<int32_t>(axis)});
    std::vector<int64_t> shape(matrix.size(), 24);
    auto steps = planReshard(partial, wanted, shape, 4, MachineModel::cpuLocal());
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].kind, MoveKind::ReduceScatter);
    EXPECT_EQ(steps[0].dimension, -1);
    EXPECT_EQ(groupOf(steps[0].groupMatrix, steps[0].groupAxes, 0).size(), 8u);
    EXPECT_EQ(steps[0].receivedElements, 7 * elementCount(wanted.capacity(shape)));
  }
}

TEST(Reshard, FactorisationsWithoutRefinementExchangeDirectly) {
  auto steps = planReshard({{2, 3}, {{0}, {1}}, {}}, {{3, 2}, {{0}, {1}}, {}}, {6, 6}, 4, MachineModel::cpuLocal());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, MoveKind::Exchange);
  EXPECT_EQ(groupOf(steps[0].groupMatrix, steps[0].groupAxes, 4).size(), 6u);
}

// Three nodes of 2 ranks: (2, 3) cuts across them. What both matrices express, the whole tensor in 6 pieces, is gathered in
// nodes first.
TEST(Reshard, GathersWithinNodesThatTheFirstMatrixCutsAcross) {
  MachineModel machine = MachineModel::cpuLocal();
  machine.levels.insert(machine.levels.begin(), machine.levels[0]);
  machine.levels[0].ranks = 2;
  for (LinkCost &cost : machine.levels[1].costs)
    cost.betaUsPerByte *= 8;
  auto steps = planReshard({{2, 3}, {{0}, {}}, {{1, ReduceKind::Sum}}}, {{6}, {{}, {0}}, {}}, {768, 1536}, 4, machine);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].kind, MoveKind::ReduceScatter);
  EXPECT_EQ(steps[0].after, (Sharding{{6}, {{0}, {}}, {}}));
  EXPECT_EQ(steps[1].kind, MoveKind::AllGather);
  EXPECT_EQ(groupOf(steps[1].groupMatrix, steps[1].groupAxes, 5), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(steps[2].kind, MoveKind::Exchange);
}

TEST(Reshard, SwapOnASquareMeshIsOnePermute) {
  auto steps = planReshard({{2, 2}, {{0}, {1}}, {}}, {{2, 2}, {{1}, {0}}, {}}, {8, 8}, 4, MachineModel::cpuLocal());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, MoveKind::CollectivePermute);
  EXPECT_EQ(steps[0].receivedElements, 16);
}

//===-- random larger cases ------------------------------------------------===//

/// A device matrix of at most `most` devices; several axes, not only of 2.
std::vector<int64_t> randomMatrix(std::mt19937_64 &random, int64_t most) {
  std::vector<int64_t> matrix;
  int64_t devices = 1;
  for (int64_t axis : {2, 3, 2, 5, 4, 2, 7, 2}) // as they come, some left out
    if (random() % 2 == 0 && devices * axis <= most) {
      matrix.push_back(axis);
      devices *= axis;
    }
  if (matrix.empty())
    matrix.push_back(most);
  std::shuffle(matrix.begin(), matrix.end(), random);
  return matrix;
}

/// Axes on random dimensions, on none, or partial by any kind of reduction.
Sharding randomSharding(std::mt19937_64 &random, const std::vector<int64_t> &matrix, size_t dims, bool partial) {
  Sharding sharding{.axes = matrix, .dims = std::vector<std::vector<int32_t>>(dims)};
  std::vector<int32_t> order(matrix.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Min, ReduceKind::Max};
  ReduceKind kind = kinds[random() % 4];
  for (int32_t axis : order) {
    size_t place = random() % (dims + 2);
    if (place < dims)
      sharding.dims[place].push_back(axis);
    else if (place == dims && partial)
      sharding.partial.push_back({axis, random() % 4 ? kind : kinds[random() % 4]});
  }
  std::sort(sharding.partial.begin(), sharding.partial.end(),
            [](const PartialAxis &a, const PartialAxis &b) { return a.axis < b.axis; });
  return sharding.canonical();
}

TEST(Reshard, RandomLargerCasesGiveTheDefinition) {
  const auto rounds = static_cast<int64_t>(test::campaignCases(1000));
  std::map<MoveKind, int64_t> seen;
  int64_t uneven = 0, partial = 0, other = 0;
  for (int64_t round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    std::mt19937_64 random(round);
    std::vector<int64_t> matrix = randomMatrix(random, 64), target = matrix;
    if (random() % 3 == 0)
      std::shuffle(target.begin(), target.end(), random); // another factorisation of the same devices
    Shape shape(1 + random() % 6);
    int64_t elements = 1;
    for (int64_t &size : shape) {
      size = 1 + static_cast<int64_t>(random() % 9);
      elements *= size;
      if (elements > 400)
        elements /= std::exchange(size, 1);
    }
    Sharding from = randomSharding(random, matrix, shape.size(), true);
    Sharding to = randomSharding(random, target, shape.size(), false);
    uneven += !from.isEven(shape) || !to.isEven(shape);
    partial += from.isPartial();
    other += matrix != target;
    SCOPED_TRACE("round " + std::to_string(round));
    runPair(from, to, shape, initial(from, shape), seen);
  }
  std::cout << rounds << " cases, " << uneven << " uneven, " << partial << " partial, " << other << " between factorisations\n";
  EXPECT_GT(uneven * 10, rounds * 6);
  EXPECT_GT(partial * 10, rounds * 4);
  for (size_t kind = 0; kind < moveKinds; ++kind)
    EXPECT_GT(seen[static_cast<MoveKind>(kind)], 4) << moveKindName(static_cast<MoveKind>(kind));
}

//===-- properties of planned times -----------------------------------------===//

/// Least modelled time of one pair.
double plannedUs(const Sharding &from, const Sharding &to, const Shape &shape, const MachineModel &machine) {
  return reshardUs(planReshard(from, to, shape, 4, machine), 4, machine);
}

TEST(Reshard, TimesGrowWithSizeAndNeverFallWithoutALevel) {
  MachineModel hierarchy = *readMachine("dgx-h100"), flat = hierarchy;
  flat.levels.erase(flat.levels.begin());
  MachineModel cached = MachineModel::cpuLocal(); // with the terms that a calibration finds
  for (LinkCost &cost : cached.levels[0].costs) {
    cost.ownShare = 1;
    cost.cacheBytes = 1 << 16;
    cost.beyondCacheUsPerByte = 2 * cost.betaUsPerByte;
  }
  for (int round = 0; round < 150; ++round) {
    std::mt19937_64 random(round);
    std::vector<int64_t> matrix = randomMatrix(random, 32);
    size_t dims = 1 + random() % 3;
    Sharding from = randomSharding(random, matrix, dims, true), to = randomSharding(random, matrix, dims, false);
    Shape shape(dims, int64_t{2} * 2 * 3 * 5 * 7 * 4), larger = shape;
    larger[random() % dims] *= 2;
    std::string name = from.str() + " -> " + to.str();
    for (const MachineModel &machine : {MachineModel::cpuLocal(), hierarchy, cached})
      EXPECT_LE(plannedUs(from, to, shape, machine), plannedUs(from, to, larger, machine) * (1 + 1e-12)) << name;
    EXPECT_LE(plannedUs(from, to, shape, hierarchy), plannedUs(from, to, shape, flat) * (1 + 1e-12)) << name;
  }
}

// With many axes the search ends before everything is tried (later for even sizes, which are priced faster). What anybody
// would do first is tried.
TEST(Reshard, ManyAxesAreNoSlowerThanReducingEverythingAndThenMoving) {
  std::mt19937_64 random(5);
  const std::vector<int64_t> matrix(8, 2);
  const MachineModel machine = MachineModel::cpuLocal();
  for (int round = 0; round < 60; ++round) {
    std::vector<int64_t> shape(2 + random() % 4, 256);
    Sharding from = randomSharding(random, matrix, shape.size(), true),
             to = randomSharding(random, matrix, shape.size(), false);
    if (!from.isPartial())
      continue;
    Sharding whole = from;
    whole.partial.clear();
    double reduced = reshardUs(planReshard(from, whole, shape, 4, machine), 4, machine);
    double moved = reshardUs(planReshard(whole, to, shape, 4, machine), 4, machine);
    EXPECT_LE(reshardUs(planReshard(from, to, shape, 4, machine), 4, machine), (reduced + moved) * (1 + 1e-9))
        << from.str() << " -> " << to.str();
  }
}

TEST(Reshard, RelabellingTheRanksChangesNoTime) {
  for (int round = 0; round < 150; ++round) {
    std::mt19937_64 random(round);
    std::vector<int64_t> matrix = randomMatrix(random, 32);
    size_t dims = 1 + random() % 3;
    Sharding from = randomSharding(random, matrix, dims, true), to = randomSharding(random, matrix, dims, false);
    // Sums commute; other axes first is the same distribution with other numbers for the ranks.
    for (PartialAxis &partial : from.partial)
      partial.kind = ReduceKind::Sum;
    from = refine(from, matrix);
    to = refine(to, matrix);
    std::vector<int32_t> place(matrix.size());
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
    auto relabelled = [&](Sharding sharding) {
      for (size_t axis = 0; axis < matrix.size(); ++axis)
        sharding.axes[place[axis]] = matrix[axis];
      for (auto &dim : sharding.dims)
        for (int32_t &axis : dim)
          axis = place[axis];
      for (PartialAxis &partial : sharding.partial)
        partial.axis = place[partial.axis];
      std::sort(sharding.partial.begin(), sharding.partial.end(),
                [](const PartialAxis &a, const PartialAxis &b) { return a.axis < b.axis; });
      return sharding;
    };
    Shape shape(dims, int64_t{2} * 2 * 3 * 5 * 7 * 4);
    double us = plannedUs(from, to, shape, MachineModel::cpuLocal());
    EXPECT_NEAR(plannedUs(relabelled(from), relabelled(to), shape, MachineModel::cpuLocal()), us, 1e-9 * us)
        << from.str() << " -> " << to.str();
  }
}

} // namespace
