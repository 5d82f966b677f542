// Assignments that take the rounds of a section from others, stretch by stretch.
#pragma once

#include "passes/sharding/search/Budget.h"

#include <optional>
#include <span>

namespace msc::search {

/// Of a section, a first stretch of rounds, a middle one and a last one are each alike: as some round of some given assignment; all other
/// variables as in one of these assignments. Where a price makes all layers of a network change at once, some of them do here, wherever
/// limits leave room for that. In very many rounds stretches end at some places alone. What is not allowed in the first round or in the last
/// one is not found between them. Keeps nothing of its arguments.
class Splices {
public:
  /// `budgets`: of the unrolled network, as variablesInRounds numbers it. `below`: what costs as much is left out.
  Splices(const RepeatedNetwork &network, size_t section, std::span<const RepeatedChoice> from, const std::vector<Budget> &budgets, double below);

  /// The cheapest one that keeps to all budgets and has not been refused; none is left: nothing.
  std::optional<RepeatedChoice> cheapest();
  /// That one takes so much more of some budget than its amounts say, and so does what takes the same in other stretches; all others
  /// take as much more as the least of those refused.
  void refuse(double more);

private:
  /// Which options in which stretch: numbers of `kinds`.
  struct Splice {
    size_t beside = 0; ///< number of an assignment
    size_t kinds[3];
    int64_t ends[2];  ///< of the first two stretches, > 0, rising and less than all rounds
    double cost = 0;
    double more = 0; ///< that it takes of the budgets
  };
  RepeatedChoice choiceOf(RepeatedChoice choice, std::vector<Run> runs) const;
  void shorten(double more);
  void addAmounts(const RepeatedNetwork &network, const std::vector<Budget> &budgets);
  void addCosts(const RepeatedNetwork &network);
  double costOf(const Splice &splice) const;
  bool fits(const Splice &splice) const;
  bool findEnds(Splice &splice) const;
  int64_t endStep() const;
  double amountOf(size_t budget, size_t kind, int64_t from, int64_t to) const;

  size_t section;
  std::vector<int32_t> own; ///< variables of it
  int64_t rounds;
  double below;
  std::vector<RepeatedChoice> besides;
  std::vector<Choice> kinds;                            ///< options of the section in a round
  std::vector<double> room;                             ///< [budget]
  std::vector<std::vector<double>> beside;              ///< [budget][assignment]: what all other variables take
  std::vector<std::vector<std::vector<double>>> before; ///< [budget][kind][round]: what the section takes in the rounds before
  // Costs, [assignment][kind][kind]: the first kind in all rounds but the last, and in the first one alone.
  struct Pair {
    double mostly = 0, once = 0;
  };
  std::vector<std::vector<std::vector<Pair>>> pairs;
  std::vector<Splice> splices; ///< a heap, the cheapest first
  double leastMore = 0;        ///< of those refused
};

} // namespace msc::search
