#include "passes/sharding/search/Factor.h"

#include "passes/sharding/search/MinPlus.h"

#include <algorithm>
#include <cstring>

namespace msc::search {

uint64_t hashOf(const void *data, size_t bytes, uint64_t seed) {
  // Four lanes, so that the multiplications overlap.
  uint64_t lanes[4] = {seed ^ 0x9e3779b97f4a7c15, seed + 0xbf58476d1ce4e5b9, seed ^ 0x94d049bb133111eb, bytes};
  const auto *at = static_cast<const unsigned char *>(data);
  auto mix = [](uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * 0xff51afd7ed558ccd;
    return lane ^ (lane >> 32);
  };
  size_t lane = 0;
  for (; bytes >= 8; bytes -= 8, at += 8, lane = (lane + 1) & 3) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    lanes[lane] = mix(lanes[lane], word);
  }
  uint64_t rest = 0;
  if (bytes > 0)
    std::memcpy(&rest, at, bytes);
  return mix(mix(mix(mix(rest, lanes[0]), lanes[1]), lanes[2]), lanes[3]);
}

PartitionRef Partitions::of(const std::vector<int32_t> &labels) {
  auto made = std::make_unique<Partition>();
  made->classOf.resize(labels.size());
  const size_t most = labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end());
  std::vector<int32_t> few(most < 64 * labels.size() ? most + 1 : 0, -1); // numbers of labels; where they are too many, the map
  std::unordered_map<int32_t, int32_t> many;
  for (size_t option = 0; option < labels.size(); ++option) {
    int32_t &number = few.empty() ? many.try_emplace(labels[option], -1).first->second : few[labels[option]];
    if (number < 0) {
      number = made->classes();
      made->first.push_back(static_cast<int32_t>(option));
    }
    made->classOf[option] = number;
  }
  uint64_t hash = hashOf(made->classOf.data(), made->classOf.size() * sizeof(int32_t));
  auto [from, to] = all.equal_range(hash);
  for (; from != to; ++from)
    if (from->second->classOf == made->classOf)
      return from->second.get();
  made->id = static_cast<int32_t>(all.size());
  return all.emplace(hash, std::move(made))->second.get();
}

PartitionRef Partitions::identity(int32_t options) {
  std::vector<int32_t> labels(options);
  for (int32_t option = 0; option < options; ++option)
    labels[option] = option;
  return of(labels);
}

/// Options that are alike in the first are alike in the second.
static bool isFiner(const Partition &a, const Partition &b) {
  if (a.classes() < b.classes())
    return false;
  for (size_t option = 0; option < a.classOf.size(); ++option)
    if (b.classOf[option] != b.classOf[a.first[a.classOf[option]]])
      return false;
  return true;
}

PartitionRef Partitions::meet(PartitionRef a, PartitionRef b) {
  if (a == b || isFiner(*a, *b))
    return a;
  if (isFiner(*b, *a))
    return b;
  if (a->id > b->id)
    std::swap(a, b);
  uint64_t key = uint64_t(uint32_t(a->id)) << 32 | uint32_t(b->id);
  if (auto known = met.find(key); known != met.end())
    return known->second;
  std::vector<int32_t> labels(a->classOf.size());
  for (size_t option = 0; option < labels.size(); ++option)
    labels[option] = a->classOf[option] * b->classes() + b->classOf[option];
  return met[key] = of(labels);
}

