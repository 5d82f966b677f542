// What the solver computes with: costs over classes of options, instead of over options.
#pragma once

#include "passes/sharding/search/CostNetwork.h"

#include <memory>
#include <unordered_map>

namespace msc::search {

/// Which options of a variable are alike for a factor. Classes are numbered by their first option. Owned by a
/// Partitions, which holds every partition once: equal pointers are equal partitions.
struct Partition {
  std::vector<int32_t> classOf; ///< of each option
  std::vector<int32_t> first;   ///< of each class: its lowest option
  int32_t id = 0;
  int32_t classes() const { return static_cast<int32_t>(first.size()); }
};
using PartitionRef = const Partition *;

class Partitions {
public:
  /// Options with equal labels are alike.
  PartitionRef of(const std::vector<int32_t> &labels);
  PartitionRef identity(int32_t options);
  /// The coarsest one that is finer than both.
  PartitionRef meet(PartitionRef a, PartitionRef b);
  /// The coarsest one that is finer than all of these, of which there is at least one.
  PartitionRef meet(std::vector<PartitionRef> parts);

private:
  PartitionRef kept(Partition made);

  std::unordered_multimap<uint64_t, std::unique_ptr<Partition>> all;
  std::unordered_map<uint64_t, PartitionRef> met;
};

/// A row-major array seen from one axis: [before][size][behind].
struct AxisView {
  size_t before = 1, size = 1, behind = 1;
  AxisView() = default;
  AxisView(const std::vector<int32_t> &dims, size_t axis);
};

/// Numbers in row-major order; `id` says which arrays are equal.
struct Costs {
  int64_t id = 0;
  std::vector<double> values;
  double finite = 1; ///< share of the entries that are finite
};

/// A SharedCost over classes: of the producer (equal rows of costs) and of each reader (equal sets of items).
struct SharedForm {
  int64_t id = 0;
  std::vector<std::vector<double>> prices;                ///< [producer class][item], with `times`
  std::vector<std::vector<std::vector<int32_t>>> itemsOf; ///< [reader][class]
  bool operator==(const SharedForm &other) const { return prices == other.prices && itemsOf == other.itemsOf; }
};

/// A cost that depends on the classes of a few variables.
struct Factor {
  std::vector<int32_t> scope;
  std::vector<PartitionRef> parts;
  std::shared_ptr<const Costs> costs;       ///< row-major over the classes
  std::shared_ptr<const SharedForm> shared; ///< in place of `costs`: scope is the producer, then the readers
  bool isBound = false;                     ///< costs are too low, maybe

  double at(const Choice &choice) const;
  /// Adds the cost of every option of `scope[axis]`, the other variables being as in `choice`.
  void addTo(std::vector<double> &ofOptions, size_t axis, Choice &choice) const;
  size_t axisOf(int32_t variable) const;
  int64_t id() const { return shared ? shared->id : costs->id; }
  int64_t entries() const;
  /// Along one axis of a table.
  AxisView along(size_t axis) const;
};

/// Keeps one slice of each class.
std::vector<double> keepFirst(const std::vector<double> &values, const AxisView &view, const Partition &part);

/// All costs of a SharedForm, row-major in this order of its axes (0: the producer, r + 1: reader r), each of which is in it once.
std::vector<double> tabulated(const SharedForm &form, const std::vector<size_t> &order);

/// Content of a range of words, for hash tables.
uint64_t hashOf(const void *data, size_t bytes, uint64_t seed = 0);

} // namespace msc::search
