#include "dialects/dist/ReshardSearch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <initializer_list>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace msc::dist {

namespace {

using Axes = std::vector<int32_t>;
using Shape = std::vector<int64_t>;
using AxisSet = uint32_t; ///< one bit per axis

constexpr size_t mostAxes = 16;
constexpr size_t mostDims = 12;
/// Up to this many axes every slice, every permutation and every order of reduced axes is tried; with more, those that
/// bring a dimension closer to what the goal has there.
constexpr size_t fewAxes = 4;
/// Work, in moves that are priced, after which the best sequence found so far is taken; with few axes never reached.
constexpr int64_t mostWork = 100'000'000, mostWorkOfManyAxes = 8000;
/// Ranks that can be looked at, where their pieces differ in size, in the time of pricing a move.
constexpr int64_t ranksPerMove = 16;

/// The place of one axis.
constexpr uint8_t repeats = 0xF0;
constexpr uint8_t partialBase = 0xF4; ///< plus the kind
constexpr uint8_t placeIn(size_t dim, size_t position) { return static_cast<uint8_t>(dim * 16 + position); }
constexpr bool isCut(uint8_t place) { return place < repeats; }
constexpr bool isPartial(uint8_t place) { return place >= partialBase; }

struct State {
  std::array<uint8_t, mostAxes> place{};
  bool operator==(const State &) const = default;
};

struct StateHash {
  size_t operator()(const State &state) const {
    uint64_t hash = 1469598103934665603ull; // FNV-1a
    for (uint8_t place : state.place)
      hash = (hash ^ place) * 1099511628211ull;
    return hash;
  }
};

/// The axes that cut each dimension, most major first: a State turned round.
struct Lists {
  std::array<std::array<uint8_t, mostAxes>, mostDims> axis{};
  std::array<uint8_t, mostDims> length{};
};

struct Move {
  MoveKind kind = MoveKind::Slice;
  State after;
  AxisSet group = 0;
  int64_t dimension = -1;
  int64_t splitDimension = -1;
  ReduceKind reduce = ReduceKind::Sum;
  int64_t received = 0;
  double us = 0;
};

class Search {
public:
  Search(const Sharding &from, const Sharding &to, const Shape &shape, size_t elementBytes, const MachineModel &machine,
         const ReshardOptions &options)
      : axes(from.axes.begin(), from.axes.end()), shape(shape), elementBytes(elementBytes), machine(machine),
        options(options), matrix(from.axes) {
    int64_t stride = 1;
    strides.resize(axes.size());
    for (size_t i = axes.size(); i-- > 0; stride *= axes[i])
      strides[i] = stride;
    devices = stride;
    for (size_t i = 0; i < axes.size(); ++i)
      levels.push_back(levelOf(i));
    start = stateOf(from);
    goal = stateOf(to);
    goalLists = listsOf(goal);
    goalElements = localElements(goalLists);
    startElements = localElements(listsOf(start));
    mayReplicate = isWhole(start) || isWhole(goal);
    leastReduce = cheapestOf({MoveKind::AllReduce, MoveKind::ReduceScatter});
    leastMove = cheapestOf({MoveKind::AllGather, MoveKind::AlltoAll, MoveKind::CollectivePermute, MoveKind::Exchange});
  }

  std::optional<std::vector<ReshardStep>> run() {
    push(start, 0, -1, {});
    const int64_t limit = axes.size() <= fewAxes ? mostWork : mostWorkOfManyAxes;
    bool narrowed = false;
    while (!open.empty()) {
      Entry entry = open.top();
      open.pop();
      size_t node = static_cast<size_t>(entry.node);
      if (nodes[node].us > best.at(nodes[node].state))
        continue; // a cheaper way to the same state came later
      if (nodes[node].state == goal)
        return path(node);
      if (work > limit)
        return cheapestGoal >= 0 ? std::optional(path(static_cast<size_t>(cheapestGoal))) : std::nullopt;
      expand(node);
      if (!narrowed && work > limit / 2 && cheapestGoal >= 0) {
        narrow();
        narrowed = true;
      }
    }
    return cheapestGoal >= 0 ? std::optional(path(static_cast<size_t>(cheapestGoal))) : std::nullopt;
  }

private:
  struct Node {
    State state;
    double us = 0;
    int64_t parent = -1;
    Move move;
    int32_t steps = 0;
  };
  struct Entry {
    double bound;
    int32_t steps;
    int64_t node;
    bool operator<(const Entry &other) const { // the queue's top is the largest
      return std::tie(bound, steps, node) > std::tie(other.bound, other.steps, other.node);
    }
  };

