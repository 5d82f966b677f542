// The rounds of a section between its first and its last one, as one table.
#pragma once

#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/Powers.h"
#include "passes/sharding/search/Repeat.h"

#include <algorithm>
#include <memory>

namespace msc::search {

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
  Middle(Workspace &workspace, const RepeatedNetwork &network, size_t number);

  double tableSize = 1;
  std::vector<int32_t> parameters; ///< variables outside that every round sees
  bool isBehind = false;           ///< the border is that of the round behind

  size_t states() const { return static_cast<size_t>(border.states()); }
  size_t stateVariables() const { return border.variables.size(); }
  const PartitionRef *parts() const { return border.parts.data(); }
  int32_t stateVariable(size_t i) const { return border.variables[i]; }

  /// What is carried, with states in place of the border. References: of the border's side as before.
  Terms carriedByState() const;

  /// [parameters][state][state]: the rounds in the middle. False: limits ran out.
  bool solve(const SolveLimits &limits, Solution &statistics);
  std::vector<double> table;

  /// The rounds in the middle, given the options of the parameters and the first and last state.
  std::vector<Run> runs(const Choice &ofParameters, const Choice &first, const Choice &last);

  /// Ties a variable to its class.
  static Table equality(int32_t variable, int32_t ofClass, const Partition &part);

private:
  void findParameters();
  void findBorder();

  /// Variables: those of one round, the state before it, the state behind it, the parameters.
  void buildStep();
  int32_t stateOf(const Choice &classes) const;
  void setState(Choice &choice, const std::vector<int32_t> &numbers, int32_t state) const;
  Choice round(const Choice &ofParameters, const Steps &states) const;

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

} // namespace msc::search
