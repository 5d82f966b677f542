#include "passes/sharding/search/Elimination.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace msc::search {

EliminationLimits all(const SolveLimits &limits) { return {limits.tableEntries, limits.operations, limits.allEntries}; }

int64_t workOf(const Elimination &elimination, const Lowered &network) {
  constexpr double ofFactor = 20'000, ofKnown = 2'000;
  const double known = elimination.eliminations > 0 ? double(elimination.repeated) / double(elimination.eliminations) : 0;
  return elimination.operations + static_cast<int64_t>((ofFactor + known * (ofKnown - ofFactor)) * static_cast<double>(network.factors.size()));
}

EliminationLimits exactly(EliminationLimits limits) {
  limits.splits = false;
  return limits;
}

EliminationLimits few(const SolveLimits &limits) {
  return {std::min(limits.tableEntries, int64_t(1) << 20), std::min(limits.operations, int64_t(1) << 26), limits.allEntries};
}

Elimination::Elimination(Workspace &workspace, const Lowered &network, const EliminationLimits &limits,
                         std::vector<int32_t> keptGiven, std::function<bool(double)> givesUp)
    : workspace(workspace), options(network.options), kept(std::move(keptGiven)), limits(limits), givesUp(std::move(givesUp)),
      factorsOf(network.options.size()), isGone(network.options.size()), crowded(network.options.size()),
      constant(network.constant) {
  factors.reserve(network.factors.size() * 2 + options.size());
  for (const Factor &given : network.factors)
    for (Factor &factor : withoutDecided(workspace, given))
      addFactor(std::move(factor));
  for (int32_t variable : kept)
    isGone[variable] = 1;
  run();
  for (size_t b = buckets.size(); b-- > 0;)
    for (size_t position = 0; position < buckets[b].variables.size(); ++position) {
      order.push_back(buckets[b].variables[position]);
      places.emplace_back(b, position);
    }
}

void Elimination::addFactor(Factor factor) {
  if (factor.scope.empty()) {
    constant += factor.costs->values[0];
    return;
  }
  for (int32_t variable : factor.scope)
    factorsOf[variable].push_back(static_cast<int32_t>(factors.size()));
  valuesAlive += factor.shared != nullptr;
  factors.push_back(std::move(factor));
  alive.push_back(1);
}

void Elimination::run() {
  const int32_t variables = static_cast<int32_t>(options.size());
  const int32_t given = static_cast<int32_t>(factors.size());
  versions.resize(variables + given);
  for (int32_t number = 0; number < variables + given; ++number)
    review(number);
  while (!queue.empty() && finished) {
    Candidate next = queue.top();
    queue.pop();
    if (next.version != versions[next.number])
      continue;
    if (next.number < variables)
      if (double weight = weightOf(next.number); weight > next.weight) {
        queue.push({weight, next.number, next.version});
        continue;
      }
    finished = isWorthIt(next);
    if (finished)
      next.number < variables ? eliminate(next.number) : eliminateReaders(next.number - variables);
    if (finished && operations > limits.operations)
      endUnfinished();
  }
}

/// Asks, where it takes long, whether to give up.
bool Elimination::isWorthIt(const Candidate &next) {
  constexpr double muchMore = 64;
  if (!givesUp)
    return true;
  double weight = next.weight, least;
  if (next.number >= static_cast<int32_t>(options.size()))
    weight = std::max(weight, pricingOf(jointReaders(next.number - static_cast<int32_t>(options.size()), &least)));
  weight += static_cast<double>(operations);
  if (weight < patience)
    return true;
  patience = muchMore * weight;
  if (!givesUp(weight))
    return true;
  endUnfinished();
  return false;
}

void Elimination::endUnfinished() {
  constexpr double little = 1e-3; // behind those that are in a table that was too large
  finished = false;
  for (size_t variable = 0; variable < isGone.size(); ++variable)
    crowded[variable] += isGone[variable] ? 0 : little;
}

