// A strategy search as plain data: variables (operators) with options (strategies), and what options cost together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace msc::search {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Cost of the options of a few variables together: row-major in the order of `scope` (distinct variables). Infinity:
/// not allowed; never NaN or minus infinity.
struct Table {
  std::vector<int32_t> scope;
  std::vector<double> costs;
  bool operator==(const Table &) const = default;
};

/// What a value costs that one operator makes and several read: readers ask for *items* (a sharding in which they want
/// the value, a form in which they hand back its gradient); each item that anybody asks for is paid once, whoever else
/// asks for it too.
struct SharedCost {
  int32_t producer = 0;               ///< variable
  std::vector<int32_t> producerClass; ///< of each option of the producer
  struct Reader {
    int32_t variable = 0;
    std::vector<std::vector<int32_t>> items; ///< of each option: sorted item numbers without repetition
    bool operator==(const Reader &) const = default;
  };
  std::vector<Reader> readers;            ///< distinct variables, none is the producer
  std::vector<std::vector<double>> costs; ///< [producer class][item], >= 0, may be infinity
  double times = 1;                       ///< factor on all costs, > 0
  bool operator==(const SharedCost &) const = default;
};

/// The cost of a complete assignment is the sum of all of these.
struct CostNetwork {
  std::vector<int32_t> options; ///< of each variable: how many, >= 1
  std::vector<Table> tables;
  std::vector<SharedCost> shared;
  double constant = 0;
};

/// One option per variable.
using Choice = std::vector<int32_t>;

/// What the readers of a value ask for under a complete assignment: ascending, without repetition.
std::vector<int32_t> itemsAsked(const SharedCost &shared, const Choice &choice);

/// What one term of it costs. `options`: of the network.
double costOf(const Table &table, const Choice &choice, const std::vector<int32_t> &options);

/// The one truth: what a complete assignment costs.
double costOf(const CostNetwork &network, const Choice &choice);

/// When to give up proving. Work is counted in operations, never in seconds: equal inputs give equal answers.
struct SolveLimits {
  int64_t tableEntries = int64_t(1) << 26; ///< of one table; above it the network is cut by bounds and branching
  int64_t operations = int64_t(1) << 36;   ///< additions and minima altogether
  int64_t allEntries = int64_t(1) << 28;   ///< of all tables of one elimination, 8 bytes each; above it, too
  int64_t branching = int64_t(1) << 36;    ///< of the operations, those of tying variables to one option, the last resort
  /// If given, of all that is solved with it together: so many operations are left, and go down. Behind them, each solution may take a few.
  int64_t *left = nullptr;
};

/// Of one of them; charge() says what it took.
SolveLimits limitsOfOne(SolveLimits limits);
void charge(const SolveLimits &limits, int64_t operations);

struct Solution {
  Choice choice;
  double cost = 0;          ///< costOf(choice); infinity: nothing is allowed
  double bound = 0;         ///< nothing costs less
  bool optimal = true;      ///< nothing costs less than `cost`; false only where a limit ran out
  int64_t operations = 0;   ///< spent
  int64_t eliminations = 0; ///< buckets minimised; those equal to an earlier one count, too
  int64_t repeated = 0;     ///< of these: taken from an equal one
  int64_t largestTable = 0; ///< entries
  int64_t branches = 0;     ///< networks in which a variable was left some of its options
};

/// The cheapest assignment. Exact up to rounding (relative 1e-12 or so) where `optimal`. Of equally cheap ones: going
/// through the variables against the order of elimination, each takes its lowest option; that order depends on the
/// network alone.
Solution solveExactly(const CostNetwork &network, const SolveLimits &limits = {});

/// Of every option of one variable: costs, or bounds on them.
struct OptionCosts {
  std::vector<double> costs;
  int64_t operations = 0; ///< spent
};

/// Cheapest cost of the whole network for every option of one variable (infinity: not possible); where the limits, which hold for all
/// options together, run out: a bound, minus infinity where there is none.
OptionCosts costsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits = {});

/// The same where that takes little time, else bounds.
OptionCosts boundsOfOptions(const CostNetwork &network, int32_t variable, const SolveLimits &limits = {});

/// Of every option of a variable the cost of what depends on it where others are as in `choice`, but that variables from `firstFollower` on
/// which have a term with it take what is cheapest then.
OptionCosts costsBeside(const CostNetwork &network, const Choice &choice, int32_t variable, int32_t firstFollower, const SolveLimits &limits = {});

/// The k cheapest assignments, or all if there are fewer that are allowed, ascending; equal costs in lexicographic
/// order of the choices (which of those that tie at the end of the list are in it is deterministic, too). Where the
/// network exceeds the limits: only the best one that was found.
std::vector<Solution> bestAssignments(const CostNetwork &network, size_t k, const SolveLimits &limits = {});

/// The cheapest assignment and up to k - 1 others, each of which gives one more variable another option and is cheapest behind it: what
/// is nearly as good in many places at once, where the k cheapest differ in few. The nearest ones, ascending by cost. Options that
/// another one dominates are left out. Only the first where the network exceeds the limits. k >= 1.
std::vector<Solution> nearestAssignments(const CostNetwork &network, size_t k, const SolveLimits &limits = {});

/// An option of a variable.
struct Change {
  int32_t variable = 0, option = 0;
};

/// An assignment by what it has otherwise than another one.
struct NearAssignment {
  double cost = 0; ///< up to rounding
  std::vector<Change> changes;
};

/// The k cheapest where all variables but these are as in `choice`; costs are those beyond that of `choice`.
std::vector<NearAssignment> bestBeside(const CostNetwork &network, const Choice &choice, const std::set<int32_t> &free, size_t k, const SolveLimits &limits = {});

/// What nearestAssignments finds, in memory and time that go by what differs: of a large network many may be asked for.
struct Nearest {
  Solution best;
  std::vector<NearAssignment> others; ///< ascending by cost
};
Nearest nearestChanges(const CostNetwork &network, size_t k, const SolveLimits &limits = {});
class Workspace;
/// The same where `workspace` remembers a network before it that is much like this one. `below`: the others cost less.
Nearest nearestChanges(Workspace &workspace, const CostNetwork &network, size_t k, const SolveLimits &limits, double below);
/// Each with all its options, the best one first, then ascending by cost in `network` and lexicographically.
std::vector<Solution> allOf(const CostNetwork &network, const Nearest &nearest);

} // namespace msc::search