/// Of many most say nothing new; what they add up to on the way is not kept.
PartitionRef Partitions::meet(std::vector<PartitionRef> parts) {
  std::ranges::sort(parts, {}, &Partition::id);
  const auto repeated = std::ranges::unique(parts);
  parts.erase(repeated.begin(), repeated.end());
  constexpr size_t few = 8;
  PartitionRef met = parts.front();
  for (size_t i = 1; i < std::min(parts.size(), few); ++i)
    met = meet(met, parts[i]);
  if (parts.size() <= few)
    return met;
  Partition finest = *met;
  std::vector<int32_t> newest, next; // of each class the newest one that it is split into; of each of these the one before it
  for (size_t i = few; i < parts.size(); ++i) {
    const Partition &part = *parts[i];
    if (isFiner(finest, part))
      continue;
    newest.assign(finest.first.size(), -1);
    next.clear();
    finest.first.clear();
    for (size_t option = 0; option < finest.classOf.size(); ++option) {
      int32_t &split = newest[finest.classOf[option]];
      int32_t number = split;
      while (number >= 0 && part.classOf[finest.first[number]] != part.classOf[option])
        number = next[number];
      if (number < 0) {
        number = finest.classes();
        finest.first.push_back(static_cast<int32_t>(option));
        next.push_back(split);
        split = number;
      }
      finest.classOf[option] = number;
    }
  }
  return of(finest.classOf);
}

size_t Factor::axisOf(int32_t variable) const {
  return std::find(scope.begin(), scope.end(), variable) - scope.begin();
}

int64_t Factor::entries() const {
  int64_t product = 1;
  for (PartitionRef part : parts)
    product = std::min<int64_t>(product * part->classes(), int64_t(1) << 50);
  return product;
}

static double costOfShared(const SharedForm &form, int32_t producer, std::vector<int32_t> &asked) {
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  double sum = 0;
  for (int32_t item : asked)
    sum += form.prices[producer][item];
  return sum;
}

double Factor::at(const Choice &choice) const {
  if (shared) {
    std::vector<int32_t> asked;
    for (size_t r = 0; r < shared->itemsOf.size(); ++r) {
      const std::vector<int32_t> &items = shared->itemsOf[r][parts[r + 1]->classOf[choice[scope[r + 1]]]];
      asked.insert(asked.end(), items.begin(), items.end());
    }
    return costOfShared(*shared, parts[0]->classOf[choice[scope[0]]], asked);
  }
  size_t index = 0;
  for (size_t axis = 0; axis < scope.size(); ++axis)
    index = index * parts[axis]->classes() + parts[axis]->classOf[choice[scope[axis]]];
  return costs->values[index];
}

void Factor::addTo(std::vector<double> &ofOptions, size_t axis, Choice &choice) const {
  const int32_t variable = scope[axis], before = choice[variable];
  const Partition &part = *parts[axis];
  if (shared) {
    std::vector<double> ofClass(part.classes());
    for (int32_t c = 0; c < part.classes(); ++c) {
      choice[variable] = part.first[c];
      ofClass[c] = at(choice);
    }
    choice[variable] = before;
    for (size_t option = 0; option < ofOptions.size(); ++option)
      ofOptions[option] += ofClass[part.classOf[option]];
    return;
  }
  size_t index = 0, stride = 1;
  for (size_t a = 0; a < scope.size(); ++a) {
    index = index * parts[a]->classes() + (a == axis ? 0 : parts[a]->classOf[choice[scope[a]]]);
    if (a > axis)
      stride *= parts[a]->classes();
  }
  for (size_t option = 0; option < ofOptions.size(); ++option)
    ofOptions[option] += costs->values[index + stride * part.classOf[option]];
}

namespace {

/// Walks through the classes of the producer and of all readers, in an order that is asked for.
class Tabulation {
public:
  Tabulation(const SharedForm &form, const std::vector<size_t> &order, std::vector<double> &values)
      : form(form), order(order), values(values), producers(form.prices.size()), items(form.prices[0].size()),
        asked(items), open(form.prices), sums(order.size(), std::vector<double>(producers)) {
    if (order.back() == 0) {
      columns.reserve(items * producers);
      for (size_t item = 0; item < items; ++item)
        for (const std::vector<double> &prices : form.prices)
          columns.push_back(prices[item]);
    } else {
      for (const std::vector<int32_t> &list : form.itemsOf[order.back() - 1]) {
        lastItems.insert(lastItems.end(), list.begin(), list.end());
        lastEnds.push_back(lastItems.size());
      }
    }
  }

