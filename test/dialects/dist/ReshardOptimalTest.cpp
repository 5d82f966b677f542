// The planner's sequences against exhaustive search over all shardings of the devices. The oracle knows the primitives by
// what they do to boxes and lists of axes; it shares no code with the planner but the machine model. MSC_LONG=1 takes all
// pairs where the short run takes a sample.
#include "AllShardings.h"

#include "dialects/dist/Reshard.h"
#include "runtime/machine/MachineFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

using namespace msc;
using namespace msc::dist;

namespace {

using Shape = std::vector<int64_t>;
using Axes = std::vector<int32_t>;

/// Bytes are all that counts.
MachineModel withoutLatency() {
  MachineModel machine = MachineModel::cpuLocal();
  machine.launchUs = 0;
  machine.memoryBytesPerUs = INFINITY;
  for (LinkCost &cost : machine.levels[0].costs)
    cost.alphaUs = cost.hopUs = 0;
  return machine;
}

struct Edge {
  size_t to;
  double us;
};

/// All shardings of some devices and what one primitive costs between any two.
class Oracle {
public:
  Oracle(int64_t devices, const Shape &shape, const MachineModel &machine, size_t elementBytes, bool partial)
      : states(test::allShardings(devices, shape.size(), partial)), shape(shape), machine(machine),
        elementBytes(elementBytes) {
    for (const Sharding &state : states) {
      size.push_back(elementCount(state.capacity(shape)));
      whole.push_back(std::all_of(state.dims.begin(), state.dims.end(), [](const Axes &dim) { return dim.empty(); }));
    }
    edges.resize(states.size());
    exchanges.assign(states.size(), std::vector<double>(states.size(), INFINITY));
    for (size_t from = 0; from < states.size(); ++from)
      for (size_t to = 0; to < states.size(); ++to)
        if (from != to)
          connect(from, to);
  }

  /// Least time of a sequence; infinite if there is none.
  double least(size_t from, size_t to, bool exchange) const {
    std::vector<double> us(states.size(), INFINITY);
    std::vector<bool> done(states.size(), false);
    us[from] = 0;
    while (true) {
      size_t at = states.size();
      for (size_t i = 0; i < states.size(); ++i)
        if (!done[i] && us[i] < INFINITY && (at == states.size() || us[i] < us[at]))
          at = i;
      if (at == states.size() || at == to)
        return us[to];
      done[at] = true;
      auto relax = [&](size_t next, double cost) {
        bool fits = (at == from ? 0 : size[at]) + size[next] <= size[to] + std::max(size[from], size[to]);
        bool replicates = whole[next] && !whole[from] && !whole[to];
        if (fits && !replicates)
          us[next] = std::min(us[next], us[at] + cost);
      };
      for (const Edge &edge : edges[at])
        relax(edge.to, edge.us);
      if (exchange && exchanges[at][to] < INFINITY)
        relax(to, exchanges[at][to]);
    }
  }

  std::vector<Sharding> states;

private:
  double cost(MoveKind kind, const Sharding &over, const Axes &group, int64_t elements) const {
    return machine.moveUs(kind, groupShape(over.axes, group),
                          static_cast<double>(elements) * static_cast<double>(elementBytes));
  }

  void connect(size_t fromIndex, size_t toIndex) {
    auto common = overCommonMatrix(states[fromIndex], states[toIndex]);
    if (!common)
      return;
    const auto &[from, to] = *common;
    auto add = [&](MoveKind kind, const Axes &group, int64_t elements) {
      edges[fromIndex].push_back({toIndex, cost(kind, from, group, elements)});
    };
    if (from.partial != to.partial) {
      reduce(from, to, size[toIndex], add);
      return;
    }
    if (slicesLocally(from, to, shape)) {
      add(MoveKind::Slice, {}, size[toIndex]);
      return;
    }
    int64_t received = receivedElements(from, to, shape);
    move(from, to, received, add);
    Axes group = smallestGroup(from, to);
    bool permutes = true;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      permutes &= from.pieces(dim) == to.pieces(dim);
    if (permutes && !from.isPartial())
      add(MoveKind::CollectivePermute, group, received);
    exchanges[fromIndex][toIndex] =
        cost(permutes ? MoveKind::CollectivePermute : MoveKind::Exchange, from, group, received);
  }

