// Networks in which a section stands once and happens many times: layers. Rounds may take different options.
#pragma once

#include "passes/sharding/search/CostNetwork.h"

namespace msc::search {

struct Terms {
  std::vector<Table> tables;
  std::vector<SharedCost> shared;
};

/// How Section::carried names its variable in the round behind.
inline int32_t inNextRound(int32_t variable) {
  return ~variable;
}

/// Variables that there are once per round, and what they cost. A variable of another section means its last round, if
/// that section stands before this one, else its first round.
struct Section {
  std::vector<int32_t> variables; ///< each belongs to at most one section
  int64_t rounds = 1;
  Terms within;  ///< in every round; variables of no section here are parameters that all rounds share
  Terms carried; ///< between every two successive rounds: `v` in the one, inNextRound(v) in the other
  Terms entry;   ///< the variables are those of the first round
  Terms exit;    ///< the variables are those of the last round
};

struct RepeatedNetwork {
  CostNetwork network; ///< all variables; its tables and shared costs have no variables of sections
  std::vector<Section> sections;
};

/// Successive rounds that take the same options.
struct Run {
  int64_t rounds = 0;
  Choice options; ///< in the order of Section::variables
  bool operator==(const Run &) const = default;
};

struct RepeatedChoice {
  Choice choice;                      ///< variables of sections as in the first round
  std::vector<std::vector<Run>> runs; ///< of each section
};

struct RepeatedSolution {
  RepeatedChoice choice;
  Solution summary; ///< its choice is that of RepeatedChoice
};

/// The one truth; its time depends on the number of runs, not of rounds.
double costOf(const RepeatedNetwork &network, const RepeatedChoice &choice);

/// All rounds one after the other. The variables keep their numbers in the first round; round r > 0 of section s has
/// its variables from `later[s] + (r - 1) * variables` on.
struct Unrolled {
  CostNetwork network;
  std::vector<int32_t> later;
};
Unrolled unroll(const RepeatedNetwork &network);
RepeatedChoice rolled(const RepeatedNetwork &network, const Unrolled &unrolled, const Choice &choice);
/// Of each variable of a repeated network: those that it is in the unrolled one, one for each round, or one alone. Unrolls nothing.
std::vector<std::vector<int32_t>> variablesInRounds(const RepeatedNetwork &network);
/// The same assignment of the unrolled network; `inRounds`: variablesInRounds(network).
Choice unrolledChoice(const RepeatedNetwork &network, const std::vector<std::vector<int32_t>> &inRounds, const RepeatedChoice &choice);

/// The first and the last round of every section on their own, and those between them alike: a network that is small, and
/// knows what is different at the ends.
class EndsApart {
public:
  explicit EndsApart(const RepeatedNetwork &network);
  const CostNetwork &network() const { return costs; }
  /// What an assignment of network() means.
  RepeatedChoice rolled(const Choice &choice) const;

private:
  struct Part {
    int64_t rounds = 0;
    std::vector<int32_t> variables; ///< in the order of Section::variables
  };
  CostNetwork costs;
  size_t count = 0;                     ///< variables of the repeated network
  std::vector<std::vector<Part>> parts; ///< of each section
};

/// Every section takes the same options in all its rounds: a network over the same variables.
CostNetwork tied(const RepeatedNetwork &network);
RepeatedSolution solveTied(const RepeatedNetwork &network, const SolveLimits &limits = {});

/// The cheapest assignment, as exact as solveExactly; the time does not depend on the rounds but for their logarithm.
/// What crosses the border of a round is a matrix, of which min-plus powers are taken: one for each assignment of the
/// parameters that rounds share. Where those do not fit into the limits and the network is too long to be unrolled:
/// the tied solution, and the bound of every round having its own parameters.
RepeatedSolution solveExactly(const RepeatedNetwork &network, const SolveLimits &limits = {});

/// The cheapest cost for every option of one variable, as exact as that; of a section's variable: in all its rounds. Infinity: not
/// possible. Where the limits, which hold for all options together, run out: a bound.
OptionCosts costsOfOptions(const RepeatedNetwork &network, int32_t variable, const SolveLimits &limits = {});
OptionCosts boundsOfOptions(const RepeatedNetwork &network, int32_t variable, const SolveLimits &limits = {});

/// Leaves a variable some of its options (ascending), which are numbered anew. In a section it may have different ones of them in
/// different rounds.
void keepOptions(CostNetwork &network, int32_t variable, const std::vector<int32_t> &left);
void keepOptions(RepeatedNetwork &network, int32_t variable, const std::vector<int32_t> &left);

} // namespace msc::search
