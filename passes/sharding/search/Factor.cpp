#include "passes/sharding/search/Factor.h"

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
  std::unordered_map<int32_t, int32_t> numbers;
  for (size_t option = 0; option < labels.size(); ++option) {
    auto [known, isNew] = numbers.try_emplace(labels[option], made->classes());
    if (isNew)
      made->first.push_back(static_cast<int32_t>(option));
    made->classOf[option] = known->second;
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

PartitionRef Partitions::meet(PartitionRef a, PartitionRef b) {
  if (a == b || b->classes() == 1 || a->first.size() == a->classOf.size())
    return a;
  if (a->classes() == 1 || b->first.size() == b->classOf.size())
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

/// Walks through the classes of all readers, for one class of the producer.
class Tabulation {
public:
  Tabulation(const SharedForm &form, std::vector<double> &values) : form(form), values(values), asked(form.prices[0].size()) {
    for (const std::vector<int32_t> &items : form.itemsOf.back()) {
      lastItems.insert(lastItems.end(), items.begin(), items.end());
      lastEnds.push_back(lastItems.size());
    }
  }
  void walk(const std::vector<double> &ofProducer) {
    prices = ofProducer.data();
    open = ofProducer;
    walk(0, 0);
  }

private:
  const SharedForm &form;
  std::vector<double> &values;
  std::vector<int32_t> asked;     // of each item: by how many of the readers so far
  std::vector<double> open;       // of each item: what the next reader pays for it
  std::vector<int32_t> lastItems; // of all classes of the last reader, one after the other
  std::vector<size_t> lastEnds;   // of each of them, in lastItems
  const double *prices = nullptr;

  void walk(size_t reader, double sum) {
    if (reader + 1 == form.itemsOf.size())
      return walkLast(sum);
    for (const std::vector<int32_t> &items : form.itemsOf[reader]) {
      double now = sum;
      for (int32_t item : items)
        now += open[item];
      for (int32_t item : items)
        if (asked[item]++ == 0)
          open[item] = 0;
      walk(reader + 1, now);
      for (int32_t item : items)
        if (--asked[item] == 0)
          open[item] = prices[item];
    }
  }

  void walkLast(double sum) {
    const size_t first = values.size();
    values.resize(first + lastEnds.size());
    double *out = values.data() + first;
    const double *price = open.data();
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

std::vector<double> tabulated(const SharedForm &form) {
  size_t size = form.prices.size();
  for (const std::vector<std::vector<int32_t>> &classes : form.itemsOf)
    size *= classes.size();
  std::vector<double> values;
  values.reserve(size);
  Tabulation tabulation(form, values);
  for (const std::vector<double> &prices : form.prices)
    tabulation.walk(prices);
  return values;
}

} // namespace msc::search