  /// AllGather of one dimension, AlltoAll from one dimension to another.
  template <typename Add> void move(const Sharding &from, const Sharding &to, int64_t received, Add add) const {
    std::vector<size_t> shorter, longer;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      const Axes &a = from.dims[dim], &b = to.dims[dim];
      if (a == b)
        continue;
      if (a.size() > b.size() && std::equal(b.begin(), b.end(), a.begin()))
        shorter.push_back(dim);
      else if (a.size() < b.size() && std::equal(a.begin(), a.end(), b.begin()))
        longer.push_back(dim);
      else
        return;
    }
    if (shorter.size() != 1 || longer.size() > 1)
      return;
    size_t dim = shorter[0];
    Axes gone(from.dims[dim].begin() + static_cast<long>(to.dims[dim].size()), from.dims[dim].end());
    if (longer.empty()) {
      add(MoveKind::AllGather, gone, received);
      return;
    }
    Axes come(to.dims[longer[0]].begin() + static_cast<long>(from.dims[longer[0]].size()), to.dims[longer[0]].end());
    if (come == gone)
      add(MoveKind::AlltoAll, gone, received);
  }

  template <typename Add> void reduce(const Sharding &from, const Sharding &to, int64_t kept, Add add) const {
    Axes gone;
    for (const PartialAxis &p : from.partial)
      if (std::find(to.partial.begin(), to.partial.end(), p) == to.partial.end())
        gone.push_back(p.axis);
    if (from.partial.size() != to.partial.size() + gone.size())
      return;
    int64_t members = groupShape(from.axes, gone).size;
    if (from.dims == to.dims) {
      add(MoveKind::AllReduce, gone, allReduceElements(kept, members));
      return;
    }
    Axes come; // at the minor ends of any dimensions
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      const Axes &a = from.dims[dim], &b = to.dims[dim];
      if (a.size() > b.size() || !std::equal(a.begin(), a.end(), b.begin()))
        return;
      come.insert(come.end(), b.begin() + static_cast<long>(a.size()), b.end());
    }
    std::sort(come.begin(), come.end());
    if (come == gone)
      add(MoveKind::ReduceScatter, gone, (members - 1) * kept);
  }

  /// The fewest members that together hold all that each of them wants.
  Axes smallestGroup(const Sharding &from, const Sharding &to) const {
    Axes best;
    int64_t members = INT64_MAX;
    size_t count = from.axes.size();
    for (uint32_t set = 1; set < (1u << count); ++set) {
      Axes axes;
      for (size_t i = 0; i < count; ++i)
        if (set >> i & 1)
          axes.push_back(static_cast<int32_t>(i));
      bool partial = std::any_of(from.partial.begin(), from.partial.end(),
                                 [&](const PartialAxis &p) { return set >> p.axis & 1; });
      int64_t size = groupShape(from.axes, axes).size;
      if (!partial && size < members && suffices(from, to, axes)) {
        best = axes;
        members = size;
      }
    }
    return best;
  }

  bool suffices(const Sharding &from, const Sharding &to, const Axes &axes) const {
    for (int64_t rank = 0; rank < from.devices(); ++rank) {
      Box wanted = to.localBox(shape, rank);
      std::set<std::vector<int64_t>> pieces;
      int64_t held = 0;
      for (int64_t member : groupOf(from.axes, axes, rank)) {
        Box common = intersect(wanted, from.localBox(shape, member));
        std::vector<int64_t> key;
        for (const Range &range : common)
          key.insert(key.end(), {range.begin, range.end});
        if (elementCount(common) > 0 && pieces.insert(key).second)
          held += elementCount(common);
      }
      if (held != elementCount(wanted))
        return false;
    }
    return true;
  }

  const Shape shape;
  const MachineModel machine;
  size_t elementBytes;
  std::vector<int64_t> size;
  std::vector<bool> whole;
  std::vector<std::vector<Edge>> edges;
  std::vector<std::vector<double>> exchanges; ///< [from][to]: the direct exchange
};

bool isLong() {
  const char *text = std::getenv("MSC_LONG");
  return text && *text && std::string(text) != "0";
}

