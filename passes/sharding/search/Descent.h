// Local improvement of an assignment.
#pragma once

#include "passes/sharding/search/CostNetwork.h"

namespace msc::search {

/// An assignment and what its neighbours cost: those in which one variable takes another option.
class Neighbourhood {
public:
  Neighbourhood(const CostNetwork &network, Choice choice);

  const Choice &choice() const { return current; }
  void set(int32_t variable, int32_t option) { current[variable] = option; }
  /// Of every option of a variable: the cost of everything that depends on it, the others being as they are. Valid
  /// until the next call.
  const std::vector<double> &costsOf(int32_t variable);

private:
  void add(const Table &table, int32_t variable);
  void add(const SharedCost &shared, int32_t variable);

  const CostNetwork &network;
  Choice current;
  // Numbers of tables and of shared costs of each variable: those of variable v are [first[v], first[v + 1]).
  std::vector<int32_t> firstTable, tables, firstShared, shared;
  std::vector<char> asked;
  std::vector<double> costs;
};

/// Goes through the variables and gives each its cheapest option beside all others, until nothing changes or `rounds`
/// are over. Never dearer than `choice`.
Choice descended(const CostNetwork &network, Choice choice, int rounds = 20);

} // namespace msc::search
