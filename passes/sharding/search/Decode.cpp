// From the buckets of an elimination back to options.
#include "passes/sharding/search/Elimination.h"
#include "passes/sharding/search/PaidOnce.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>

namespace msc::search {

static int32_t lowest(const std::vector<double> &costs) {
  return static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
}

void Elimination::decode(Choice &choice) const {
  for (size_t b = buckets.size(); b-- > 0;)
    decode(buckets[b], choice);
}

std::vector<std::vector<int32_t>> Elimination::bucketsAround() const {
  std::vector<std::vector<int32_t>> around(options.size());
  for (size_t b = 0; b < buckets.size(); ++b)
    for (int32_t number : buckets[b].factors)
      for (int32_t variable : factors[number].scope)
        if (std::vector<int32_t> &known = around[variable]; (known.empty() || known.back() != static_cast<int32_t>(b)) &&
                                                            std::ranges::find(buckets[b].variables, variable) == buckets[b].variables.end())
          known.push_back(static_cast<int32_t>(b));
  return around;
}

void Elimination::decodeBehind(size_t step, const std::vector<std::vector<int32_t>> &around, Choice &choice, std::vector<int32_t> &changed) const {
  std::priority_queue<int32_t> next; // the last bucket comes first
  auto change = [&](int32_t variable) {
    changed.push_back(variable);
    for (int32_t bucket : around[variable])
      next.push(bucket);
  };
  const int32_t own = places[step].first;
  change(order[step]);
  for (++step; step < order.size() && places[step].first == own; ++step)
    if (const int32_t option = lowest(costsAt(step, choice, /*slack=*/0)); option != choice[order[step]]) {
      choice[order[step]] = option;
      change(order[step]);
    }
  std::vector<int32_t> before;
  while (!next.empty()) {
    const Bucket &bucket = buckets[next.top()];
    for (const int32_t number = next.top(); !next.empty() && next.top() == number;)
      next.pop();
    if (&bucket >= &buckets[own]) // was decoded before it
      continue;
    before.clear();
    for (int32_t variable : bucket.variables)
      before.push_back(choice[variable]);
    decode(bucket, choice);
    for (size_t i = 0; i < before.size(); ++i)
      if (choice[bucket.variables[i]] != before[i])
        change(bucket.variables[i]);
  }
}

/// Of every option: the sum of the factors of the bucket that have the variable, without one of them.
std::vector<double> Elimination::costsAlone(int32_t variable, const std::vector<int32_t> &bucket, int32_t except,
                                            Choice &choice) const {
  std::vector<double> costs(options[variable]);
  for (int32_t number : bucket)
    if (number != except)
      if (size_t axis = factors[number].axisOf(variable); axis < factors[number].scope.size())
        factors[number].addTo(costs, axis, choice);
  return costs;
}

namespace {

/// Which item sets the readers of a value ask for.
struct ItemSets {
  const Factor &value;
  const Choice &choice;

  int32_t classOf(size_t axis) const { return value.parts[axis]->classOf[choice[value.scope[axis]]]; }

  /// Items of all readers that are not among `open` (positions in the readers).
  std::vector<int32_t> without(const std::vector<size_t> &open) const {
    std::vector<int32_t> asked;
    for (size_t r = 0; r < value.shared->itemsOf.size(); ++r)
      if (std::find(open.begin(), open.end(), r) == open.end()) {
        const std::vector<int32_t> &items = value.shared->itemsOf[r][classOf(r + 1)];
        asked.insert(asked.end(), items.begin(), items.end());
      }
    return distinct(std::move(asked));
  }

  static std::vector<int32_t> distinct(std::vector<int32_t> items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    return items;
  }
};

/// The least of `costs` over each class, at last.
std::vector<double> leastOfClasses(const std::vector<double> &costs, const Partition &part) {
  std::vector<double> least(part.first.size(), infinity);
  for (size_t option = 0; option < costs.size(); ++option)
    least[part.classOf[option]] = std::min(least[part.classOf[option]], costs[option]);
  return least;
}

} // namespace

/// Readers of a value that are chosen together, in what surrounds them.
class Elimination::Among {
public:
  /// The readers of the bucket from `position` on; the item sets of those before it are set, but for `except`.
  Among(const Elimination &elimination, const Bucket &bucket, size_t position, Choice &choice, int32_t except = -1)
      : elimination(elimination), value(elimination.factors[bucket.value]), choice(choice), sets{value, choice} {
    for (size_t i = std::max<size_t>(position, bucket.inner >= 0); i < bucket.variables.size(); ++i) {
      variables.push_back(bucket.variables[i]);
      readers.push_back(value.axisOf(bucket.variables[i]) - 1);
    }
    if (position == 0 && except < 0) { // asked for again with every assignment that is decoded
      std::unique_ptr<PaidOnce> &known = elimination.together[&bucket - elimination.buckets.data()];
      if (!known)
        known = std::make_unique<PaidOnce>(*value.shared, readers);
      paidOnce = known.get();
    } else {
      paidOnce = &here.emplace(*value.shared, readers);
    }
    std::vector<size_t> open = readers;
    if (except >= 0)
      open.push_back(value.axisOf(except) - 1);
    given = sets.without(open);
  }

  /// Reads what the readers cost themselves, in the present surroundings.
  void look(const Bucket &bucket) {
    own.clear();
    ofClasses.clear();
    rows.clear();
    for (size_t i = 0; i < variables.size(); ++i) {
      own.push_back(elimination.costsAlone(variables[i], bucket.factors, bucket.value, choice));
      ofClasses.push_back(leastOfClasses(own[i], *value.parts[readers[i] + 1]));
    }
    for (const std::vector<double> &row : ofClasses)
      rows.push_back(row.data());
  }

