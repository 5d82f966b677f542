// Repeated networks exactly: the rounds in the middle become one table, by min-plus powers.
#include "passes/sharding/search/Repeat.h"
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Powers.h"
#include "passes/sharding/search/TermsMap.h"

#include <algorithm>
#include <memory>
#include <set>

namespace msc::search {

namespace {

/// Rounds that are not in the middle stand on their own: the first and the last.
constexpr int64_t fewRounds = 3;

/// One side of what is carried: variables, as finely as what is carried looks at them.
struct Border {
  std::vector<int32_t> variables;
  std::vector<PartitionRef> parts;

  double states() const {
    double product = 1;
    for (PartitionRef part : parts)
      product *= part->classes();
    return product;
  }
  const std::vector<int32_t> *kept(int32_t variable) const {
    auto found = std::find(variables.begin(), variables.end(), variable);
    return found == variables.end() ? nullptr : &parts[found - variables.begin()]->first;
  }
};

/// The middle of a section. A state is the class of each variable of the smaller border of what is carried; a step
/// leads from the state of one round to that of the next.
class Middle {
public:
  Middle(Workspace &workspace, const RepeatedNetwork &network, size_t number)
      : options(network.network.options), section(network.sections[number]), workspace(workspace) {
    isOwn.resize(options.size());
    for (int32_t variable : section.variables)
      isOwn[variable] = 1;
    findParameters();
    findBorder();
    for (int32_t parameter : parameters)
      tableSize *= options[parameter];
    tableSize *= border.states() * border.states();
  }

  double tableSize = 1;
  std::vector<int32_t> parameters; ///< variables outside that every round sees
  bool isBehind = false;           ///< the border is that of the round behind

  size_t states() const { return static_cast<size_t>(border.states()); }
  size_t stateVariables() const { return border.variables.size(); }
  const PartitionRef *parts() const { return border.parts.data(); }
  int32_t stateVariable(size_t i) const { return border.variables[i]; }

  /// What is carried, with states in place of the border. References: of the border's side as before.
  Terms carriedByState() const {
    return projected(section.carried, options, [&](int32_t reference) -> const std::vector<int32_t> * {
      if ((reference < 0) != isBehind || !isOwn[variableOf(reference)])
        return nullptr;
      return border.kept(variableOf(reference));
    });
  }

  /// [parameters][state][state]: the rounds in the middle. False: limits ran out.
  bool solve(const SolveLimits &limits, Solution &statistics) {
    buildStep();
    std::vector<int32_t> kept = parameterNumbers;
    kept.insert(kept.end(), before.begin(), before.end());
    kept.insert(kept.end(), after.begin(), after.end());
    step = std::make_unique<Elimination>(
        workspace, lower(workspace, stepNetwork),
        EliminationLimits{limits.tableEntries, limits.operations - statistics.operations}, kept);
    statistics.operations += step->operations;
    statistics.eliminations += step->eliminations;
    statistics.repeated += step->repeated;
    statistics.largestTable = std::max(statistics.largestTable, step->largestTable);
    if (!step->isExact())
      return false;
    steps = step->table();
    const size_t size = states() * states();
    for (size_t from = 0; from < steps.size(); from += size) {
      Powers powers({steps.begin() + from, steps.begin() + from + size}, states(), section.rounds - 2);
      table.insert(table.end(), powers.result().begin(), powers.result().end());
      statistics.operations += powers.operations;
      if (statistics.operations > limits.operations)
        return false;
    }
    return true;
  }
  std::vector<double> table;

  /// The rounds in the middle, given the options of the parameters and the first and last state.
  std::vector<Run> runs(const Choice &ofParameters, const Choice &first, const Choice &last) {
    size_t slice = 0;
    for (size_t p = 0; p < parameters.size(); ++p)
      slice = slice * options[parameters[p]] + ofParameters[p];
    const size_t size = states() * states();
    Powers powers({steps.begin() + slice * size, steps.begin() + (slice + 1) * size}, states(), section.rounds - 2);
    std::map<std::pair<int32_t, int32_t>, Choice> known;
    std::vector<Run> result;
    for (const Steps &equal : powers.path(stateOf(first), stateOf(last))) {
      Choice &options = known[{equal.from, equal.to}];
      if (options.empty())
        options = round(ofParameters, equal);
      if (!result.empty() && result.back().options == options)
        result.back().rounds += equal.count;
      else
        result.push_back({equal.count, options});
    }
    return result;
  }

private:
  void findParameters() {
    std::set<int32_t> found;
    auto look = [&](int32_t reference) {
      if (!isOwn[variableOf(reference)])
        found.insert(variableOf(reference));
    };
    for (const Terms *terms : {&section.within, &section.carried}) {
      for (const Table &table : terms->tables)
        std::for_each(table.scope.begin(), table.scope.end(), look);
      for (const SharedCost &shared : terms->shared) {
        look(shared.producer);
        for (const SharedCost::Reader &reader : shared.readers)
          look(reader.variable);
      }
    }
    parameters.assign(found.begin(), found.end());
  }