  std::vector<int64_t> axes, strides;
  std::vector<size_t> levels; ///< of the topology, by axis
  const Shape &shape;
  size_t elementBytes;
  const MachineModel &machine;
  ReshardOptions options;
  std::vector<int64_t> matrix;
  int64_t devices = 1;
  State start, goal;
  Lists goalLists;
  int64_t startElements = 0, goalElements = 0;
  bool mayReplicate = false;
  LinkCost leastReduce, leastMove;

  std::vector<Node> nodes;
  std::priority_queue<Entry> open;
  std::unordered_map<State, double, StateHash> best;
  double goalUs = std::numeric_limits<double>::infinity();
  int64_t cheapestGoal = -1;
  mutable int64_t work = 0; ///< moves that were priced, by what they cost

  //===-- states ----------------------------------------------------------===//

  State stateOf(const Sharding &sharding) const {
    State state;
    state.place.fill(repeats);
    for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
      for (size_t i = 0; i < sharding.dims[dim].size(); ++i)
        state.place[sharding.dims[dim][i]] = placeIn(dim, i);
    for (const PartialAxis &p : sharding.partial)
      state.place[p.axis] = static_cast<uint8_t>(partialBase + static_cast<uint8_t>(p.kind));
    return state;
  }

  Sharding shardingOf(const State &state) const {
    Sharding sharding{.axes = matrix, .dims = std::vector<Axes>(shape.size())};
    Lists lists = listsOf(state);
    for (size_t dim = 0; dim < shape.size(); ++dim)
      sharding.dims[dim].assign(lists.axis[dim].begin(), lists.axis[dim].begin() + lists.length[dim]);
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (isPartial(state.place[axis]))
        sharding.partial.push_back(
            {static_cast<int32_t>(axis), static_cast<ReduceKind>(state.place[axis] - partialBase)});
    return sharding;
  }

  Lists listsOf(const State &state) const {
    Lists lists;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (uint8_t place = state.place[axis]; isCut(place)) {
        size_t dim = place / 16, position = place % 16;
        lists.axis[dim][position] = static_cast<uint8_t>(axis);
        lists.length[dim] = std::max<uint8_t>(lists.length[dim], static_cast<uint8_t>(position + 1));
      }
    return lists;
  }

  int64_t pieces(const Lists &lists, size_t dim) const {
    int64_t product = 1;
    for (size_t i = 0; i < lists.length[dim]; ++i)
      product *= axes[lists.axis[dim][i]];
    return product;
  }

  int64_t localElements(const Lists &lists) const {
    int64_t product = 1;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t count = pieces(lists, dim);
      product *= (shape[dim] + count - 1) / count;
    }
    return product;
  }

  bool isWhole(const State &state) const {
    return std::none_of(state.place.begin(), state.place.begin() + static_cast<long>(axes.size()), isCut);
  }

  size_t commonPrefix(const Lists &a, const Lists &b, size_t dim) const {
    size_t i = 0;
    while (i < a.length[dim] && i < b.length[dim] && a.axis[dim][i] == b.axis[dim][i])
      ++i;
    return i;
  }

  AxisSet partialAxes(const State &state) const {
    AxisSet set = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (isPartial(state.place[axis]))
        set |= AxisSet(1) << axis;
    return set;
  }