/// A variable of very many factors is far from being the lightest one; how heavy it is does not matter until most of them are gone.
double Elimination::weightAtLeast(int32_t variable) {
  constexpr size_t neighboursOfHeavy = 50; // of two classes each
  if (factorsOf[variable].size() >= neighboursOfHeavy) {
    FactorRefs first;
    std::set<int32_t> neighbours;
    for (size_t i = 0; i < factorsOf[variable].size() && neighbours.size() <= neighboursOfHeavy; ++i)
      if (const Factor &factor = factors[factorsOf[variable][i]]; factor.scope.size() > 1) {
        first.push_back(&factor);
        neighbours.insert(factor.scope.begin(), factor.scope.end());
      }
    if (double weight = contextSize(first, {variable}); weight > heavy)
      return weight;
  }
  return weightOf(variable);
}

/// Weighs a candidate anew.
void Elimination::review(int32_t number) {
  const int32_t variables = static_cast<int32_t>(options.size());
  const int32_t version = ++versions[number];
  if (number < variables) {
    if (!isGone[number])
      queue.push({weightAtLeast(number), number, version});
  } else if (int32_t value = number - variables; alive[value] && factors[value].shared) {
    double weight;
    jointReaders(value, &weight);
    if (weight < infinity)
      queue.push({weight, number, version});
  }
}

FactorRefs Elimination::refs(const std::vector<int32_t> &numbers) const {
  FactorRefs result;
  for (int32_t number : numbers)
    result.push_back(&factors[number]);
  return result;
}

/// A factor of an equal reduction, with this one's variables.
template <typename Reduce>
Factor Elimination::remembered(const FactorRefs &bucket, std::vector<int64_t> key, Reduce reduce) {
  std::vector<int32_t> numbers; // variables in order of appearance
  for (const Factor *factor : bucket) {
    key.push_back(factor->id());
    key.push_back(static_cast<int64_t>(factor->scope.size())); // equal costs may have axes of one class or not
    for (size_t a = 0; a < factor->scope.size(); ++a) {
      auto known = std::find(numbers.begin(), numbers.end(), factor->scope[a]);
      key.push_back(known - numbers.begin());
      key.push_back(factor->parts[a]->id);
      if (known == numbers.end())
        numbers.push_back(factor->scope[a]);
    }
  }
  ++eliminations;
  auto [place, isNew] = workspace.reductions.try_emplace(std::move(key));
  if (isNew) {
    Factor made = reduce();
    allEntries += made.entries();
    workspace.entriesOfReductions += made.entries();
    for (int32_t &variable : made.scope)
      variable = static_cast<int32_t>(std::find(numbers.begin(), numbers.end(), variable) - numbers.begin());
    place->second = std::move(made);
  } else {
    ++repeated;
  }
  Factor result = place->second;
  for (int32_t &variable : result.scope)
    variable = numbers[variable];
  largestTable = std::max(largestTable, result.entries());
  return result;
}

Factor Elimination::reduceOnce(const FactorRefs &bucket, int32_t variable) {
  const size_t axis = bucket.empty() ? 0 : bucket[0]->axisOf(variable);
  return remembered(bucket, {0, options[variable], static_cast<int64_t>(axis)}, [&] {
    operations += static_cast<int64_t>(contextSize(bucket, {variable})) *
                  finest(workspace, bucket, variable, options[variable])->classes();
    return reduce(workspace, bucket, variable, options[variable]);
  });
}

Factor Elimination::reduceOnce(const JointReaders &joint, const FactorRefs &bucket) {
  std::vector<int64_t> key = {1, static_cast<int64_t>(joint.readers.size()), joint.innerOptions};
  key.insert(key.end(), joint.readers.begin(), joint.readers.end());
  for (const FactorRefs &others : joint.otherFactors)
    key.push_back(static_cast<int64_t>(others.size()));
  if (joint.inner >= 0) // which of the variables it is
    for (const Factor *factor : bucket)
      key.push_back(static_cast<int64_t>(factor->axisOf(joint.inner)));
  return remembered(bucket, std::move(key), [&] {
    return reduce(workspace, joint, operations);
  });
}