/// Compares the planner with the oracle on (a sample of) all pairs; returns how many.
int64_t compareAll(int64_t devices, const Shape &shape, const MachineModel &machine, bool exchange, int64_t sample) {
  Oracle oracle(devices, shape, machine, 4, true);
  std::mt19937_64 random(static_cast<uint64_t>(devices) * 31 + shape.size());
  auto count = static_cast<int64_t>(oracle.states.size());
  double share = isLong() ? 1.0 : static_cast<double>(sample) / static_cast<double>(count * count);
  int64_t pairs = 0;
  for (size_t from = 0; from < oracle.states.size(); ++from)
    for (size_t to = 0; to < oracle.states.size(); ++to) {
      const Sharding &a = oracle.states[from], &b = oracle.states[to];
      if (b.isPartial() || !overCommonMatrix(a, b) || (share < 1 && std::uniform_real_distribution<>()(random) >= share))
        continue;
      ++pairs;
      double planned = reshardUs(planReshard(a, b, shape, 4, machine, {.exchange = exchange}), 4, machine);
      double least = oracle.least(from, to, exchange);
      if (std::abs(planned - least) > 1e-9 * std::max(1.0, least)) {
        std::string steps;
        for (const ReshardStep &step : planReshard(a, b, shape, 4, machine, {.exchange = exchange}))
          steps += std::string("\n  ") + moveKindName(step.kind) + " " + std::to_string(step.receivedElements) + " " +
                   step.after.str();
        ADD_FAILURE() << a.str() << " -> " << b.str() << ": planned " << planned << " us, least " << least << " us"
                      << steps;
        return pairs;
      }
    }
  return pairs;
}

struct Size {
  int64_t devices;
  Shape shape;
};

class AgainstExhaustiveSearch : public testing::TestWithParam<Size> {};

TEST_P(AgainstExhaustiveSearch, TimeIsLeast) {
  auto [devices, shape] = GetParam();
  compareAll(devices, shape, MachineModel::cpuLocal(), true, 4000);
  compareAll(devices, shape, MachineModel::cpuLocal(), false, 4000);
}

// Axes of equal size differ where only the inner ones stay within a node; and nodes of 2 of 6 ranks lie along an axis of (3, 2),
// across the axes of (2, 3).
TEST_P(AgainstExhaustiveSearch, TimeIsLeastOnTwoLevels) {
  auto [devices, shape] = GetParam();
  MachineModel machine = MachineModel::cpuLocal();
  machine.levels.insert(machine.levels.begin(), machine.levels[0]);
  machine.levels[0].ranks = 2;
  for (LinkCost &cost : machine.levels[1].costs)
    cost.betaUsPerByte *= 8;
  compareAll(devices, shape, machine, true, 1000);
}

// Where collectives do first what they can inside nodes, by halves or by a switch, a group costs less than its size and its
// block say.
TEST_P(AgainstExhaustiveSearch, TimeIsLeastInStages) {
  auto [devices, shape] = GetParam();
  for (int64_t node : {2, 4}) {
    MachineModel machine = *readMachine("dgx-h100");
    machine.levels[0].ranks = node;
    compareAll(devices, shape, machine, true, 1000);
  }
}

TEST_P(AgainstExhaustiveSearch, BytesAreLeastWithoutLatency) {
  auto [devices, shape] = GetParam();
  compareAll(devices, shape, withoutLatency(), true, 4000);
  compareAll(devices, shape, withoutLatency(), false, 4000);
}

std::vector<Size> allSizes() {
  std::vector<Size> sizes;
  for (int64_t devices : {2, 3, 4, 6, 8})
    for (const Shape &shape : {Shape{24}, Shape{7}, Shape{24, 48}, Shape{768, 1536}, Shape{7, 5}})
      sizes.push_back({devices, shape});
  for (int64_t devices : {2, 3, 4, 6})
    for (const Shape &shape : {Shape{24, 12, 36}, Shape{5, 7, 3}})
      sizes.push_back({devices, shape});
  sizes.push_back({8, {24, 16, 8}});
  return sizes;
}

INSTANTIATE_TEST_SUITE_P(All, AgainstExhaustiveSearch, testing::ValuesIn(allSizes()), [](const auto &info) {
  std::string name = std::to_string(info.param.devices) + "_devices";
  for (int64_t size : info.param.shape)
    name += "_" + std::to_string(size);
  return name;
});

