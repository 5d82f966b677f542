#include "passes/sharding/search/Reduction.h"
#include "passes/sharding/search/Blocks.h"
#include "passes/sharding/search/MinPlus.h"

#include <algorithm>

namespace msc::search {

std::vector<Axis> contextOf(Workspace &workspace, const FactorRefs &factors, const std::vector<int32_t> &without) {
  constexpr int32_t left = -1;
  std::vector<Axis> axes;
  Marks &places = workspace.marks;
  places.clear();
  for (int32_t variable : without)
    places.set(variable, left);
  for (const Factor *factor : factors)
    for (size_t a = 0; a < factor->scope.size(); ++a) {
      const int32_t variable = factor->scope[a];
      if (const int32_t *place = places.find(variable)) {
        if (*place != left)
          axes[*place].part = workspace.partitions.meet(axes[*place].part, factor->parts[a]);
        continue;
      }
      places.set(variable, static_cast<int32_t>(axes.size()));
      axes.push_back({variable, factor->parts[a]});
    }
  return axes;
}

PartitionRef finest(Workspace &workspace, const FactorRefs &factors, int32_t variable, int32_t options) {
  std::vector<PartitionRef> parts;
  for (const Factor *factor : factors)
    if (factor->scope.size() > 1)
      parts.push_back(factor->parts[factor->axisOf(variable)]);
  return parts.empty() ? workspace.partitions.of(std::vector<int32_t>(options)) : workspace.partitions.meet(std::move(parts));
}

namespace {

/// The axis along which rows are added goes last: long, and in tables without many infinities, since those are skipped
/// only as a whole row.
void putInnerLast(std::vector<Axis> &context, const FactorRefs &factors) {
  auto worth = [&](const Axis &axis) {
    double finite = 1;
    for (const Factor *factor : factors)
      if (factor->costs && factor->axisOf(axis.variable) < factor->scope.size())
        finite = std::min(finite, factor->costs->finite);
    return finite * axis.part->classes();
  };
  size_t best = 0;
  for (size_t a = 1; a < context.size(); ++a)
    if (worth(context[a]) > worth(context[best]))
      best = a;
  std::rotate(context.begin() + best, context.begin() + best + 1, context.end());
}

/// Minimises over axis `axes.size() - 2`; the last axis is the one of rows.
std::vector<double> minimised(const std::vector<Block> &blocks, const std::vector<Axis> &axes) {
  const size_t variable = axes.size() - 2, inner = axes.size() - 1;
  const size_t count = axes[variable].part->classes(), width = axes[inner].part->classes();
  std::vector<const Block *> flat, deep; // without and with the last axis
  for (const Block &block : blocks)
    (block.strides[inner] ? deep : flat).push_back(&block);
  std::vector<size_t> flatAt(flat.size()), deepAt(deep.size());
  std::vector<const Block *> all = flat;
  all.insert(all.end(), deep.begin(), deep.end());
  std::vector<size_t> offsets(all.size());

  size_t outerCount = 1;
  for (size_t a = 0; a < variable; ++a)
    outerCount *= axes[a].part->classes();
  std::vector<double> result(outerCount * width), base(count), sums(deep.size() > 1 ? count * width : 0);
  std::vector<const double *> rows(count);
  Odometer odometer(axes, variable);
  double *out = result.data();
  do {
    size_t used = 0;
    for (size_t o = 0; o < count; ++o) {
      double sum = 0;
      for (size_t b = 0; b < flat.size(); ++b)
        sum += flat[b]->values[offsets[b] + o];
      if (!(sum < infinity))
        continue;
      base[used] = sum;
      rows[used] = deep.empty() ? nullptr : deep[0]->values.data() + offsets[flat.size()] + o * width;
      if (deep.size() > 1) {
        double *row = sums.data() + used * width;
        sumOfRows(row, rows[used], deep[1]->values.data() + offsets[flat.size() + 1] + o * width, width);
        for (size_t b = 2; b < deep.size(); ++b)
          addRow(row, deep[b]->values.data() + offsets[flat.size() + b] + o * width, width);
        rows[used] = row;
      }
      ++used;
    }
    minPlusRows(out, width, used, base.data(), rows.data());
    out += width;
  } while (odometer.next(offsets, all));
  return result;
}

} // namespace

Factor reduce(Workspace &workspace, const FactorRefs &factors, int32_t variable, int32_t options) {
  PartitionRef part = finest(workspace, factors, variable, options);
  std::vector<double> ofClasses = unaryOfClasses(factors, *part);
  std::vector<Axis> context = contextOf(workspace, factors, {variable});
  if (context.empty())
    return factorOver(workspace, context, {*std::min_element(ofClasses.begin(), ofClasses.end())});
  putInnerLast(context, factors);
  std::vector<Axis> axes = context;
  axes.insert(axes.end() - 1, Axis{variable, part});
  std::vector<Block> blocks;
  for (const Factor *factor : factors)
    if (factor->scope.size() > 1)
      blocks.push_back(expanded(*factor, axes));
  Block alone;
  alone.axes = {axes.size() - 2};
  setStrides(alone, axes);
  alone.hold(std::move(ofClasses));
  blocks.push_back(std::move(alone));
  return factorOver(workspace, context, minimised(merged(std::move(blocks), axes), axes));
}

} // namespace msc::search
