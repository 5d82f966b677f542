// From tables over options to factors over classes of options.
#include "passes/sharding/search/Workspace.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace msc::search {

std::shared_ptr<const Costs> Workspace::costs(std::vector<double> values) {
  size_t finite = 0;
  for (double value : values)
    finite += value < infinity;
  double share = values.empty() ? 1 : double(finite) / double(values.size());
  return std::make_shared<const Costs>(Costs{newId(), std::move(values), share});
}

std::shared_ptr<const Costs> Workspace::equality(int32_t classes) {
  std::shared_ptr<const Costs> &known = equalities[classes];
  if (known)
    return known;
  std::vector<double> values(size_t(classes) * classes, infinity);
  for (int32_t c = 0; c < classes; ++c)
    values[size_t(c) * classes + c] = 0;
  return known = costs(std::move(values));
}

void Lowered::toOrigin(Choice &choice) const {
  for (size_t variable = 0; variable < origin.size(); ++variable)
    if (!origin[variable].empty())
      choice[variable] = origin[variable][choice[variable]];
}

namespace {

bool equalSlices(const std::vector<double> &values, const AxisView &view, size_t a, size_t b) {
  for (size_t outer = 0; outer < view.before; ++outer) {
    const double *base = values.data() + outer * view.size * view.behind;
    if (std::memcmp(base + a * view.behind, base + b * view.behind, view.behind * sizeof(double)) != 0)
      return false;
  }
  return true;
}

/// Equal labels for equal slices.
std::vector<int32_t> slicesAlike(const std::vector<double> &values, const AxisView &view) {
  std::vector<uint64_t> hashes(view.size);
  for (size_t outer = 0; outer < view.before; ++outer)
    for (size_t i = 0; i < view.size; ++i)
      hashes[i] =
          hashOf(values.data() + (outer * view.size + i) * view.behind, view.behind * sizeof(double), hashes[i]);
  std::unordered_multimap<uint64_t, int32_t> seen;
  std::vector<int32_t> labels(view.size, -1);
  for (size_t i = 0; i < view.size; ++i) {
    auto [from, to] = seen.equal_range(hashes[i]);
    for (; from != to && labels[i] < 0; ++from)
      if (equalSlices(values, view, i, from->second))
        labels[i] = from->second;
    if (labels[i] < 0)
      seen.emplace(hashes[i], labels[i] = static_cast<int32_t>(i));
  }
  return labels;
}

/// Merges options with equal slices, one axis after the other.
Factor compressed(Workspace &workspace, std::vector<double> values, std::vector<int32_t> dims) {
  Factor factor;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    AxisView view(dims, axis);
    PartitionRef part = workspace.partitions.of(slicesAlike(values, view));
    if (part->classes() < dims[axis])
      values = keepFirst(values, view, *part);
    dims[axis] = part->classes();
    factor.parts.push_back(part);
  }
  factor.costs = workspace.costs(std::move(values));
  return factor;
}

uint64_t hashOfShared(const SharedCost &shared) {
  uint64_t hash = hashOf(shared.producerClass.data(), shared.producerClass.size() * sizeof(int32_t));
  for (const SharedCost::Reader &reader : shared.readers)
    for (const std::vector<int32_t> &items : reader.items)
      hash = hashOf(items.data(), items.size() * sizeof(int32_t), hash);
  for (const std::vector<double> &row : shared.costs)
    hash = hashOf(row.data(), row.size() * sizeof(double), hash);
  return hashOf(&shared.times, sizeof(double), hash);
}

bool equalButVariables(const SharedCost &a, const SharedCost &b) {
  if (a.producerClass != b.producerClass || a.times != b.times || a.readers.size() != b.readers.size() ||
      a.costs != b.costs)
    return false;
  for (size_t r = 0; r < a.readers.size(); ++r)
    if (a.readers[r].items != b.readers[r].items)
      return false;
  return true;
}

std::vector<int32_t> producersAlike(const SharedCost &shared) {
  std::vector<int32_t> labels(shared.costs.size());
  for (size_t c = 0; c < labels.size(); ++c)
    labels[c] = static_cast<int32_t>(std::find(shared.costs.begin(), shared.costs.begin() + c, shared.costs[c]) -
                                     shared.costs.begin());
  std::vector<int32_t> ofOption;
  for (int32_t c : shared.producerClass)
    ofOption.push_back(labels[c]);
  return ofOption;
}