  //===-- elements --------------------------------------------------------===//

  /// Elements that the busiest rank lacks.
  int64_t lacking(const Lists &from, const Lists &to) const {
    bool even = true, meets = true;
    int64_t wanted = 1, held = 1;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t before = pieces(from, dim), after = pieces(to, dim);
      even &= shape[dim] % before == 0 && shape[dim] % after == 0;
      size_t prefix = commonPrefix(from, to, dim);
      bool cuts = from.length[dim] > prefix, wants = to.length[dim] > prefix;
      // Different leading axes: some rank holds the first piece and wants the last one.
      meets &= !(cuts && wants);
      wanted *= shape[dim] / after;
      held *= shape[dim] / std::max(before, after);
    }
    if (even)
      return meets ? wanted - held : wanted;
    return lackingOnSomeRank(from, to);
  }

  int64_t lackingOnSomeRank(const Lists &from, const Lists &to) const {
    work += devices / ranksPerMove;
    int64_t most = 0;
    for (int64_t rank = 0; rank < devices; ++rank) {
      int64_t wanted = 1, held = 1;
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        Range have = rangeOf(from, dim, rank), want = rangeOf(to, dim, rank);
        wanted *= want.size();
        held *= std::max<int64_t>(0, std::min(have.end, want.end) - std::max(have.begin, want.begin));
      }
      most = std::max(most, wanted - held);
    }
    return most;
  }

  Range rangeOf(const Lists &lists, size_t dim, int64_t rank) const {
    int64_t piece = 0, count = 1;
    for (size_t i = 0; i < lists.length[dim]; ++i) {
      size_t axis = lists.axis[dim][i];
      piece = piece * axes[axis] + rank / strides[axis] % axes[axis];
      count *= axes[axis];
    }
    return pieceOf(shape[dim], piece, count);
  }

  //===-- lower bound -----------------------------------------------------===//

  /// The least of every term over the given kinds and all levels.
  LinkCost cheapestOf(std::initializer_list<MoveKind> kinds) const {
    LinkCost least{1e300, 1e300, 1e300};
    for (const LinkLevel &level : machine.levels)
      for (MoveKind kind : kinds) {
        const LinkCost &cost = level.costs[static_cast<size_t>(kind)];
        least.alphaUs = std::min(least.alphaUs, cost.alphaUs);
        least.hopUs = std::min(least.hopUs, cost.hopUs);
        least.betaUsPerByte = std::min(least.betaUsPerByte, cost.betaUsPerByte);
      }
    return least;
  }

  /// Partial axes that the goal completes.
  AxisSet reducedAxes(const State &state) const {
    AxisSet set = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (isPartial(state.place[axis]) && state.place[axis] != goal.place[axis])
        set |= AxisSet(1) << axis;
    return set;
  }

  /// Axes that cut a dimension where the goal does not cut it by the same axis behind as many pieces.
  AxisSet movedAxes(const Lists &from, const Lists &to) const {
    AxisSet set = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t before = 1;
      for (size_t i = 0; i < from.length[dim]; ++i) {
        size_t axis = from.axis[dim][i];
        if (!cutsBehind(to, dim, axis, before))
          set |= AxisSet(1) << axis;
        before *= axes[axis];
      }
    }
    return set;
  }

  bool cutsBehind(const Lists &lists, size_t dim, size_t axis, int64_t wanted) const {
    int64_t before = 1;
    for (size_t i = 0; i < lists.length[dim]; ++i) {
      if (lists.axis[dim][i] == axis)
        return before == wanted;
      before *= axes[lists.axis[dim][i]];
    }
    return false;
  }

  /// Least time of starting steps whose groups take up all of `talk`: a group over several axes has at least as many members
  /// as groups over each have together.
  double startUs(AxisSet talk, const LinkCost &least) const {
    int64_t hops = 0;
    for (AxisSet left = talk; left != 0; left &= left - 1)
      hops += axes[std::countr_zero(left)] - 1;
    return least.alphaUs + least.hopUs * static_cast<double>(hops);
  }

  /// No way to the goal takes less. A reduction brings no rank an element outside of its shard, and no other move reduces:
  /// both have to start, and each has its own bytes.
  double bound(const State &state) const {
    if (state == goal || goalElements == 0)
      return 0;
    Lists lists = listsOf(state);
    AxisSet reduced = reducedAxes(state), moved = movedAxes(lists, goalLists);
    int64_t lacks = moved != 0 ? lacking(lists, goalLists) : 0;
    double us = reduced != 0 ? startUs(reduced, leastReduce) : 0.0, bytes = static_cast<double>(elementBytes);
    us += leastReduce.betaUsPerByte * bytes * reducedElements(reduced);
    if (lacks > 0)
      us += startUs(moved, leastMove) + leastMove.betaUsPerByte * bytes * static_cast<double>(lacks);
    return us;
  }

  /// Elements that a rank receives at least while the axes in `reduced` (m ranks) are reduced. A shard is never smaller than
  /// the tensor cut by all n other ranks; a ReduceScatter among k of m receives (1 - 1 / k) of it and leaves 1 / k, so all
  /// of them together receive tensor / n * (1 - 1 / m), and an AllReduce more.
  double reducedElements(AxisSet reduced) const {
    double members = 1, tensor = 1;
    for (AxisSet left = reduced; left != 0; left &= left - 1)
      members *= static_cast<double>(axes[std::countr_zero(left)]);
    for (int64_t size : shape)
      tensor *= static_cast<double>(size);
    return tensor * (members - 1) / static_cast<double>(devices);
  }

  //===-- what is alike ---------------------------------------------------===//

  // Two states take equally long to the goal if renaming axes of one size and topology level, or dimensions of one
  // size, makes one the other and leaves the goal as it is. Of moves to such states only the first is offered.

  /// The first level that holds the groups of an axis.
  size_t levelOf(size_t axis) const {
    size_t level = 0;
    while (level + 1 < machine.levels.size() && machine.levels[level].ranks != 0 &&
           machine.levels[level].ranks % (strides[axis] * axes[axis]) != 0)
      ++level;
    return level;
  }

  /// Two axes that are alike here: both repeat, or both are partial of one kind.
  bool areAlike(const State &state, size_t a, size_t b) const {
    return axes[a] == axes[b] && state.place[a] == state.place[b] && goal.place[a] == goal.place[b] &&
           levels[a] == levels[b];
  }

  /// Has a set of axes that are alike the first ones only?
  bool isFirstOfAlike(const State &state, AxisSet among, AxisSet set) const {
    for (AxisSet left = set; left != 0; left &= left - 1)
      for (AxisSet skipped = among & ~set & ((left & -left) - 1); skipped != 0; skipped &= skipped - 1)
        if (areAlike(state, std::countr_zero(skipped), std::countr_zero(left)))
          return false;
    return true;
  }

  /// Do axes that are alike stand in ascending order?
  bool isFirstOfAlike(const State &state, const std::vector<size_t> &run) const {
    for (size_t i = 0; i < run.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (run[j] > run[i] && areAlike(state, run[j], run[i]))
          return false;
    return true;
  }

  /// Is no dimension before this one alike: neither is cut, here or in the goal?
  bool isFirstOfAlike(const Lists &lists, size_t dim) const {
    auto isFree = [&](size_t other) { return lists.length[other] == 0 && goalLists.length[other] == 0; };
    if (!isFree(dim))
      return true;
    for (size_t other = 0; other < dim; ++other)
      if (shape[other] == shape[dim] && isFree(other))
        return false;
    return true;
  }

  //===-- the queue -------------------------------------------------------===//

  void push(const State &state, double us, int64_t parent, const Move &move) {
    auto [known, added] = best.try_emplace(state, us);
    if (!added && known->second <= us)
      return;
    double reach = us + bound(state);
    if (reach > goalUs)
      return;
    known->second = us;
    int32_t steps = parent < 0 ? 0 : nodes[static_cast<size_t>(parent)].steps + 1;
    nodes.push_back({state, us, parent, move, steps});
    auto node = static_cast<int64_t>(nodes.size()) - 1;
    if (state == goal && us < goalUs) {
      goalUs = us;
      cheapestGoal = node;
    }
    open.push({reach, steps, node});
    // A way to the end, known early, spares all that cannot be better.
    if (options.exchange && state != goal)
      finish(hereAt(static_cast<size_t>(node)));
  }

  std::vector<ReshardStep> path(size_t node) const {
    std::vector<ReshardStep> steps;
    for (; nodes[node].parent >= 0; node = static_cast<size_t>(nodes[node].parent)) {
      const Move &move = nodes[node].move;
      ReshardStep step{.kind = move.kind, .after = shardingOf(move.after), .groupMatrix = matrix};
      for (AxisSet left = move.group; left != 0; left &= left - 1)
        step.groupAxes.push_back(std::countr_zero(left));
      step.dimension = move.dimension;
      step.splitDimension = move.splitDimension;
      step.reduce = move.reduce;
      step.receivedElements = move.received;
      steps.push_back(std::move(step));
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  /// The rest of the work goes to what begins like the cheapest way that is known, or reduces everything first.
  void narrow() {
    open = {};
    auto keep = [&](int64_t node) {
      const Node &kept = nodes[static_cast<size_t>(node)];
      open.push({kept.us + bound(kept.state), kept.steps, node});
    };
    for (int64_t node = cheapestGoal; node >= 0; node = nodes[static_cast<size_t>(node)].parent)
      keep(node);
    State reduced = start;
    for (AxisSet left = reducedAxes(start); left != 0; left &= left - 1)
      reduced.place[std::countr_zero(left)] = repeats;
    for (size_t node = 0; node < nodes.size(); ++node)
      if (nodes[node].state == reduced)
        keep(static_cast<int64_t>(node));
  }

  //===-- moves -----------------------------------------------------------===//

  struct Here {
    size_t node;
    State state;
    Lists lists;
    int64_t elements;
    bool afterSlice;
  };

  Here hereAt(size_t node) const {
    Here here{node, nodes[node].state, listsOf(nodes[node].state), 0,
              nodes[node].parent >= 0 && nodes[node].move.kind == MoveKind::Slice};
    here.elements = localElements(here.lists);
    return here;
  }

  /// Offers the plainest way on: all that is to be reduced, one kind after the other, then straight to the goal.
  void finish(const Here &here) {
    auto [open, kind] = reducible(here.state);
    if (open == 0)
      return exchange(here);
    if (axes.size() > fewAxes)
      allReduce(here, open, kind);
  }

  void expand(size_t node) {
    Here here = hereAt(node);
    reduce(here);
    gather(here);
    allToAll(here);
    permute(here);
    if (!here.afterSlice)
      slice(here);
  }

  void offer(const Here &here, Move move) {
    ++work;
    Lists after = listsOf(move.after);
    int64_t elements = localElements(after);
    bool first = nodes[here.node].parent < 0;
    if ((first ? 0 : here.elements) + elements > goalElements + std::max(startElements, goalElements))
      return;
    if (!mayReplicate && isWhole(move.after))
      return;
    int64_t members = 1;
    size_t outermost = axes.size();
    for (AxisSet left = move.group; left != 0; left &= left - 1) {
      size_t axis = std::countr_zero(left);
      members *= axes[axis];
      outermost = std::min(outermost, axis);
    }
    switch (move.kind) {
    case MoveKind::Slice: move.received = elements; break;
    case MoveKind::AllReduce: move.received = allReduceElements(elements, members); break;
    case MoveKind::ReduceScatter: move.received = (members - 1) * elements; break;
    default: move.received = lacking(here.lists, after);
    }
    GroupShape group{.size = members, .block = outermost < axes.size() ? strides[outermost] * axes[outermost] : 1};
    move.us = machine.moveUs(move.kind, group, static_cast<double>(move.received) * static_cast<double>(elementBytes));
    push(move.after, nodes[here.node].us + move.us, static_cast<int64_t>(here.node), move);
  }

  /// Straight to the goal; a CollectivePermute where every rank wants what one other rank holds.
  void exchange(const Here &here) {
    if (partialAxes(here.state) != partialAxes(goal) || here.state == goal)
      return;
    bool permutes = true;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      permutes &= pieces(here.lists, dim) == pieces(goalLists, dim);
    if (lacking(here.lists, goalLists) == 0)
      return offer(here, {.kind = MoveKind::Slice, .after = goal});
    if (AxisSet group = movedAxes(here.lists, goalLists))
      offer(here, {.kind = permutes ? MoveKind::CollectivePermute : MoveKind::Exchange, .after = goal, .group = group});
  }

  /// Partial axes of the kind that is brought together last: AllReduce leaves them repeating, ReduceScatter puts them
  /// at the minor ends of dimensions.
  void reduce(const Here &here) {
    auto [open, kind] = reducible(here.state);
    bool all = static_cast<size_t>(std::popcount(open)) <= fewAxes;
    for (AxisSet set = open; set != 0; set = (set - 1) & open) {
      if (!isFirstOfAlike(here.state, open, set))
        continue;
      if (!all && set != open && std::popcount(set) != 1)
        continue;
      allReduce(here, set, kind);
      scatter(here, set, kind);
    }
  }

  /// The partial axes that can be reduced next, if the goal completes any, and how.
  std::pair<AxisSet, ReduceKind> reducible(const State &state) const {
    AxisSet open = 0;
    uint8_t last = partialBase;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (isPartial(state.place[axis])) {
        if (state.place[axis] != last)
          open = 0; // kinds do not commute: the most minor one goes first
        last = state.place[axis];
        if (state.place[axis] != goal.place[axis])
          open |= AxisSet(1) << axis;
      }
    return {open, static_cast<ReduceKind>(last - partialBase)};
  }

  void allReduce(const Here &here, AxisSet set, ReduceKind kind) {
    Move move{.kind = MoveKind::AllReduce, .after = here.state, .group = set, .reduce = kind};
    for (AxisSet left = set; left != 0; left &= left - 1)
      move.after.place[std::countr_zero(left)] = repeats;
    offer(here, move);
  }

  void scatter(const Here &here, AxisSet set, ReduceKind kind) {
    Move move{.kind = MoveKind::ReduceScatter, .after = here.state, .group = set, .reduce = kind};
    if (axes.size() <= fewAxes)
      return scatterAll(here, move, set, 0, 0);
    scatterTowardsGoal(here, move);
    std::vector<size_t> run;
    for (AxisSet left = set; left != 0; left &= left - 1)
      run.push_back(std::countr_zero(left));
    bool all = run.size() <= fewAxes;
    do {
      if (!isFirstOfAlike(here.state, run))
        continue;
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        if (!isFirstOfAlike(here.lists, dim) || (!all && !continuesGoal(here.lists, dim, run)))
          continue;
        move.dimension = static_cast<int64_t>(dim);
        for (size_t i = 0; i < run.size(); ++i)
          move.after.place[run[i]] = placeIn(dim, here.lists.length[dim] + i);
        offer(here, move);
      }
    } while (all && std::next_permutation(run.begin(), run.end()));
  }

  /// Puts the axes in `left` at the minor ends of dimension `dim`, which has got `added` of them, and those behind it.
  void scatterAll(const Here &here, const Move &move, AxisSet left, size_t dim, size_t added) {
    if (left == 0)
      return offer(here, move);
    if (dim == shape.size())
      return;
    scatterAll(here, move, left, dim + 1, 0);
    if (added == 0 && !isFirstOfAlike(listsOf(move.after), dim))
      return;
    for (AxisSet rest = left; rest != 0; rest &= rest - 1) {
      auto axis = static_cast<size_t>(std::countr_zero(rest));
      if (!isFirstOfAlike(here.state, left, AxisSet(1) << axis))
        continue;
      Move next = move;
      next.after.place[axis] = placeIn(dim, here.lists.length[dim] + added);
      bool only = left == move.group || move.dimension == static_cast<int64_t>(dim);
      next.dimension = only ? static_cast<int64_t>(dim) : -1;
      scatterAll(here, next, left & ~(AxisSet(1) << axis), dim, added + 1);
    }
  }

  /// Onto several dimensions, each axis where the goal has it.
  void scatterTowardsGoal(const Here &here, Move move) {
    AxisSet left = move.group;
    size_t dims = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      size_t length = here.lists.length[dim], i = length;
      if (commonPrefix(here.lists, goalLists, dim) < length)
        continue;
      for (; i < goalLists.length[dim] && (left >> goalLists.axis[dim][i] & 1); ++i) {
        move.after.place[goalLists.axis[dim][i]] = placeIn(dim, i);
        left &= ~(AxisSet(1) << goalLists.axis[dim][i]);
      }
      dims += i > length;
    }
    if (left == 0 && dims > 1)
      offer(here, move);
  }

  /// Would the run, put at the end of a dimension, be what the goal has there?
  bool continuesGoal(const Lists &lists, size_t dim, const std::vector<size_t> &run) const {
    size_t length = lists.length[dim];
    if (commonPrefix(lists, goalLists, dim) < length || goalLists.length[dim] < length + run.size())
      return false;
    return std::equal(run.begin(), run.end(), goalLists.axis[dim].begin() + static_cast<long>(length));
  }

  void gather(const Here &here) {
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      Move move{.kind = MoveKind::AllGather, .after = here.state, .dimension = static_cast<int64_t>(dim)};
      for (size_t i = here.lists.length[dim]; i-- > 0;) {
        size_t axis = here.lists.axis[dim][i];
        move.after.place[axis] = repeats;
        move.group |= AxisSet(1) << axis;
        offer(here, move);
      }
    }
  }

  /// A run of axes from the minor end of one dimension to the minor end of another.
  void allToAll(const Here &here) {
    for (size_t source = 0; source < shape.size(); ++source)
      for (size_t target = 0; target < shape.size(); ++target) {
        if (source == target || !isFirstOfAlike(here.lists, target))
          continue;
        for (size_t length = 1; length <= here.lists.length[source]; ++length) {
          Move move{.kind = MoveKind::AlltoAll,
                    .after = here.state,
                    .dimension = static_cast<int64_t>(source),
                    .splitDimension = static_cast<int64_t>(target)};
          for (size_t i = 0; i < length; ++i) {
            size_t axis = here.lists.axis[source][here.lists.length[source] - length + i];
            move.after.place[axis] = placeIn(target, here.lists.length[target] + i);
            move.group |= AxisSet(1) << axis;
          }
          offer(here, move);
        }
      }
  }

  /// Every rank takes the whole shard of one other rank: each dimension stays cut into as many pieces.
  void permute(const Here &here) {
    if (partialAxes(here.state) != 0)
      return;
    if (axes.size() > fewAxes)
      return permuteTowardsGoal(here);
    State after = here.state;
    for (size_t axis = 0; axis < axes.size(); ++axis)
      after.place[axis] = repeats;
    permuteAll(here, 0, 0, 1, after);
  }

  void permuteAll(const Here &here, size_t dim, size_t position, int64_t product, const State &state) {
    if (dim == shape.size()) {
      if (state != here.state)
        offer(here, {.kind = MoveKind::CollectivePermute,
                     .after = state,
                     .group = movedAxes(here.lists, listsOf(state))});
      return;
    }
    int64_t wanted = pieces(here.lists, dim);
    if (product == wanted)
      return permuteAll(here, dim + 1, 0, 1, state);
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (state.place[axis] == repeats && wanted % (product * axes[axis]) == 0) {
        State after = state;
        after.place[axis] = placeIn(dim, position);
        permuteAll(here, dim, position + 1, product * axes[axis], after);
      }
  }

  /// Axes of equal size change places so that one dimension is cut as the goal cuts its major part.
  void permuteTowardsGoal(const Here &here) {
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      State after = here.state;
      for (size_t i = 0; i < std::min(here.lists.length[dim], goalLists.length[dim]); ++i) {
        size_t wanted = goalLists.axis[dim][i];
        size_t there = axisAt(after, placeIn(dim, i));
        if (there == wanted)
          continue;
        if (axes[there] != axes[wanted])
          break;
        std::swap(after.place[there], after.place[wanted]);
        Move move{.kind = MoveKind::CollectivePermute, .after = after};
        move.group = movedAxes(here.lists, listsOf(after));
        offer(here, move);
      }
    }
  }

  size_t axisAt(const State &state, uint8_t place) const {
    return static_cast<size_t>(std::find(state.place.begin(), state.place.end(), place) - state.place.begin());
  }

  /// Cuts by axes that repeat: costs little, and what moves, is reduced or gathered later is smaller.
  void slice(const Here &here) {
    if (axes.size() <= fewAxes)
      return sliceAll(here, 0, here.state);
    sliceTowardsGoal(here, 0, here.state);
    sliceToPiecesOfGoal(here);
  }

  void sliceAll(const Here &here, size_t dim, const State &state) {
    if (dim == shape.size()) {
      if (state != here.state)
        offer(here, {.kind = MoveKind::Slice, .after = state});
      return;
    }
    sliceAll(here, dim + 1, state);
    Lists lists = listsOf(state);
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (state.place[axis] == repeats) {
        State after = state;
        after.place[axis] = placeIn(dim, lists.length[dim]);
        sliceAll(here, dim, after);
      }
  }

  /// By the axes that the goal has there, for dimension `dim` and those behind it.
  void sliceTowardsGoal(const Here &here, size_t dim, const State &state) {
    if (dim == shape.size()) {
      if (state != here.state)
        offer(here, {.kind = MoveKind::Slice, .after = state});
      return;
    }
    sliceTowardsGoal(here, dim + 1, state);
    State after = state;
    size_t length = here.lists.length[dim];
    if (commonPrefix(here.lists, goalLists, dim) < length)
      return;
    for (size_t i = length; i < goalLists.length[dim] && after.place[goalLists.axis[dim][i]] == repeats; ++i) {
      after.place[goalLists.axis[dim][i]] = placeIn(dim, i);
      sliceTowardsGoal(here, dim + 1, after);
    }
  }

  /// Into as many pieces as the goal has, by whichever axes repeat: a permutation may do the rest.
  void sliceToPiecesOfGoal(const Here &here) {
    State after = here.state;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t have = pieces(here.lists, dim), wanted = pieces(goalLists, dim);
      if (wanted % have != 0)
        return;
      size_t length = here.lists.length[dim];
      for (size_t axis = 0; axis < axes.size() && have != wanted; ++axis)
        if (after.place[axis] == repeats && wanted % (have * axes[axis]) == 0) {
          after.place[axis] = placeIn(dim, length++);
          have *= axes[axis];
        }
      if (have != wanted)
        return;
    }
    if (after != here.state)
      offer(here, {.kind = MoveKind::Slice, .after = after});
  }
};

} // namespace

std::optional<std::vector<ReshardStep>> searchReshard(const Sharding &from, const Sharding &to,
                                                      const std::vector<int64_t> &shape, size_t elementBytes,
                                                      const MachineModel &machine, const ReshardOptions &options) {
  assert(from.axes == to.axes);
  if (from.axes.size() > mostAxes || shape.size() > mostDims)
    return std::nullopt;
  return Search(from, to, shape, elementBytes, machine, options).run();
}

} // namespace msc::dist