TEST(Reshard, ReceivesTheLowerBoundWhereBytesAreAllThatCounts) {
  MachineModel machine = withoutLatency();
  for (int64_t devices : {2, 3, 4, 6, 8})
    for (const Shape &shape : {Shape{24, 48}, Shape{7, 5}})
      for (const Sharding &from : test::allShardings(devices, 2, false))
        for (const Sharding &to : test::allShardings(devices, 2, false))
          ASSERT_EQ(reshardElements(planReshard(from, to, shape, 4, machine)), receivedElements(from, to, shape))
              << from.str() << " -> " << to.str();
}

TEST(Reshard, NeverReceivesLessThanTheLowerBoundOfSumsAndOneReductionJustThat) {
  MachineModel machine = withoutLatency();
  int64_t reductions = 0;
  for (int64_t devices : {2, 3, 4, 6})
    for (const Shape &shape : {Shape{24, 48}, Shape{7, 5}})
      for (const Sharding &from : test::allShardings(devices, 2, true))
        for (const Sharding &to : test::allShardings(devices, 2, false)) {
          if (!from.isPartial())
            continue;
          std::vector<ReshardStep> steps = planReshard(from, to, shape, 4, machine);
          int64_t received = reshardElements(steps), bound = leastReceived(from, to, shape);
          ASSERT_GE(received, bound) << from.str() << " -> " << to.str();
          // Where every rank has a part or a term of its own, the classic (g - 1) / g and 2 (g - 1) / g.
          int64_t members = groupShape(steps[0].groupMatrix, steps[0].groupAxes).size, held = elementCount(from.capacity(shape));
          if (shape[0] == 24 && steps.size() == 1 && held * devices == elementCount(shape) * members) {
            ++reductions;
            EXPECT_EQ(received, bound) << from.str() << " -> " << to.str();
          }
        }
  EXPECT_GT(reductions, 50);
}

/// What kind of pair it is, for the figures by class.
std::string classOf(const Sharding &from, const Sharding &to) {
  auto common = *overCommonMatrix(from, to);
  const auto &[a, b] = common;
  bool samePieces = true, refines = true, coarsens = true;
  for (size_t dim = 0; dim < a.dims.size(); ++dim) {
    samePieces &= a.pieces(dim) == b.pieces(dim);
    refines &= a.pieces(dim) <= b.pieces(dim);
    coarsens &= a.pieces(dim) >= b.pieces(dim);
  }
  if (samePieces) {
    bool swaps = a.dims.size() == 2 && a.dims[0] == b.dims[1] && a.dims[1] == b.dims[0];
    return swaps ? "swap" : "permute";
  }
  if (refines)
    return "refine";
  if (coarsens)
    return "coarsen";
  return "dimension to dimension";
}

TEST(Reshard, WithoutTheExchangeStaysNearTheLowerBound) {
  MachineModel machine = withoutLatency();
  struct Sum {
    int64_t pairs = 0, elements = 0, bound = 0;
    double ratio() const { return static_cast<double>(elements) / static_cast<double>(bound); }
  };
  Sum all;
  std::map<std::string, Sum> classes;
  for (int64_t devices : {4, 6, 8})
    for (const Sharding &from : test::allShardings(devices, 2, false))
      for (const Sharding &to : test::allShardings(devices, 2, false)) {
        int64_t bound = receivedElements(from, to, {24, 48});
        if (bound == 0 || !overCommonMatrix(from, to))
          continue;
        int64_t elements = reshardElements(planReshard(from, to, {24, 48}, 4, machine, {.exchange = false}));
        for (Sum *sum : {&all, &classes[classOf(from, to)]}) {
          ++sum->pairs;
          sum->elements += elements;
          sum->bound += bound;
        }
      }
  std::printf("%-24s %6s %10s %10s %6s\n", "class", "pairs", "elements", "bound", "ratio");
  classes["all"] = all;
  for (const auto &[name, sum] : classes)
    std::printf("%-24s %6ld %10ld %10ld %6.3f\n", name.c_str(), sum.pairs, sum.elements, sum.bound, sum.ratio());
  EXPECT_LE(all.ratio(), 1.3);
  for (const auto &[name, sum] : classes)
    EXPECT_LE(sum.ratio(), 1.5) << name;
}

} // namespace