std::vector<int32_t> readersAlike(const SharedCost::Reader &reader) {
  struct Hash {
    const std::vector<std::vector<int32_t>> &items;
    size_t operator()(int32_t option) const {
      return hashOf(items[option].data(), items[option].size() * sizeof(int32_t));
    }
  };
  auto equal = [&](int32_t a, int32_t b) { return reader.items[a] == reader.items[b]; };
  std::unordered_map<int32_t, int32_t, Hash, decltype(equal)> seen(64, Hash{reader.items}, equal);
  std::vector<int32_t> labels;
  for (size_t option = 0; option < reader.items.size(); ++option)
    labels.push_back(seen.try_emplace(option, option).first->second);
  return labels;
}

Factor lowered(Workspace &workspace, const SharedCost &shared) {
  Factor factor;
  auto form = std::make_shared<SharedForm>();
  PartitionRef producer = workspace.partitions.of(producersAlike(shared));
  factor.parts.push_back(producer);
  for (int32_t option : producer->first) {
    form->prices.push_back(shared.costs[shared.producerClass[option]]);
    for (double &price : form->prices.back())
      price *= shared.times;
  }
  for (const SharedCost::Reader &reader : shared.readers) {
    factor.parts.push_back(workspace.partitions.of(readersAlike(reader)));
    form->itemsOf.emplace_back();
    for (int32_t option : factor.parts.back()->first)
      form->itemsOf.back().push_back(reader.items[option]);
  }
  form->id = workspace.newId();
  if (shared.readers.size() == 1)
    factor.costs = workspace.costs(tabulated(*form, {0, 1}));
  else
    factor.shared = std::move(form);
  return factor;
}

/// Finds tables with equal contents, so that each is looked at once.
class Lowering {
public:
  Lowering(Workspace &workspace, const CostNetwork &network) : workspace(workspace), network(network) {}

  Lowered run() {
    ++workspace.networks;
    Lowered result{network.options, {}, {}, network.constant};
    result.origin.resize(network.options.size());
    for (const Table &table : network.tables)
      if (table.scope.empty())
        result.constant += table.costs[0];
      else
        result.factors.push_back(withScope(factorOf(table), table.scope));
    for (const SharedCost &shared : network.shared)
      if (!shared.readers.empty()) {
        std::vector<int32_t> scope = {shared.producer};
        for (const SharedCost::Reader &reader : shared.readers)
          scope.push_back(reader.variable);
        result.factors.push_back(withScope(factorOf(shared), std::move(scope)));
      }
    return result;
  }

private:
  static Factor withScope(Factor factor, std::vector<int32_t> scope) {
    factor.scope = std::move(scope);
    return factor;
  }

  const Factor &factorOf(const Table &table) {
    std::vector<int32_t> dims;
    for (int32_t variable : table.scope)
      dims.push_back(network.options[variable]);
    uint64_t hash = hashOf(table.costs.data(), table.costs.size() * sizeof(double), dims[0]);
    auto [from, to] = workspace.knownTables.equal_range(hash);
    for (; from != to; ++from)
      if (Workspace::KnownTable &known = from->second;
          known.dims == dims && known.costs.size() == table.costs.size() &&
          std::memcmp(known.costs.data(), table.costs.data(), table.costs.size() * sizeof(double)) == 0) {
        known.lookedAt = workspace.networks;
        return known.factor;
      }
    Factor factor = compressed(workspace, table.costs, dims);
    Workspace::KnownTable known{std::move(dims), table.costs, std::move(factor), workspace.networks};
    return workspace.knownTables.emplace(hash, std::move(known))->second.factor;
  }

  const Factor &factorOf(const SharedCost &shared) {
    uint64_t hash = hashOfShared(shared);
    auto [from, to] = workspace.knownShared.equal_range(hash);
    for (; from != to; ++from)
      if (Workspace::KnownShared &known = from->second; equalButVariables(known.cost, shared)) {
        known.lookedAt = workspace.networks;
        return known.factor;
      }
    return workspace.knownShared.emplace(hash, Workspace::KnownShared{shared, lowered(workspace, shared), workspace.networks})->second.factor;
  }

  Workspace &workspace;
  const CostNetwork &network;
};

} // namespace

Lowered lower(Workspace &workspace, const CostNetwork &network) {
  return Lowering(workspace, network).run();
}

Factor unary(Workspace &workspace, int32_t variable, const std::vector<double> &costs) {
  Factor factor = compressed(workspace, costs, {static_cast<int32_t>(costs.size())});
  factor.scope = {variable};
  return factor;
}

} // namespace msc::search
