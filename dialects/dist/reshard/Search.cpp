#include "dialects/dist/reshard/Search.h"

#include "dialects/dist/reshard/Bound.h"
#include "dialects/dist/reshard/Matrices.h"
#include "dialects/dist/reshard/Moves.h"
#include "dialects/dist/reshard/StateTable.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>
#include <tuple>

namespace msc::dist {

namespace {

/// Moves that are priced, after which the best sequence found so far is taken; with few axes never reached.
constexpr int64_t mostWork = 100'000'000, mostWorkOfManyAxes = 3400;

class Search final : public MoveSink {
public:
  Search(const ReshardQuestion &question, const std::vector<Matrix> &matrices) : question(question), prices(question.machine) {
    for (const Matrix &matrix : matrices) {
      auto frame = std::make_unique<Frame>(question.machine, question.shape, matrix, frames.size());
      if (std::optional<State> goal = frame->stateOf(question.to))
        frame->setGoal(*goal);
      else
        frame->setGoal(question.to);
      moves.emplace_back(*frame, question, *this);
      frames.push_back(std::move(frame));
    }
    Frame &first = *frames[0]; // refines both
    source = *first.stateOf(question.from);
    bound.ask(prices, first, question.elementBytes);
    int64_t wanted = first.localElements(first.goalLists()), held = first.localElements(first.listsOf(source));
    mostElements = wanted + std::max(held, wanted);
    mayReplicate = first.isWhole(source) || first.isWhole(*first.goal());
  }

  std::optional<std::vector<ReshardStep>> run() {
    start();
    const int64_t limit = frames[0]->axisCount() <= fewAxes ? mostWork : mostWorkOfManyAxes;
    bool narrowed = false;
    while (!open.empty() && work <= limit) {
      size_t node = open.top().node;
      open.pop();
      if (nodes[node].us > known[nodes[node].state].us)
        continue; // a cheaper way to the same state came later
      if (isGoal(nodes[node].state))
        return path(node);
      expand(node);
      if (!narrowed && work > limit / 2 && cheapestGoal != none) {
        narrow();
        narrowed = true;
      }
    }
    return cheapestGoal == none ? std::nullopt : std::optional(path(cheapestGoal));
  }

private:
  static constexpr size_t none = static_cast<size_t>(-1);
  static constexpr int64_t tooMany = std::numeric_limits<int64_t>::max();

  struct Node {
    State state;
    double us = 0;
    size_t parent = none;
    Move move; ///< unless the state is the parent's, written over another matrix
    int64_t received = 0;
    int32_t steps = 0;
    bool renames = false;
  };
  struct Entry {
    double bound;
    int32_t steps;
    size_t node;
    bool operator<(const Entry &other) const { // the queue's top is the largest
      return std::tie(bound, steps, node) > std::tie(other.bound, other.steps, other.node);
    }
  };

  Frame &frameOf(const State &state) const { return *frames[state.frame]; }
  bool isGoal(const State &state) const { return frameOf(state).isGoal(state); }

  void start() {
    Frame &first = *frames[0];
    StateTable::Entry &entry = known[source];
    entry.us = 0;
    entry.bound = bound.of(first, source, first.listsOf(source));
    push({.state = entry.state}, entry.bound);
  }

  void push(Node node, double boundUs) {
    size_t number = nodes.size();
    nodes.push_back(node);
    if (isGoal(node.state) && node.us < goalUs) {
      goalUs = node.us;
      cheapestGoal = number;
    }
    open.push({node.us + boundUs, node.steps, number});
    // A way to the end, known early, spares all that cannot be better.
    if (question.options.exchange && !isGoal(node.state))
      moves[node.state.frame].towardsEnd(hereAt(number));
  }

  Here hereAt(size_t node) const {
    const State &state = nodes[node].state;
    Frame &frame = frameOf(state);
    Here here{.node = node, .state = state, .lists = frame.listsOf(state)};
    here.elements = frame.localElements(here.lists);
    return here;
  }

  void expand(size_t node) {
    Here here = hereAt(node);
    bool afterSlice = nodes[node].parent != none && !nodes[node].renames && nodes[node].move.kind == MoveKind::Slice;
    moves[here.state.frame].from(here, !afterSlice);
    if (frames.size() > 1)
      rename(node);
  }

  /// The same sharding over the matrices in which two neighbouring axes that are used as one change places.
  void rename(size_t node) {
    State state = nodes[node].state;
    Matrix matrix = frameOf(state).matrix();
    for (size_t axis = 0; axis + 1 < matrix.size(); ++axis) {
      uint8_t outer = state.place[axis], inner = state.place[axis + 1];
      if (matrix[axis] == matrix[axis + 1] || inner != (isCut(outer) ? outer + 1 : outer))
        continue;
      std::swap(matrix[axis], matrix[axis + 1]);
      auto found =
          std::find_if(frames.begin(), frames.end(), [&](const auto &frame) { return frame->matrix() == matrix; });
      std::swap(matrix[axis], matrix[axis + 1]);
      if (found == frames.end())
        continue;
      Node renamed = nodes[node];
      renamed.state.frame = static_cast<uint8_t>(found - frames.begin());
      renamed.parent = node;
      renamed.renames = true;
      reach(renamed, frameOf(renamed.state).listsOf(renamed.state));
    }
  }

