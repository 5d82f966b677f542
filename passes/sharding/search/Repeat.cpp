// Repeated networks exactly: the rounds in the middle become one table, by min-plus powers.
#include "passes/sharding/search/Repeat.h"
#include "passes/sharding/search/Middle.h"
#include "passes/sharding/search/TermsMap.h"

#include <algorithm>
#include <map>
#include <memory>

namespace msc::search {

namespace {

/// Rounds that are not in the middle stand on their own: the first and the last.
constexpr int64_t fewRounds = 3;

/// The network with one table in place of the rounds in the middle of each long section.
class Folded {
public:
  Folded(const RepeatedNetwork &network) : network(network), shortened(network) {
    for (size_t s = 0; s < network.sections.size(); ++s) {
      isLong.push_back(network.sections[s].rounds > fewRounds);
      middles.push_back(isLong[s] ? std::make_unique<Middle>(workspace, network, s) : nullptr);
      if (isLong[s]) {
        // Two rounds, with nothing between them but what is added below.
        shortened.sections[s].rounds = 2;
        shortened.sections[s].carried = {};
      }
    }
  }

  /// Whether the tables keep within the limits.
  bool fits(const SolveLimits &limits) const {
    return std::all_of(middles.begin(), middles.end(), [&](const std::unique_ptr<Middle> &middle) {
      return !middle || middle->tableSize <= double(limits.tableEntries);
    });
  }

  /// Makes the flat network. False: limits ran out.
  bool fold(const SolveLimits &limits, Solution &summary) {
    unrolled = unroll(shortened);
    states.resize(middles.size());
    for (size_t s = 0; s < middles.size(); ++s)
      if (middles[s] && !(middles[s]->solve(limits, summary) && (addMiddle(s), true)))
        return false;
    return true;
  }

  /// After fold(): the network in which variables outside of sections have the numbers that they have.
  const CostNetwork &flat() const { return unrolled.network; }

  bool solve(const SolveLimits &limits, RepeatedSolution &solution) {
    Solution &summary = solution.summary;
    if (!fold(limits, summary))
      return false;
    SolveLimits rest = limits;
    rest.operations -= summary.operations;
    Solution flat = solveExactly(workspace, unrolled.network, rest);
    flat.operations += summary.operations;
    flat.eliminations += summary.eliminations;
    flat.repeated += summary.repeated;
    flat.largestTable = std::max(flat.largestTable, summary.largestTable);
    solution.choice = unfolded(flat);
    flat.choice = solution.choice.choice;
    summary = std::move(flat);
    if (summary.cost < infinity) { // else there is no path to follow
      summary.cost = costOf(network, solution.choice);
      if (summary.optimal)
        summary.bound = summary.cost;
    }
    return true;
  }

  /// What an assignment of flat() means.
  RepeatedChoice unfolded(const Solution &flat) {
    RepeatedChoice result = rolled(shortened, unrolled, flat.choice);
    for (size_t s = 0; s < middles.size(); ++s) {
      if (!middles[s])
        continue;
      std::vector<Run> &runs = result.runs[s];
      if (!(flat.cost < infinity)) {
        runs = {{network.sections[s].rounds, runs.front().options}};
        continue;
      }
      auto chosen = [&](const std::vector<int32_t> &variables) {
        Choice options;
        for (int32_t variable : variables)
          options.push_back(flat.choice[variable]);
        return options;
      };
      std::vector<int32_t> parameters;
      for (int32_t parameter : middles[s]->parameters)
        parameters.push_back(place(s, parameter, 0));
      std::vector<Run> all = {{1, runs.front().options}};
      std::vector<Run> between = middles[s]->runs(chosen(parameters), chosen(states[s].first), chosen(states[s].last));
      between.push_back({1, runs.back().options});
      for (Run &run : between)
        if (all.back().options == run.options)
          all.back().rounds += run.rounds;
        else
          all.push_back(std::move(run));
      runs = std::move(all);
    }
    return result;
  }

private:
  /// The number of a section's variable in its first or second (which is the last) round.
  int32_t number(size_t s, int32_t variable, int64_t round) const {
    const std::vector<int32_t> &own = network.sections[s].variables;
    auto at = std::find(own.begin(), own.end(), variable);
    if (at == own.end() || round == 0)
      return variable;
    return unrolled.later[s] + static_cast<int32_t>(at - own.begin());
  }