  void findBorder() {
    // Behind the variables stand those of the next round.
    const int32_t count = static_cast<int32_t>(options.size());
    CostNetwork carried{options, {}, {}, 0};
    carried.options.insert(carried.options.end(), options.begin(), options.end());
    append(carried, section.carried, [&](int32_t reference) { return reference < 0 ? count + ~reference : reference; });
    Lowered factors = lower(workspace, carried);
    std::map<int32_t, PartitionRef> parts;
    for (const Factor &factor : factors.factors)
      for (size_t a = 0; a < factor.scope.size(); ++a) {
        PartitionRef &part = parts[factor.scope[a]];
        part = part ? workspace.partitions.meet(part, factor.parts[a]) : factor.parts[a];
      }
    Border sides[2];
    for (auto [number, part] : parts)
      if (isOwn[number % count]) {
        sides[number / count].variables.push_back(number % count);
        sides[number / count].parts.push_back(part);
      }
    isBehind = sides[1].states() < sides[0].states();
    border = std::move(sides[isBehind]);
  }

  /// Variables: those of one round, the state before it, the state behind it, the parameters.
  void buildStep() {
    int32_t count = 0;
    std::map<int32_t, int32_t> numbers;
    auto add = [&](int32_t options) {
      stepNetwork.options.push_back(options);
      return count++;
    };
    for (int32_t variable : section.variables)
      numbers[variable] = add(options[variable]);
    for (PartitionRef part : border.parts)
      before.push_back(add(part->classes()));
    for (PartitionRef part : border.parts)
      after.push_back(add(part->classes()));
    for (int32_t parameter : parameters)
      parameterNumbers.push_back(numbers[parameter] = add(options[parameter]));
    append(stepNetwork, section.within, [&](int32_t reference) { return numbers[reference]; });
    // Of this round, the side that is not the border; the border is the state before or behind.
    append(stepNetwork, carriedByState(), [&](int32_t reference) {
      const int32_t variable = variableOf(reference);
      if (!isOwn[variable] || (reference < 0) != isBehind)
        return numbers[variable];
      auto at = std::find(border.variables.begin(), border.variables.end(), variable) - border.variables.begin();
      return isBehind ? after[at] : before[at];
    });
    for (size_t i = 0; i < border.variables.size(); ++i)
      stepNetwork.tables.push_back(
          equality(numbers[border.variables[i]], isBehind ? before[i] : after[i], *border.parts[i]));
  }

  int32_t stateOf(const Choice &classes) const {
    size_t state = 0;
    for (size_t i = 0; i < classes.size(); ++i)
      state = state * border.parts[i]->classes() + classes[i];
    return static_cast<int32_t>(state);
  }

  void setState(Choice &choice, const std::vector<int32_t> &numbers, int32_t state) const {
    for (size_t i = numbers.size(); i-- > 0; state /= border.parts[i]->classes())
      choice[numbers[i]] = state % border.parts[i]->classes();
  }

  Choice round(const Choice &ofParameters, const Steps &states) const {
    Choice choice(stepNetwork.options.size());
    for (size_t p = 0; p < parameters.size(); ++p)
      choice[parameterNumbers[p]] = ofParameters[p];
    setState(choice, before, states.from);
    setState(choice, after, states.to);
    step->decode(choice);
    choice.resize(section.variables.size());
    return choice;
  }

public:
  /// Ties a variable to its class.
  static Table equality(int32_t variable, int32_t ofClass, const Partition &part) {
    Table table{{variable, ofClass}, std::vector<double>(part.classOf.size() * part.first.size(), infinity)};
    for (size_t option = 0; option < part.classOf.size(); ++option)
      table.costs[option * part.first.size() + part.classOf[option]] = 0;
    return table;
  }

private:
  const std::vector<int32_t> &options;
  const Section &section;
  std::vector<char> isOwn;
  Workspace &workspace;
  Border border;
  CostNetwork stepNetwork;
  std::vector<int32_t> before, after, parameterNumbers;
  std::unique_ptr<Elimination> step;
  std::vector<double> steps;
};

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

  bool solve(const SolveLimits &limits, RepeatedSolution &solution) {
    Solution &summary = solution.summary;
    unrolled = unroll(shortened);
    states.resize(middles.size());
    for (size_t s = 0; s < middles.size(); ++s)
      if (middles[s] && !(middles[s]->solve(limits, summary) && (addMiddle(s), true)))
        return false;
    Solution flat =
        solveExactly(workspace, unrolled.network, {limits.tableEntries, limits.operations - summary.operations});
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

RepeatedSolution solveExactly(const RepeatedNetwork &network, const SolveLimits &limits) {
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
  constexpr int64_t unrollable = 20000;
  if (variables <= unrollable) {
    Unrolled unrolled = unroll(network);
    solution.summary = solveExactly(unrolled.network, limits);
    solution.choice = rolled(network, unrolled, solution.summary.choice);
    solution.summary.choice = solution.choice.choice;
    return solution;
  }
  solution = solveTied(network, limits);
  solution.summary.bound = -infinity;
  if (hasParameters)
    solution.summary.bound = solveExactly(withOwnParameters(network), limits).summary.bound;
  solution.summary.optimal = solution.summary.bound >= solution.summary.cost;
  return solution;
}

} // namespace msc::search
