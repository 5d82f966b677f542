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

namespace {

/// Numbers of labels in their order of appearance.
class Numbering {
public:
  /// `labels`: how many there may be, below each of which they are; `uses`: how often a number is asked for.
  Numbering(int64_t labels, size_t uses) : direct(labels <= 8 * static_cast<int64_t>(uses) ? labels : 0, -1) {}
  /// -1 where it is new.
  int32_t &operator[](int64_t label) { return direct.empty() ? hashed.try_emplace(label, -1).first->second : direct[label]; }

private:
  std::vector<int32_t> direct;
  std::unordered_map<int64_t, int32_t> hashed;
};

/// Options with equal labels are alike.
template <typename LabelOf> Partition partitionBy(size_t options, int64_t labels, LabelOf labelOf) {
  Partition made;
  made.classOf.resize(options);
  Numbering numbers(labels, options);
  for (size_t option = 0; option < options; ++option) {
    int32_t &number = numbers[labelOf(option)];
    if (number < 0) {
      number = made.classes();
      made.first.push_back(static_cast<int32_t>(option));
    }
    made.classOf[option] = number;
  }
  return made;
}

Partition both(const Partition &a, const Partition &b) {
  return partitionBy(a.classOf.size(), int64_t(a.classes()) * b.classes(),
                     [&](size_t option) { return int64_t(a.classOf[option]) * b.classes() + b.classOf[option]; });
}

/// Options that are alike in the first are alike in the second.
bool isFiner(const Partition &a, const Partition &b) {
  if (a.classes() < b.classes())
    return false;
  for (size_t option = 0; option < a.classOf.size(); ++option)
    if (b.classOf[option] != b.classOf[a.first[a.classOf[option]]])
      return false;
  return true;
}

} // namespace

PartitionRef Partitions::kept(Partition made) {
  const uint64_t hash = hashOf(made.classOf.data(), made.classOf.size() * sizeof(int32_t));
  auto [from, to] = all.equal_range(hash);
  for (; from != to; ++from)
    if (from->second->classOf == made.classOf)
      return from->second.get();
  made.id = static_cast<int32_t>(all.size());
  return all.emplace(hash, std::make_unique<Partition>(std::move(made)))->second.get();
}

PartitionRef Partitions::of(const std::vector<int32_t> &labels) {
  const int64_t most = labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end());
  return kept(partitionBy(labels.size(), most + 1, [&](size_t option) { return labels[option]; }));
}

PartitionRef Partitions::identity(int32_t options) {
  std::vector<int32_t> labels(options);
  for (int32_t option = 0; option < options; ++option)
    labels[option] = option;
  return of(labels);
}

PartitionRef Partitions::meet(PartitionRef a, PartitionRef b) {
  if (a == b || isFiner(*a, *b))
    return a;
  if (isFiner(*b, *a))
    return b;
  if (a->id > b->id)
    std::swap(a, b);
  uint64_t key = uint64_t(uint32_t(a->id)) << 32 | uint32_t(b->id);
  auto [known, isNew] = met.try_emplace(key);
  if (isNew)
    known->second = kept(both(*a, *b));
  return known->second;
}

/// Of many most say nothing new; what they add up to on the way is not kept.
PartitionRef Partitions::meet(std::vector<PartitionRef> parts) {
  constexpr size_t mostKept = 8;
  std::ranges::sort(parts, {}, &Partition::id);
  const auto repeated = std::ranges::unique(parts);
  parts.erase(repeated.begin(), repeated.end());
  PartitionRef known = parts.front();
  for (size_t i = 1; i < std::min(parts.size(), mostKept); ++i)
    known = meet(known, parts[i]);
  if (parts.size() <= mostKept)
    return known;
  Partition finest = *known;
  for (size_t i = mostKept; i < parts.size(); ++i)
    if (!isFiner(finest, *parts[i]))
      finest = both(finest, *parts[i]);
  return kept(std::move(finest));
}

size_t Factor::axisOf(int32_t variable) const {
  return std::find(scope.begin(), scope.end(), variable) - scope.begin();
}

AxisView::AxisView(const std::vector<int32_t> &dims, size_t axis) : size(dims[axis]) {
  for (size_t a = 0; a < dims.size(); ++a)
    (a < axis ? before : behind) *= a == axis ? 1 : dims[a];
}

AxisView Factor::along(size_t axis) const {
  AxisView view;
  for (size_t a = 0; a < parts.size(); ++a)
    (a < axis ? view.before : a == axis ? view.size : view.behind) *= parts[a]->classes();
  return view;
}

std::vector<double> keepFirst(const std::vector<double> &values, const AxisView &view, const Partition &part) {
  std::vector<double> kept;
  kept.reserve(view.before * part.first.size() * view.behind);
  for (size_t outer = 0; outer < view.before; ++outer)
    for (int32_t option : part.first) {
      const double *slice = values.data() + (outer * view.size + option) * view.behind;
      kept.insert(kept.end(), slice, slice + view.behind);
    }
  return kept;
}

int64_t Factor::entries() const {
  double product = 1;
  for (PartitionRef part : parts)
    product = std::min(product * part->classes(), 0x1p50);
  return static_cast<int64_t>(product);
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
