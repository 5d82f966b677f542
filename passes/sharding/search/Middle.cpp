#include "passes/sharding/search/Middle.h"
#include "passes/sharding/search/TermsMap.h"

#include <map>
#include <set>

namespace msc::search {

Middle::Middle(Workspace &workspace, const RepeatedNetwork &network, size_t number)
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

bool Middle::solve(const SolveLimits &limits, Solution &statistics) {
  buildStep();
  std::vector<int32_t> kept = parameterNumbers;
  kept.insert(kept.end(), before.begin(), before.end());
  kept.insert(kept.end(), after.begin(), after.end());
  step = std::make_unique<Elimination>(
      workspace, lower(workspace, stepNetwork),
      EliminationLimits{limits.tableEntries, limits.operations - statistics.operations, limits.allEntries}, kept);
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

std::vector<Run> Middle::runs(const Choice &ofParameters, const Choice &first, const Choice &last) {
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

Terms Middle::carriedByState() const {
  return projected(section.carried, options, [&](int32_t reference) -> const std::vector<int32_t> * {
    if ((reference < 0) != isBehind || !isOwn[variableOf(reference)])
      return nullptr;
    return border.kept(variableOf(reference));
  });
}

void Middle::findParameters() {
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

void Middle::findBorder() {
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

void Middle::buildStep() {
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

int32_t Middle::stateOf(const Choice &classes) const {
  size_t state = 0;
  for (size_t i = 0; i < classes.size(); ++i)
    state = state * border.parts[i]->classes() + classes[i];
  return static_cast<int32_t>(state);
}

void Middle::setState(Choice &choice, const std::vector<int32_t> &numbers, int32_t state) const {
  for (size_t i = numbers.size(); i-- > 0; state /= border.parts[i]->classes())
    choice[numbers[i]] = state % border.parts[i]->classes();
}

Choice Middle::round(const Choice &ofParameters, const Steps &states) const {
  Choice choice(stepNetwork.options.size());
  for (size_t p = 0; p < parameters.size(); ++p)
    choice[parameterNumbers[p]] = ofParameters[p];
  setState(choice, before, states.from);
  setState(choice, after, states.to);
  step->decode(choice);
  choice.resize(section.variables.size());
  return choice;
}

Table Middle::equality(int32_t variable, int32_t ofClass, const Partition &part) {
  Table table{{variable, ofClass}, std::vector<double>(part.classOf.size() * part.first.size(), infinity)};
  for (size_t option = 0; option < part.classOf.size(); ++option)
    table.costs[option * part.first.size() + part.classOf[option]] = 0;
  return table;
}

} // namespace msc::search