  void addMiddle(size_t s) {
    const Middle &middle = *middles[s];
    CostNetwork &flat = unrolled.network;
    States &state = states[s];
    for (std::vector<int32_t> *side : {&state.first, &state.last})
      for (size_t i = 0; i < middle.stateVariables(); ++i) {
        side->push_back(static_cast<int32_t>(flat.options.size()));
        flat.options.push_back(middle.parts()[i]->classes());
      }
    for (size_t i = 0; i < middle.stateVariables(); ++i)
      flat.tables.push_back(Middle::equality(number(s, middle.stateVariable(i), middle.isBehind),
                                             (middle.isBehind ? state.last : state.first)[i], *middle.parts()[i]));
    append(flat, middle.carriedByState(), [&](int32_t reference) {
      const bool isNext = reference < 0;
      const int32_t variable = variableOf(reference);
      if (isNext == middle.isBehind)
        for (size_t i = 0; i < middle.stateVariables(); ++i)
          if (middle.stateVariable(i) == variable)
            return (middle.isBehind ? state.first : state.last)[i];
      return place(s, variable, isNext);
    });
    Table table;
    for (int32_t parameter : middle.parameters)
      table.scope.push_back(place(s, parameter, 0));
    table.scope.insert(table.scope.end(), state.first.begin(), state.first.end());
    table.scope.insert(table.scope.end(), state.last.begin(), state.last.end());
    table.costs = middle.table;
    flat.tables.push_back(std::move(table));
  }

  /// A variable as terms of section s mean it.
  int32_t place(size_t s, int32_t variable, int64_t round) const {
    for (size_t other = 0; other < network.sections.size(); ++other) {
      const std::vector<int32_t> &own = network.sections[other].variables;
      auto at = std::find(own.begin(), own.end(), variable);
      if (at == own.end())
        continue;
      if (other == s)
        return number(s, variable, round);
      const int64_t rounds = shortened.sections[other].rounds;
      if (other > s || rounds == 1)
        return variable;
      return unrolled.later[other] + static_cast<int32_t>((rounds - 2) * own.size() + (at - own.begin()));
    }
    return variable;
  }