/// Replaces a bucket by what is left of it.
void Elimination::close(const std::vector<int32_t> &bucket, std::vector<Factor> results) {
  std::vector<int32_t> touched;
  for (int32_t number : bucket) {
    alive[number] = 0;
    valuesAlive -= factors[number].shared != nullptr;
    if (size_t candidate = options.size() + number; candidate < versions.size())
      ++versions[candidate];
    for (int32_t variable : factors[number].scope) {
      std::vector<int32_t> &own = factorsOf[variable];
      own.erase(std::find(own.begin(), own.end(), number));
      touched.push_back(variable);
    }
  }
  for (Factor &result : results)
    if (!result.shared)
      result = std::move(withoutDecided(workspace, std::move(result)).front());
  if (results.size() == 1 && !results.front().scope.empty())
    buckets.back().result = static_cast<int32_t>(factors.size());
  for (Factor &factor : results)
    addFactor(std::move(factor));
  auto dropRepetitions = [](std::vector<int32_t> &numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  };
  dropRepetitions(touched);
  // Values that these read, and those that their neighbours do: they may be minimised with them.
  std::vector<int32_t> near, values;
  for (int32_t variable : touched) {
    review(variable);
    if (valuesAlive == 0)
      continue;
    for (int32_t number : factorsOf[variable])
      near.insert(near.end(), factors[number].scope.begin(), factors[number].scope.end());
  }
  dropRepetitions(near);
  for (int32_t variable : near)
    for (int32_t number : factorsOf[variable])
      if (factors[number].shared)
        values.push_back(number);
  dropRepetitions(values);
  for (int32_t value : values)
    if (size_t number = options.size() + value; number < versions.size())
      review(static_cast<int32_t>(number));
}

void Elimination::eliminate(int32_t variable) {
  std::vector<int32_t> bucket = factorsOf[variable];
  std::sort(bucket.begin(), bucket.end());
  isGone[variable] = 1;
  ++versions[variable];
  buckets.push_back({.variables = {variable}, .factors = bucket});
  FactorRefs all = refs(bucket);
  bool hasLargeShared = std::any_of(all.begin(), all.end(), [&](const Factor *factor) {
    return factor->shared && factor->entries() > limits.tableEntries;
  });
  const double context = contextSize(all, {variable});
  const double work = context * finest(workspace, all, variable, options[variable])->classes();
  if (hasLargeShared || context > double(limits.tableEntries) || context + double(allEntries) > double(limits.allEntries) ||
      double(operations) + work > double(limits.operations)) {
    eliminateSplit(variable, bucket);
    return;
  }
  close(bucket, {reduceOnce(all, variable)});
}

void Elimination::eliminateReaders(int32_t value) {
  double weight;
  JointReaders joint = jointReaders(value, &weight);
  std::vector<int32_t> bucket = {value}, variables;
  if (joint.inner >= 0)
    variables.push_back(joint.inner);
  for (size_t reader : joint.readers) {
    variables.push_back(joint.value->scope[reader + 1]);
    for (int32_t number : factorsOf[variables.back()])
      if (number != value)
        bucket.push_back(number);
  }
  for (const Factor *factor : joint.innerFactors)
    bucket.push_back(static_cast<int32_t>(factor - factors.data()));
  FactorRefs all = refs(bucket);
  const double context = contextSize(all, variables), pricing = pricingOf(joint);
  if (context > double(limits.tableEntries) || context + double(allEntries) > double(limits.allEntries) ||
      double(operations) + pricing > double(limits.operations) || pricing > double(limits.allEntries)) {
    ++versions[options.size() + value]; // one by one, as soon as they are the lightest
    return;
  }
  for (int32_t variable : variables) {
    isGone[variable] = 1;
    ++versions[variable];
  }
  buckets.push_back({.variables = variables, .factors = bucket, .value = value, .inner = joint.inner});
  Factor left = reduceOnce(joint, all);
  if (left.isBound) { // the readers' own options make it long
    isSplit = true;
    for (size_t reader : joint.readers)
      crowded[joint.value->scope[reader + 1]] += std::log(double(joint.value->parts[reader + 1]->classes()));
    if (!limits.splits)
      return endUnfinished();
  }
  close(bucket, {std::move(left)});
}

