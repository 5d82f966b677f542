#include "passes/partition/PartialSums.h"

#include "runtime/plan/Refinement.h"

#include <algorithm>

namespace msc::passes {

std::optional<Sharding> partialResult(const Sharding &result, const Sharding &operand, const std::vector<Sharding> &others) {
  if (result.isPartial())
    return std::nullopt;
  std::optional<std::vector<int64_t>> refined = commonRefinement({&result.axes, &operand.axes});
  for (const Sharding &other : others)
    if (refined)
      refined = commonRefinement({&*refined, &other.axes});
  if (!refined)
    return std::nullopt;
  Sharding terms = refine(operand, *refined), left = refine(result, *refined);
  std::vector<Sharding> whole{left};
  for (const Sharding &other : others)
    whole.push_back(refine(other, *refined));
  for (const PartialAxis &partial : terms.partial)
    for (const Sharding &sharding : whole) {
      if (sharding.isPartial() || partial.kind != ReduceKind::Sum)
        return std::nullopt;
      for (const auto &dim : sharding.dims)
        if (std::find(dim.begin(), dim.end(), partial.axis) != dim.end())
          return std::nullopt;
    }
  left.partial = terms.partial;
  return left.canonical();
}

/// A pass may only do what takes less time, by more than rounding.
static bool isLess(double us, double than) { return us < than * (1 - 1e-9); }

bool completesSooner(const Terms &made, const Terms &operand, const MachineModel &machine) {
  auto us = [&](const Terms &terms) {
    return dist::reshardUs(dist::planCompletion(terms.sharding, terms.shape), terms.elementBytes, machine);
  };
  return isLess(us(made), us(operand));
}

/// Time of adding so many values of this sharding, element by element.
static double addUs(const Sharding &sharding, const Terms &of, size_t count, const MachineModel &machine) {
  auto elements = static_cast<double>(elementCount(sharding.capacity(of.shape)));
  auto bytes = elements * static_cast<double>(of.elementBytes), values = static_cast<double>(count);
  return machine.operatorUs(elements * (values - 1), bytes * values, bytes);
}

bool addsSooner(const Terms &terms, const Sharding &wanted, size_t count, dist::ReshardPlanner &planner) {
  const double moveUs = planner.us(terms.sharding, wanted, terms.shape, terms.elementBytes);
  return isLess(moveUs + addUs(terms.sharding, terms, count, planner.machine()),
                static_cast<double>(count) * moveUs + addUs(wanted, terms, count, planner.machine()));
}

} // namespace msc::passes