  /// The least that they cost, if these items (sorted) are asked for besides those of readers outside the bucket.
  double cheapest(const std::vector<int32_t> &asked, std::vector<int32_t> *classes = nullptr) {
    setContext(asked);
    return paidOnce->cheapest(rows, classes);
  }

  /// The same where it is below that; else something that is not.
  double cheapestBelow(const std::vector<int32_t> &asked, double below) {
    setContext(asked);
    return paidOnce->cheapest(rows, nullptr, PaidOnce::manyBranches, below);
  }

  /// Sets the readers, after cheapest().
  void choose(const std::vector<int32_t> &classes) {
    for (size_t i = 0; i < readers.size(); ++i) {
      const Partition &part = *value.parts[readers[i] + 1];
      for (size_t option = 0; option < own[i].size(); ++option)
        if (part.classOf[option] != classes[i])
          own[i][option] = infinity;
      choice[variables[i]] = lowest(own[i]);
    }
  }

private:
  void setContext(const std::vector<int32_t> &asked) {
    std::vector<int32_t> all = given;
    all.insert(all.end(), asked.begin(), asked.end());
    paidOnce->setContext(sets.classOf(0), ItemSets::distinct(std::move(all)));
  }

  const Elimination &elimination;
  const Factor &value;
  Choice &choice;
  ItemSets sets;
  std::vector<int32_t> variables;
  std::vector<size_t> readers;
  std::optional<PaidOnce> here;
  PaidOnce *paidOnce = nullptr; ///< `here`, or what the elimination keeps
  std::vector<int32_t> given;
  std::vector<std::vector<double>> own, ofClasses;
  std::vector<const double *> rows;
};

void Elimination::decode(const Bucket &bucket, Choice &choice) const {
  if (bucket.value < 0) {
    choice[bucket.variables[0]] = lowest(costsAlone(bucket.variables[0], bucket.factors, -1, choice));
    return;
  }
  if (bucket.inner >= 0)
    choice[bucket.inner] = lowest(costsOfInner(bucket, choice, /*slack=*/0));
  std::vector<int32_t> classes;
  Among among(*this, bucket, 0, choice);
  among.look(bucket);
  among.cheapest({}, &classes);
  among.choose(classes);
}

std::vector<double> Elimination::costsAt(size_t step, Choice &choice, double slack) const {
  const Bucket &bucket = buckets[places[step].first];
  if (bucket.value < 0)
    return costsAlone(order[step], bucket.factors, -1, choice);
  if (order[step] == bucket.inner)
    return costsOfInner(bucket, choice, slack);
  return costsAmong(bucket, places[step].second, choice, slack);
}

/// Adds to each cost what `more` says, which need not be exact where the sum is so far above the least. The one that was chosen before comes
/// first: what surrounds it has changed little, as a rule.
template <typename More> static void addMore(std::vector<double> &costs, size_t first, double slack, More more) {
  constexpr double rounding = 1e-9;
  double least = infinity;
  for (size_t i = 0; i < costs.size(); ++i) {
    const size_t at = i == 0 ? first : i <= first ? i - 1 : i;
    if (!(costs[at] < infinity))
      continue;
    const double room = least + slack - costs[at];
    costs[at] += more(at, room < infinity ? room + rounding * std::abs(room) : infinity);
    least = std::min(least, costs[at]);
  }
}

/// Of every option of the inner variable: its own cost and the least of the readers.
std::vector<double> Elimination::costsOfInner(const Bucket &bucket, Choice &choice, double slack) const {
  std::vector<int32_t> apart; // factors without readers
  for (int32_t number : bucket.factors)
    if (std::none_of(bucket.variables.begin() + 1, bucket.variables.end(),
                     [&](int32_t reader) { return factors[number].axisOf(reader) < factors[number].scope.size(); }))
      apart.push_back(number);
  std::vector<double> costs = costsAlone(bucket.inner, apart, bucket.value, choice);
  Among among(*this, bucket, 1, choice);
  addMore(costs, choice[bucket.inner], slack, [&](size_t option, double below) {
    choice[bucket.inner] = static_cast<int32_t>(option);
    among.look(bucket);
    return among.cheapestBelow({}, below);
  });
  return costs;
}

/// Of every option of one of several readers: its own cost, and the least of what the readers behind it and the items
/// that are asked for then cost.
std::vector<double> Elimination::costsAmong(const Bucket &bucket, size_t position, Choice &choice, double slack) const {
  const Factor &value = factors[bucket.value];
  const int32_t variable = bucket.variables[position];
  const size_t axis = value.axisOf(variable);
  std::vector<double> costs = costsAlone(variable, bucket.factors, bucket.value, choice);
  Among among(*this, bucket, position + 1, choice, variable);
  among.look(bucket);
  const Partition &part = *value.parts[axis];
  std::vector<double> least = leastOfClasses(costs, part), rest(least.size());
  addMore(least, part.classOf[choice[variable]], slack, [&](size_t itemSet, double below) {
    return rest[itemSet] = among.cheapestBelow(value.shared->itemsOf[axis - 1][itemSet], below);
  });
  for (size_t option = 0; option < costs.size(); ++option)
    costs[option] += rest[part.classOf[option]];
  return costs;
}

} // namespace msc::search