  void walk() { order.front() == 0 ? walkProducers(0) : walkReaders(0); }

private:
  const SharedForm &form;
  const std::vector<size_t> &order;
  std::vector<double> &values;
  const size_t producers, items;
  std::vector<int32_t> asked;            // of each item: by how many of the readers so far
  std::vector<std::vector<double>> open; // [producer][item]: what the next reader pays for it
  std::vector<std::vector<double>> sums; // [level][producer]: what readers in front of the level pay, in front of the producer
  std::vector<double> columns;           // [item][producer]: prices, where the producer comes last
  std::vector<int32_t> lastItems;        // of all classes of the last reader, one after the other
  std::vector<size_t> lastEnds;          // of each of them, in lastItems

  void walkProducers(size_t level) {
    for (size_t producer = 0; producer < producers; ++producer)
      walkReaders(level + 1, open[producer], form.prices[producer], sums[level][producer]);
  }

  /// Readers in front of the producer.
  void walkReaders(size_t level) {
    if (level + 2 == order.size())
      return walkLastInFront(sums[level].data(), form.itemsOf[order[level] - 1]);
    for (const std::vector<int32_t> &list : form.itemsOf[order[level] - 1]) {
      std::vector<double> &next = sums[level + 1];
      next = sums[level];
      for (int32_t item : list)
        if (asked[item]++ == 0)
          pay(item, next);
      order[level + 1] == 0 ? walkProducers(level + 1) : walkReaders(level + 1);
      for (int32_t item : list)
        if (--asked[item] == 0 && columns.empty())
          for (size_t producer = 0; producer < producers; ++producer)
            open[producer][item] = form.prices[producer][item];
    }
  }

  void pay(int32_t item, std::vector<double> &sum) {
    if (!columns.empty())
      return addRow(sum.data(), columns.data() + static_cast<size_t>(item) * producers, producers);
    for (size_t producer = 0; producer < producers; ++producer) {
      sum[producer] += form.prices[producer][item];
      open[producer][item] = 0;
    }
  }

  /// The reader behind which only the producer comes.
  void walkLastInFront(const double *sum, const std::vector<std::vector<int32_t>> &itemsOf) {
    size_t first = values.size();
    values.resize(first + itemsOf.size() * producers);
    for (const std::vector<int32_t> &list : itemsOf) {
      double *out = values.data() + first;
      const double *before = sum;
      for (int32_t item : list)
        if (asked[item] == 0) {
          sumOfRows(out, before, columns.data() + static_cast<size_t>(item) * producers, producers);
          before = out;
        }
      if (before == sum)
        std::copy(sum, sum + producers, out);
      first += producers;
    }
  }

  /// Readers behind it.
  void walkReaders(size_t level, std::vector<double> &openNow, const std::vector<double> &prices, double sum) {
    if (level + 1 == order.size())
      return walkLast(openNow, sum);
    for (const std::vector<int32_t> &list : form.itemsOf[order[level] - 1]) {
      double now = sum;
      for (int32_t item : list)
        now += openNow[item];
      for (int32_t item : list)
        if (asked[item]++ == 0)
          openNow[item] = 0;
      walkReaders(level + 1, openNow, prices, now);
      for (int32_t item : list)
        if (--asked[item] == 0)
          openNow[item] = prices[item];
    }
  }

  void walkLast(const std::vector<double> &openNow, double sum) {
    const size_t first = values.size();
    values.resize(first + lastEnds.size());
    double *out = values.data() + first;
    const double *price = openNow.data();
    const int32_t *item = lastItems.data(), *begin = item;
    for (size_t end : lastEnds) {
      double now = sum;
      for (; item != begin + end; ++item)
        now += price[*item];
      *out++ = now;
    }
  }
};

} // namespace

std::vector<double> tabulated(const SharedForm &form, const std::vector<size_t> &order) {
  size_t size = form.prices.size();
  for (const std::vector<std::vector<int32_t>> &classes : form.itemsOf)
    size *= classes.size();
  std::vector<double> values;
  values.reserve(size);
  Tabulation(form, order, values).walk();
  return values;
}

} // namespace msc::search
