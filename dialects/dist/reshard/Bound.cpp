#include "dialects/dist/reshard/Bound.h"

#include <algorithm>
#include <cmath>

namespace msc::dist {

void LeastPrices::Cost::lower(const Cost &other) {
  alphaUs = std::min(alphaUs, other.alphaUs);
  ringHopUs = std::min(ringHopUs, other.ringHopUs);
  treeHopUs = std::min(treeHopUs, other.treeHopUs);
  hasSwitch |= other.hasSwitch;
  betaUsPerByte = std::min(betaUsPerByte, other.betaUsPerByte);
}

double LeastPrices::Cost::hopsUs(int64_t members) const {
  if (hasSwitch || members == 1) // one step, whatever the group: it is in alpha
    return 0;
  auto n = static_cast<double>(members);
  return std::min(ringHopUs * (n - 1), treeHopUs * std::log2(n));
}

/// A switch spares an AllReduce up to half of its bytes.
static LeastPrices::Cost termsOf(const LinkCost &cost, MoveKind kind, double startShare) {
  LeastPrices::Cost terms{.alphaUs = startShare * cost.alphaUs, .betaUsPerByte = cost.betaUsPerByte};
  switch (cost.algorithm) {
  case CollectiveAlgorithm::Ring: terms.ringHopUs = startShare * cost.hopUs; break;
  case CollectiveAlgorithm::Tree: terms.treeHopUs = startShare * cost.hopUs; break;
  case CollectiveAlgorithm::Switch:
    terms.hasSwitch = true;
    terms.alphaUs += startShare * cost.hopUs;
    terms.betaUsPerByte *= kind == MoveKind::AllReduce ? 0.5 : 1;
  }
  return terms;
}

static LeastPrices::Least leastOf(const MachineModel &machine, double startShare, std::initializer_list<MoveKind> kinds) {
  LeastPrices::Least least;
  constexpr size_t last = LeastPrices::mostLevels - 1;
  for (size_t level = 0; level < machine.levels.size(); ++level)
    for (MoveKind kind : kinds)
      least.at[std::min(level, last)].lower(termsOf(machine.levels[level].costs[static_cast<size_t>(kind)], kind, startShare));
  least.from = least.at;
  for (size_t level = last; level-- > 0;)
    least.from[level].lower(least.from[level + 1]);
  return least;
}

LeastPrices::LeastPrices(const MachineModel &machine, double startShare)
    : levels(std::min(machine.levels.size(), mostLevels)), allReduce(leastOf(machine, startShare, {MoveKind::AllReduce})),
      scatter(leastOf(machine, startShare, {MoveKind::ReduceScatter})),
      reduction(leastOf(machine, startShare, {MoveKind::AllReduce, MoveKind::ReduceScatter})),
      move(leastOf(machine, startShare,
                   {MoveKind::AllGather, MoveKind::AlltoAll, MoveKind::CollectivePermute, MoveKind::Exchange})),
      any(leastOf(machine, startShare,
                  {MoveKind::AllReduce, MoveKind::ReduceScatter, MoveKind::AllGather, MoveKind::AlltoAll,
                   MoveKind::CollectivePermute, MoveKind::Exchange})) {
  for (size_t level = 0; level < levels; ++level) {
    ranks[level] = level == 0 ? 1 : machine.levels[level - 1].ranks;
    staged[level] = machine.levels[level].isStaged;
  }
}

void Bound::ask(const LeastPrices &of, const Frame &withGoal, size_t elementBytes) {
  prices = &of;
  bytes = static_cast<double>(elementBytes);
  const State &goal = *withGoal.goal();
  AxisSet apart = 0; // axes along which ranks want different elements
  int64_t devices = 1;
  for (size_t axis = 0; axis < withGoal.axisCount(); ++axis) {
    devices *= withGoal.sizeOf(axis);
    apart |= AxisSet(goal.place[axis] != repeats) << axis;
  }
  tensor = 1;
  for (int64_t size : withGoal.tensor())
    tensor *= static_cast<double>(size);
  goalIsEmpty = tensor == 0;
  share = tensor / static_cast<double>(devices);
  places[0] = static_cast<double>(devices / withGoal.membersAlong(apart));
  for (size_t level = 1; level < prices->levels; ++level)
    places[level] = static_cast<double>(withGoal.unitsThatWant(level - 1, apart));
}

/// The outermost level that groups along one of the axes use.
int64_t Bound::outermostOf(const Frame &frame, AxisSet set) const {
  int64_t level = -1;
  forEachAxis(set, [&](size_t axis) { level = std::max(level, static_cast<int64_t>(std::min(frame.levelOf(axis), prices->levels - 1))); });
  return level;
}

static double evennessOfShares(const Frame &frame, const AxisLists &lists) {
  const bool isKnown = frame.goal() && !frame.hasEmptyPieces(frame.goalLists()) && !frame.hasEmptyPieces(lists);
  return isKnown ? frame.evenness().ofShares : 0;
}

/// What a unit lacks is received in collectives that reach beyond it, by its busiest rank at least its share.
Bound::Needs Bound::needsOfMoves(Frame &frame, const AxisLists &lists, AxisSet moved, int64_t lacks) const {
  Needs needs;
  if (lacks == 0)
    return needs;
  needs.level = std::max<int64_t>(0, outermostOf(frame, moved));
  needs.elements[0] = static_cast<double>(lacks);
  const Evenness &even = frame.evenness();
  const double ofShares = even.ofPieces < 1 ? evennessOfShares(frame, lists) : 0;
  for (size_t level = 1; level < prices->levels; ++level) {
    double &elements = needs.elements[level];
    elements = static_cast<double>(frame.lackingOfUnitsAtLeast(level - 1, lists)) / static_cast<double>(prices->ranks[level]);
    if (!prices->staged[level])
      continue;
    elements *= even.ofPieces;
    if (ofShares > 0)
      elements = std::max(elements, ofShares * tensor * frame.shareLackingOfUnitsAtLeast(level - 1, lists) /
                                        static_cast<double>(prices->ranks[level]));
  }
  return needs;
}

/// A reduction brings no rank an element outside of its shard. A shard is cut by the n / m ranks that hold the same term at
/// most, and a ReduceScatter among k of the m receives 1 - 1 / k of it and leaves 1 / k: all of them together receive
/// tensor (m - 1) / n at least. The same holds for units instead of ranks: the largest piece, by which it is priced, is no smaller than
/// the average.
Bound::Needs Bound::needsOfReductions(const Frame &frame, AxisSet reduced) const {
  Needs needs{.level = outermostOf(frame, reduced)};
  needs.elements[0] = share * static_cast<double>(frame.membersAlong(reduced) - 1);
  for (size_t level = 1; level < prices->levels; ++level)
    needs.elements[level] = share * static_cast<double>(frame.unitsAlong(level - 1, reduced) - 1);
  return needs;
}

/// Somebody has an element after m - 1 receipts, everyone else who wants it after one more. A unit that holds all terms need not
/// receive it.
Bound::Needs Bound::receipts(const Frame &frame, const AxisLists &lists, AxisSet reduced) const {
  Needs needs = needsOfReductions(frame, reduced);
  const double even = std::max(frame.evenness().ofPieces, evennessOfShares(frame, lists));
  for (size_t level = 0; level < prices->levels; ++level)
    if (needs.elements[level] > 0)
      needs.elements[level] += (prices->staged[level] ? even : 1) * share * (places[level] - 1);
  return needs;
}

/// Least time of collectives that together receive what is needed, those of a level no more than what need not come from further out.
double Bound::collectivesUs(const Least &least, const Needs &needs, Terms terms) const {
  if (needs.level < 0)
    return 0;
  double ofStarts = terms != Terms::Bytes, ofBytes = terms == Terms::Starts ? 0 : bytes;
  PerLevel<double> elements{}, best{}; // over this level and those further out
  for (size_t level = prices->levels; level-- > 0;) {
    elements[level] = std::max(needs.elements[level], elements[level + 1]);
    if (static_cast<int64_t>(level) > needs.level && elements[level] == 0)
      continue;
    best[level] = 1e300;
    for (size_t over = level; over < prices->levels; ++over)
      best[level] = std::min(best[level], ofStarts * least.at[over].alphaUs + best[over + 1] +
                                              ofBytes * least.at[over].betaUsPerByte * (elements[level] - elements[over + 1]));
  }
  return best[0];
}

/// Each axis takes part in some group: a group over several axes takes at least as many steps as groups over each together. Where
/// collectives are staged, what lies inside a unit takes its steps there.
double Bound::hopsUs(const Least &least, const Frame &frame, AxisSet set) const {
  double us = 0;
  forEachAxis(set, [&](size_t axis) {
    size_t level = std::min(frame.levelOf(axis), LeastPrices::mostLevels - 1);
    int64_t size = frame.sizeOf(axis), inside = prices->staged[level] ? frame.membersInside(axis) : 1;
    double whole = least.from[level].hopsUs(size);
    if (inside > 1 && inside < size && size % inside == 0)
      whole = std::min(whole, least.from[level].hopsUs(size / inside) + least.from[0].hopsUs(inside));
    us += whole;
  });
  return us;
}

/// `gathered`: those of the axes that repeat in the end if nothing else is to be moved: what a ReduceScatter along one of them
/// scatters has to be moved again.
double Bound::reductionUs(const Frame &frame, AxisSet reduced, AxisSet gathered, Terms terms) const {
  Needs needs = needsOfReductions(frame, reduced);
  double least = collectivesUs(prices->reduction, needs, terms) + hopsUs(prices->reduction, frame, reduced);
  if (gathered == 0)
    return least;
  double whole = collectivesUs(prices->allReduce, needs, terms) + hopsUs(prices->allReduce, frame, reduced);
  double scattered = collectivesUs(prices->scatter, needs, terms) + hopsUs(prices->scatter, frame, reduced) +
                     collectivesUs(prices->move, {.level = outermostOf(frame, gathered)}, Terms::Starts) +
                     hopsUs(prices->move, frame, gathered);
  return std::min({whole, scattered, least + std::max(prices->allReduce.from[0].alphaUs, prices->scatter.from[0].alphaUs)});
}

double Bound::of(Frame &frame, const State &state, const AxisLists &lists) const {
  if (frame.isGoal(state) || goalIsEmpty)
    return 0;
  AxisSet reduced = frame.reducedAxes(state);
  AxisSet moved = frame.goal() ? frame.movedAxes(lists) : 0;
  int64_t lacks = moved != 0 || !frame.goal() ? frame.lackingOfGoalAtLeast(lists) : 0;
  if (frame.goal() && !frame.isFineEnough(lists))
    moved = 0; // with empty pieces it may be that nothing moves along an axis
  Needs moves = needsOfMoves(frame, lists, moved, lacks);
  double hops = lacks > 0 ? hopsUs(prices->move, frame, moved) : 0;
  double moving = collectivesUs(prices->move, moves, Terms::All);
  if (reduced == 0)
    return hops + moving;
  AxisSet gathered = 0;
  if (frame.goal() && lacks == 0 && frame.isFineEnough(lists))
    forEachAxis(reduced, [&](size_t axis) { gathered |= AxisSet(frame.goal()->place[axis] == repeats) << axis; });
  // Moves and reductions have bytes of their own; or all receipts are counted, whatever brings them.
  double apart = moving + reductionUs(frame, reduced, gathered, Terms::All);
  double together = collectivesUs(prices->move, moves, Terms::Starts) + reductionUs(frame, reduced, gathered, Terms::Starts) +
                    collectivesUs(prices->any, receipts(frame, lists, reduced), Terms::Bytes);
  return hops + std::max(apart, together);
}

} // namespace msc::dist
