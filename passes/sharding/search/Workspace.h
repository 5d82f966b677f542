// A network as factors, and what is known of earlier reductions: equal work is done once.
#pragma once

#include "passes/sharding/search/Factor.h"

#include <optional>

namespace msc::search {

/// A number for some variables, all of which are forgotten at once. Those that stand in for something are negative.
class Marks {
public:
  void clear() { ++now; }
  /// Null: it has none.
  int32_t *find(int32_t variable) {
    const size_t at = placeOf(variable);
    return at < marks.size() && marks[at].first == now ? &marks[at].second : nullptr;
  }
  void set(int32_t variable, int32_t number) {
    const size_t at = placeOf(variable);
    if (at >= marks.size())
      marks.resize(2 * at + 64);
    marks[at] = {now, number};
  }

private:
  std::vector<std::pair<uint64_t, int32_t>> marks; ///< when it was set
  uint64_t now = 1;

  static size_t placeOf(int32_t variable) {
    const auto number = static_cast<int64_t>(variable);
    return static_cast<size_t>(number < 0 ? -2 * number - 1 : 2 * number);
  }
};

/// Hands out numbers and remembers results by the content of what they were made from, so that the layers of an
/// unrolled network cost as much as one.
class Workspace {
public:
  Partitions partitions;
  Marks marks; ///< for a function while it calls no other one

  /// `id` names equal contents; the caller knows that they differ from all before unless he interned them.
  std::shared_ptr<const Costs> costs(std::vector<double> values);
  /// [class][class]: nothing on the diagonal, infinity elsewhere.
  std::shared_ptr<const Costs> equality(int32_t classes);
  int64_t newId() { return nextId++; }

  /// A reduction: which factors (by id, partitions, how their variables coincide) gave which factor. Its scope holds
  /// positions in the caller's own numbering.
  using Key = std::vector<int64_t>;
  struct KeyHash {
    size_t operator()(const Key &key) const { return hashOf(key.data(), key.size() * sizeof(int64_t)); }
  };
  std::unordered_map<Key, Factor, KeyHash> reductions;
  int64_t entriesOfReductions = 0;
  /// Forgets reductions where their tables have become so many; what uses them holds them.
  void forgetReductions(int64_t entries) {
    if (entriesOfReductions > entries) {
      reductions.clear();
      entriesOfReductions = 0;
    }
  }

  /// What tables and shared costs of equal contents became, whatever their variables.
  struct KnownTable {
    std::vector<int32_t> dims;
    std::vector<double> costs;
    Factor factor;
    int64_t lookedAt = 0; ///< in which network last
  };
  struct KnownShared {
    SharedCost cost;
    Factor factor;
    int64_t lookedAt = 0;
  };
  std::unordered_multimap<uint64_t, KnownTable> knownTables;
  std::unordered_multimap<uint64_t, KnownShared> knownShared;
  /// Options of a variable that none dominates, by the factors around it; and what is left of a factor with such options.
  struct NotDominated {
    std::vector<int32_t> options;
    int64_t lookedAt = 0;
  };
  struct LeftOver {
    Factor factor;
    int64_t lookedAt = 0;
  };
  std::unordered_map<Key, NotDominated, KeyHash> notDominated;
  std::unordered_map<Key, LeftOver, KeyHash> leftOver;
  int64_t networks = 0; ///< that were lowered
  /// Forgets what was of use for none of the two last networks.
  void forgetOld() {
    auto isOld = [&](const auto &known) { return known.second.lookedAt < networks - 1; };
    std::erase_if(knownTables, isOld);
    std::erase_if(knownShared, isOld);
    std::erase_if(notDominated, isOld);
    std::erase_if(leftOver, isOld);
  }
  /// What shared forms with these partitions became without decided readers: scopes are positions.
  std::unordered_map<Key, std::vector<Factor>, KeyHash> undecided;

private:
  std::unordered_map<int64_t, std::shared_ptr<const Costs>> equalities;
  int64_t nextId = 0;
};

/// A CostNetwork as factors.
struct Lowered {
  std::vector<int32_t> options;             ///< of each variable
  std::vector<std::vector<int32_t>> origin; ///< of each variable: numbers of its options in the network; empty: all
  std::vector<Factor> factors;
  double constant = 0;

  void toOrigin(Choice &choice) const;
};

/// See CostNetwork.h; what earlier networks have in common with this one is known.
/// `crowded`: elimination gave up or is not exact within the limits, because of these variables. `near`, if given, takes what is left of
/// the network where options were left out because of their costs: the solution, and all that costs hardly more.
Solution solveExactly(Workspace &workspace, const CostNetwork &network, const SolveLimits &limits,
                      std::optional<std::vector<int32_t>> crowded = {}, std::optional<Lowered> *near = nullptr);

Lowered lower(Workspace &workspace, const CostNetwork &network);

/// The cost of one variable's options as a factor.
Factor unary(Workspace &workspace, int32_t variable, const std::vector<double> &costs);

/// The same factor with fewer options (ascending) of one of its variables.
Factor restrictedAxis(Workspace &workspace, const Factor &factor, size_t axis, const std::vector<int32_t> &options);

/// Without options that are never better than another one of their variable, whatever the others take. Of two that are
/// always equal the lower one stays.
Lowered withoutDominated(Workspace &workspace, Lowered network, std::optional<int32_t> asItIs = {});

/// The same cost without variables that have one class in it: of a value, what such readers ask for is paid with the producer.
std::vector<Factor> withoutDecided(Workspace &workspace, Factor factor);

/// Only these options (ascending) of a variable remain.
Lowered restricted(Workspace &workspace, const Lowered &network, int32_t variable, const std::vector<int32_t> &options);

/// The same of all variables; no options: all of them remain.
Lowered restricted(Workspace &workspace, Lowered network, const std::vector<std::vector<int32_t>> &options);

/// The same with one option in place of all of these, which costs in each factor what the cheapest of them does there: nothing costs more
/// than before.
Lowered leastOf(Workspace &workspace, const Lowered &network, int32_t variable, const std::vector<int32_t> &options);

/// Of each option of a variable the sum of what factors with it cost at least, as if readers asked for one item of what it makes: an
/// order in which to look at them.
std::vector<double> leastOfOptions(const Lowered &network, int32_t variable);

} // namespace msc::search