  /// Can the node be part of a way that is better than those known?
  bool isWorthwhile(const Node &node, StateTable::Entry &entry, const AxisLists &lists) {
    if (entry.us <= node.us || node.us > goalUs)
      return false;
    if (entry.bound < 0)
      entry.bound = bound.of(frameOf(node.state), node.state, lists);
    return node.us + entry.bound <= goalUs;
  }

  /// Goes on from a node if it is worthwhile.
  void reach(const Node &node, const AxisLists &lists) {
    StateTable::Entry &entry = known[node.state];
    if (!isWorthwhile(node, entry, lists))
      return;
    entry.us = node.us;
    push(node, entry.bound);
  }

  /// Prices a move, at first as if nobody received anything, then by what its busiest rank receives at least: most
  /// moves are too slow even so.
  void offer(const Here &here, const Move &move) override {
    ++work;
    Frame &frame = frameOf(move.after);
    StateTable::Entry &entry = known[move.after];
    AxisLists after = frame.listsOf(move.after);
    if (entry.elements < 0)
      entry.elements = mayReplicate || !frame.isWhole(move.after) ? frame.localElements(after) : tooMany;
    int64_t elements = entry.elements, before = nodes[here.node].steps == 0 ? 0 : here.elements;
    if (elements > mostElements - before)
      return;
    GroupShape group = frame.groupAlong(move.group);
    Node node{.state = move.after, .parent = here.node, .move = move, .steps = nodes[here.node].steps + 1};
    auto isWorthIt = [&](int64_t received) {
      node.received = received;
      node.us = nodes[here.node].us +
                question.machine.moveUs(move.kind, group,
                                        static_cast<double>(received) * static_cast<double>(question.elementBytes));
      return isWorthwhile(node, entry, after);
    };
    bool worthIt;
    switch (move.kind) {
    case MoveKind::Slice:
      worthIt = isWorthIt(elements);
      break;
    case MoveKind::AllReduce:
      worthIt = isWorthIt(allReduceElements(elements, group.size));
      break;
    case MoveKind::ReduceScatter:
      worthIt = isWorthIt((group.size - 1) * elements);
      break;
    default:
      worthIt = isWorthIt(0) && isWorthIt(frame.lackingAtLeast(here.lists, after)) &&
                isWorthIt(frame.lacking(here.lists, after));
    }
    if (worthIt)
      reach(node, after);
  }

  /// The rest of the work goes to what begins like the cheapest way that is known, or reduces everything first.
  void narrow() {
    open = {};
    auto keep = [&](size_t node) {
      open.push({nodes[node].us + known[nodes[node].state].bound, nodes[node].steps, node});
    };
    for (size_t node = cheapestGoal; node != none; node = nodes[node].parent)
      keep(node);
    const Frame &first = *frames[0];
    State reduced = source;
    forEachAxis(first.reducedAxes(reduced), [&](size_t axis) { reduced.place[axis] = repeats; });
    for (size_t node = 0; node < nodes.size(); ++node)
      if (nodes[node].state == reduced)
        keep(node);
  }

  std::vector<ReshardStep> path(size_t node) const {
    std::vector<ReshardStep> steps;
    for (; nodes[node].parent != none; node = nodes[node].parent) {
      if (nodes[node].renames)
        continue;
      const Move &move = nodes[node].move;
      const Frame &frame = frameOf(move.after);
      ReshardStep step{.kind = move.kind, .after = frame.shardingOf(move.after), .groupMatrix = frame.matrix()};
      forEachAxis(move.group, [&](size_t axis) { step.groupAxes.push_back(static_cast<int32_t>(axis)); });
      step.dimension = move.dimension;
      step.splitDimension = move.splitDimension;
      step.reduce = move.reduce;
      step.receivedElements = nodes[node].received;
      steps.push_back(std::move(step));
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const ReshardQuestion &question;
  LeastPrices prices;
  Bound bound;
  State source;
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<Moves> moves; ///< by frame
  int64_t mostElements = 0; ///< of the shards before and after a step together
  bool mayReplicate = false;

  std::vector<Node> nodes;
  std::priority_queue<Entry> open;
  StateTable known;
  double goalUs = std::numeric_limits<double>::infinity();
  size_t cheapestGoal = none;
  int64_t work = 0; ///< moves offered
};

} // namespace

std::optional<std::vector<ReshardStep>> searchReshard(const Sharding &from, const Sharding &to,
                                                      const std::vector<int64_t> &shape, size_t elementBytes,
                                                      const MachineModel &machine, const ReshardOptions &options) {
  auto common = overCommonMatrix(from, to);
  if (!common)
    return std::nullopt;
  std::vector<Matrix> matrices = searchedMatrices(common->first.axes, machine, to.isPartial());
  if (matrices[0].size() > mostAxes || shape.size() > mostDims)
    return std::nullopt;
  Sharding source = from.canonical(), target = to.canonical(); // what several matrices express
  ReshardQuestion question{source, target, shape, elementBytes, machine, options};
  return Search(question, matrices).run();
}

} // namespace msc::dist
