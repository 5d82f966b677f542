// Which variable goes next: the one with the least work.
#include "passes/sharding/search/Elimination.h"

#include <algorithm>
#include <map>

namespace msc::search {

double Elimination::contextSize(const FactorRefs &of, const std::vector<int32_t> &without) {
  double size = 1;
  for (const Axis &axis : contextOf(workspace, of, without))
    size *= axis.part->classes();
  return size;
}

double Elimination::weightOf(int32_t variable) {
  FactorRefs bucket = refs(factorsOf[variable]);
  double own = contextSize(bucket, {variable}) * finest(workspace, bucket, variable, options[variable])->classes();
  for (const Factor *factor : bucket)
    if (factor->shared) // has to be tabulated
      own += 16.0 * double(factor->entries());
  return std::max(own, weightOfReadersAround(variable) * (1 + 1e-6));
}

/// Those readers that nothing but the value connects.
JointReaders Elimination::independentReaders(int32_t value) const {
  JointReaders joint;
  joint.value = &factors[value];
  Marks &taken = workspace.marks; // neighbours are not
  taken.clear();
  for (size_t r = 0; r + 1 < joint.value->scope.size(); ++r) {
    const int32_t reader = joint.value->scope[r + 1];
    if (isGone[reader])
      continue;
    FactorRefs others;
    bool isFree = true;
    for (int32_t number : factorsOf[reader])
      if (number != value) {
        others.push_back(&factors[number]);
        for (int32_t neighbour : factors[number].scope)
          isFree = isFree && !taken.find(neighbour);
      }
    if (!isFree)
      continue;
    taken.set(reader, 1);
    joint.readers.push_back(r);
    joint.otherFactors.push_back(std::move(others));
    joint.options.push_back(options[reader]);
  }
  return joint;
}

/// Work of minimising readers together: of the costs of their item sets, and of the context, the size of which is told.
double Elimination::weightOf(const JointReaders &joint, double &context) {
  std::vector<int32_t> without;
  if (joint.inner >= 0)
    without.push_back(joint.inner);
  FactorRefs all = {joint.value};
  double choosing = 0, weight = 0;
  for (size_t i = 0; i < joint.readers.size(); ++i) {
    const int32_t reader = joint.value->scope[joint.readers[i] + 1];
    without.push_back(reader);
    weight += contextSize(joint.otherFactors[i], {reader}) * options[reader];
    choosing += 2.0 * joint.value->parts[joint.readers[i] + 1]->classes();
    all.insert(all.end(), joint.otherFactors[i].begin(), joint.otherFactors[i].end());
  }
  all.insert(all.end(), joint.innerFactors.begin(), joint.innerFactors.end());
  if (joint.readers.size() > 3) // by branching, see PaidOnce
    choosing *= 100;
  if (joint.inner >= 0) // most of its options are left out by their bounds
    choosing = 3 * choosing + 4.0 * options[joint.inner];
  context = contextSize(all, without);
  return weight + context * choosing;
}

/// Additions and minima of pricing rows of readers beside all that may be asked for; some of them alone are needed, see weightOf.
double Elimination::pricingOf(const JointReaders &joint) {
  std::vector<int32_t> without;
  double hubs = 0, work = 0;
  for (size_t reader : joint.readers) {
    without.push_back(joint.value->scope[reader + 1]);
    hubs += joint.value->parts[reader + 1]->classes();
  }
  constexpr double rowsAtOnce = 8; // fewer take as long
  const double contexts = contextSize({joint.value}, without);
  for (size_t i = 0; i < joint.readers.size(); ++i) {
    FactorRefs all = joint.otherFactors[i];
    all.push_back(joint.value);
    const double rows = std::max(contextSize(all, without), rowsAtOnce * contexts);
    work += rows * (2.0 * joint.value->parts[joint.readers[i] + 1]->classes() + hubs);
  }
  return work;
}

/// The lightest way to minimise readers of a value together, with or without one of their neighbours.
JointReaders Elimination::jointReaders(int32_t value, double *weight) {
  JointReaders best = independentReaders(value), plain = best;
  *weight = infinity;
  if (best.readers.size() < 2)
    return best;
  double context, withInner;
  *weight = weightOf(best, context);
  std::vector<int32_t> members;
  std::map<int32_t, size_t> neighbours; // how many readers each has
  for (size_t i = 0; i < plain.readers.size(); ++i) {
    members.push_back(plain.value->scope[plain.readers[i] + 1]);
    for (const Axis &axis : contextOf(workspace, plain.otherFactors[i], {members.back()}))
      ++neighbours[axis.variable];
  }
  for (auto [variable, readers] : neighbours) {
    if (readers < 2 || isGone[variable] || context / options[variable] > heavy || plain.value->axisOf(variable) < plain.value->scope.size())
      continue;
    JointReaders other = plain;
    other.inner = variable;
    other.innerOptions = options[variable];
    bool isSmall = true;
    for (int32_t number : factorsOf[variable]) {
      const Factor &factor = factors[number];
      if (std::any_of(members.begin(), members.end(),
                      [&](int32_t member) { return factor.axisOf(member) < factor.scope.size(); }))
        continue;
      other.innerFactors.push_back(&factor);
      isSmall = isSmall && factor.entries() <= limits.tableEntries;
    }
    if (double own = weightOf(other, withInner); isSmall && own < *weight) {
      *weight = own;
      best = std::move(other);
    }
  }
  return best;
}

/// Whether eliminating a variable would connect readers of a value that are better minimised together: then that comes
/// first.
double Elimination::weightOfReadersAround(int32_t variable) {
  std::vector<int32_t> values;
  double weight = 0;
  for (int32_t number : factorsOf[variable])
    for (int32_t neighbour : factors[number].scope) {
      if (neighbour == variable)
        continue;
      for (int32_t value : factorsOf[neighbour])
        if (factors[value].shared && factors[value].scope.size() > 3 &&
            factors[value].axisOf(variable) == factors[value].scope.size())
          values.push_back(value);
    }
  std::sort(values.begin(), values.end());
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] == values[i - 1] && (i < 2 || values[i] != values[i - 2])) {
      double joint;
      jointReaders(values[i], &joint);
      if (joint < infinity)
        weight = std::max(weight, joint);
    }
  return weight;
}

} // namespace msc::search