/// A value with many readers, each of which pays an equal share of each of its items: never more than what is paid.
std::vector<Factor> Elimination::withoutLargeShared(const Factor &factor) {
  if (!factor.shared || factor.entries() <= limits.tableEntries)
    return {factor};
  std::vector<Factor> pairs;
  const SharedForm &form = *factor.shared;
  for (size_t r = 0; r < form.itemsOf.size(); ++r) {
    Factor pair;
    pair.scope = {factor.scope[0], factor.scope[r + 1]};
    pair.parts = {factor.parts[0], factor.parts[r + 1]};
    std::vector<double> values;
    for (const std::vector<double> &prices : form.prices)
      for (const std::vector<int32_t> &items : form.itemsOf[r]) {
        double sum = 0;
        for (int32_t item : items)
          sum += prices[item] / double(form.itemsOf.size());
        values.push_back(sum);
      }
    pair.costs = workspace.costs(std::move(values));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

/// Mini-buckets: parts of the bucket, each small enough, are minimised on their own.
void Elimination::eliminateSplit(int32_t variable, const std::vector<int32_t> &bucket) {
  for (const Axis &axis : contextOf(workspace, refs(bucket), {}))
    crowded[axis.variable] += std::log(double(axis.part->classes()));
  if (!limits.splits)
    return endUnfinished();
  isSplit = true;
  std::vector<Factor> whole, apart; // with and without the variable
  for (int32_t number : bucket)
    for (Factor &factor : withoutLargeShared(factors[number]))
      (factor.axisOf(variable) < factor.scope.size() ? whole : apart).push_back(std::move(factor));
  FactorRefs widestFirst;
  for (size_t size = 1; size <= options.size() && widestFirst.size() < whole.size(); ++size)
    for (size_t i = whole.size(); i-- > 0;)
      if (whole[i].scope.size() == size)
        widestFirst.insert(widestFirst.begin(), &whole[i]);
  std::vector<FactorRefs> parts;
  constexpr double smallTable = 1 << 14; // of parts, however many there are
  const double room = std::min({double(limits.tableEntries), double(limits.operations - operations),
                                std::max(smallTable, double(limits.allEntries - allEntries))});
  for (const Factor *factor : widestFirst) {
    auto fits = [&](FactorRefs part) {
      part.push_back(factor);
      return contextSize(part, {variable}) * options[variable] <= room;
    };
    auto part = std::find_if(parts.begin(), parts.end(), fits);
    if (part == parts.end())
      parts.push_back({factor});
    else
      part->push_back(factor);
  }
  for (const FactorRefs &part : parts)
    apart.push_back(reduceOnce(part, variable));
  close(bucket, std::move(apart));
}

int32_t Elimination::widest() const {
  return static_cast<int32_t>(std::max_element(crowded.begin(), crowded.end()) - crowded.begin());
}

std::vector<int32_t> Elimination::crowdedFirst() const {
  std::vector<int32_t> variables;
  for (int32_t variable = 0; variable < static_cast<int32_t>(crowded.size()); ++variable)
    if (crowded[variable] > 0)
      variables.push_back(variable);
  std::ranges::stable_sort(variables, {}, [&](int32_t variable) { return -crowded[variable]; });
  return variables;
}

std::vector<double> Elimination::table() const {
  size_t size = 1;
  for (int32_t variable : kept)
    size *= options[variable];
  std::vector<double> values(size, constant);
  Choice choice(options.size());
  for (size_t index = 0; index < size; ++index) {
    size_t rest = index;
    for (size_t k = kept.size(); k-- > 0;) {
      choice[kept[k]] = static_cast<int32_t>(rest % options[kept[k]]);
      rest /= options[kept[k]];
    }
    for (size_t number = 0; number < factors.size(); ++number)
      if (alive[number])
        values[index] += factors[number].at(choice);
  }
  return values;
}

} // namespace msc::search