  struct States {
    std::vector<int32_t> first, last; ///< numbers in the flat network
  };
  Workspace workspace;
  const RepeatedNetwork &network;
  RepeatedNetwork shortened;
  std::vector<char> isLong;
  std::vector<std::unique_ptr<Middle>> middles;
  Unrolled unrolled;
  std::vector<States> states;
};

/// Every round has its own parameters: a relaxation without any.
RepeatedNetwork withOwnParameters(const RepeatedNetwork &network) {
  Workspace workspace;
  RepeatedNetwork result = network;
  for (size_t s = 0; s < result.sections.size(); ++s) {
    Section &section = result.sections[s];
    std::map<int32_t, int32_t> own;
    for (int32_t parameter : Middle(workspace, network, s).parameters) {
      own[parameter] = static_cast<int32_t>(result.network.options.size());
      section.variables.push_back(own[parameter]);
      result.network.options.push_back(network.network.options[parameter]);
    }
    auto rename = [&](int32_t &reference) {
      if (auto found = own.find(reference); found != own.end())
        reference = found->second;
    };
    for (Terms *terms : {&section.within, &section.carried}) {
      for (Table &table : terms->tables)
        std::for_each(table.scope.begin(), table.scope.end(), rename);
      for (SharedCost &shared : terms->shared) {
        rename(shared.producer);
        for (SharedCost::Reader &reader : shared.readers)
          rename(reader.variable);
      }
    }
  }
  return result;
}

} // namespace

/// A variable outside of sections, which a section's variable equals in all rounds.
static int32_t standFor(RepeatedNetwork &network, int32_t variable) {
  for (Section &section : network.sections) {
    if (std::find(section.variables.begin(), section.variables.end(), variable) == section.variables.end())
      continue;
    const int32_t count = network.network.options[variable], all = static_cast<int32_t>(network.network.options.size());
    network.network.options.push_back(count);
    Table same{{variable, all}, std::vector<double>(static_cast<size_t>(count) * count, infinity)};
    for (int32_t option = 0; option < count; ++option)
      same.costs[option * count + option] = 0;
    section.within.tables.push_back(std::move(same));
    return all;
  }
  return variable;
}

static SolveLimits without(SolveLimits limits, int64_t spent) {
  limits.operations -= spent;
  return limits;
}

/// `ofFlat`: what says it of a network without sections. `mostOfOption`: operations spent on one option where there is no such network.
template <typename OfFlat>
static OptionCosts costsOrBounds(const RepeatedNetwork &network, int32_t variable, const SolveLimits &limits, int64_t mostOfOption, OfFlat ofFlat) {
  RepeatedNetwork asked = network;
  const int32_t outside = standFor(asked, variable);
  Folded folded(asked);
  OptionCosts result;
  Solution summary;
  const bool isFolded = folded.fits(limits) && folded.fold(limits, summary);
  if (isFolded)
    result = ofFlat(folded.flat(), outside, without(limits, summary.operations));
  result.operations += summary.operations;
  if (isFolded)
    return result;
  for (int32_t option = 0; option < network.network.options[variable]; ++option) {
    RepeatedNetwork forced = network;
    keepOptions(forced, variable, {option});
    SolveLimits left = without(limits, result.operations);
    left.operations = std::min(left.operations, mostOfOption);
    const Solution found = left.operations > 0 ? solveExactly(forced, left).summary : Solution{.bound = -infinity};
    result.operations += found.operations;
    result.costs.push_back(found.bound);
  }
  return result;
}

OptionCosts costsOfOptions(const RepeatedNetwork &network, int32_t variable, const SolveLimits &limits) {
  return costsOrBounds(network, variable, limits, limits.operations, [](auto &&...of) { return costsOfOptions(of...); });
}

OptionCosts boundsOfOptions(const RepeatedNetwork &network, int32_t variable, const SolveLimits &limits) {
  constexpr int64_t little = int64_t(1) << 28;
  return costsOrBounds(network, variable, limits, little, [](auto &&...of) { return boundsOfOptions(of...); });
}

static RepeatedSolution solveAlone(const RepeatedNetwork &network, const SolveLimits &limits) {
  RepeatedSolution solution;
  Folded folded(network);
  if (folded.fits(limits) && folded.solve(limits, solution))
    return solution;
  int64_t variables = static_cast<int64_t>(network.network.options.size());
  bool hasParameters = false;
  Workspace workspace;
  for (size_t s = 0; s < network.sections.size(); ++s) {
    variables += network.sections[s].rounds * static_cast<int64_t>(network.sections[s].variables.size());
    hasParameters |= !Middle(workspace, network, s).parameters.empty();
  }
  const int64_t folding = solution.summary.operations;
  constexpr int64_t unrollable = 20000;
  if (variables <= unrollable) {
    Unrolled unrolled = unroll(network);
    solution.summary = solveExactly(unrolled.network, without(limits, folding));
    solution.summary.operations += folding;
    solution.choice = rolled(network, unrolled, solution.summary.choice);
    solution.summary.choice = solution.choice.choice;
    return solution;
  }
  solution = solveTied(network, without(limits, folding));
  solution.summary.operations += folding;
  solution.summary.bound = -infinity;
  if (hasParameters) {
    const Solution apart = solveExactly(withOwnParameters(network), without(limits, solution.summary.operations)).summary;
    solution.summary.operations += apart.operations;
    solution.summary.bound = apart.bound;
  }
  solution.summary.optimal = solution.summary.bound >= solution.summary.cost;
  return solution;
}

RepeatedSolution solveExactly(const RepeatedNetwork &network, const SolveLimits &limits) {
  RepeatedSolution solution = solveAlone(network, limitsOfOne(limits));
  charge(limits, solution.summary.operations);
  return solution;
}

} // namespace msc::search
