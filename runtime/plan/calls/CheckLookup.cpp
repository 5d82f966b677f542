// Look-ups by number, and sums by number.
#include "runtime/plan/calls/Lookup.h"

#include <numeric>

namespace msc {

LookupTensors lookupTensors(const CallSpec &spec) {
  const auto &in = spec.operands, &out = spec.results;
  if (spec.kernel.starts_with("UnsortedSegment"))
    return {&out[0], &in[1], &in[0], 0};
  if (spec.kernel == "GatherGrad")
    return {&out[0], &in[0], &in[1], spec.attributes.integer("axis", 0)};
  return {&in[0], &in[1], &out[0], spec.attributes.integer("axis", 0)};
}

LookupTensors alongsideTensors(const CallSpec &spec) {
  int64_t dim = spec.attributes.integer("dim", 0);
  if (spec.kernel == "GatherDGrad")
    return {&spec.results[0], &spec.operands[0], &spec.operands[1], dim};
  return {&spec.operands[0], &spec.operands[1], &spec.results[0], dim};
}

/// (outer, rows, inner) around dimension `axis`, which exists.
static Lookup aroundAxis(const CallTensor &table, int64_t axis) {
  Lookup lookup;
  std::vector<int64_t> local = table.localShape();
  auto at = local.begin() + (axis < 0 ? axis + static_cast<int64_t>(local.size()) : axis);
  lookup.outer = std::accumulate(local.begin(), at, int64_t{1}, std::multiplies<>());
  lookup.inner = std::accumulate(at + 1, local.end(), int64_t{1}, std::multiplies<>());
  lookup.rows = table.box[static_cast<size_t>(at - local.begin())];
  lookup.size = table.shape[static_cast<size_t>(at - local.begin())];
  return lookup;
}

Lookup lookupOf(const CallSpec &spec) {
  LookupTensors tensors = lookupTensors(spec);
  Lookup lookup = aroundAxis(*tensors.table, tensors.axis);
  lookup.count = elementCount(tensors.indices->box);
  lookup.offset = spec.attributes.integer("offset", 0);
  return lookup;
}

Lookup alongsideOf(const CallSpec &spec) {
  LookupTensors tensors = alongsideTensors(spec);
  Lookup lookup = aroundAxis(*tensors.table, tensors.axis);
  lookup.count = aroundAxis(*tensors.indices, tensors.axis).rows.size();
  return lookup;
}

namespace calls {
namespace {

bool areIndices(const CallTensor &tensor) { return tensor.type == plan::I32 || tensor.type == plan::I64; }

/// Sums need numbers; look-ups take anything.
Status checkTypes(const CallSpec &spec, const LookupTensors &tensors, bool sums) {
  if (!areIndices(*tensors.indices))
    return refuse("{} takes whole numbers as indices", spec.kernel);
  if (tensors.table->type != tensors.rows->type)
    return refuse("{}: the table and its rows have different types", spec.kernel);
  if (sums && tensors.table->type == plan::BOOL)
    return refuse("{} adds numbers, not bool", spec.kernel);
  return {};
}

bool hasDimension(const CallTensor &tensor, int64_t dim) {
  auto rank = static_cast<int64_t>(tensor.shape.size());
  return dim >= -rank && dim < rank;
}

Status checkLookup(const CallSpec &spec, bool sums) {
  LookupTensors tensors = lookupTensors(spec);
  const CallTensor &table = *tensors.table, &indices = *tensors.indices, &rows = *tensors.rows;
  if (Status status = checkTypes(spec, tensors, sums); !status)
    return status;
  if (!hasDimension(table, tensors.axis))
    return refuse("{}: the table has no dimension {}", spec.kernel, tensors.axis);
  size_t axis = static_cast<size_t>(tensors.axis < 0 ? tensors.axis + static_cast<int64_t>(table.shape.size()) : tensors.axis);
  bool fits = rows.shape.size() == table.shape.size() - 1 + indices.shape.size();
  for (size_t dim = 0; fits && dim < rows.shape.size(); ++dim) {
    if (dim < axis)
      fits = sameCut(rows, dim, table, dim);
    else if (dim < axis + indices.shape.size())
      fits = sameCut(rows, dim, indices, dim - axis);
    else
      fits = sameCut(rows, dim, table, dim + 1 - indices.shape.size());
  }
  return fits ? Status() : refuse("{}: the rows do not have the shapes of the table and the indices", spec.kernel);
}

Status checkAlongside(const CallSpec &spec, bool sums) {
  LookupTensors tensors = alongsideTensors(spec);
  const CallTensor &table = *tensors.table, &indices = *tensors.indices, &rows = *tensors.rows;
  if (Status status = checkTypes(spec, tensors, sums); !status)
    return status;
  if (!hasDimension(table, tensors.axis))
    return refuse("{}: the table has no dimension {}", spec.kernel, tensors.axis);
  size_t axis = static_cast<size_t>(tensors.axis < 0 ? tensors.axis + static_cast<int64_t>(table.shape.size()) : tensors.axis);
  bool fits = rows.shape == indices.shape && rows.box == indices.box && table.shape.size() == indices.shape.size();
  for (size_t dim = 0; fits && dim < table.shape.size(); ++dim)
    fits = dim == axis || sameCut(table, dim, indices, dim);
  return fits ? Status() : refuse("{}: the rows do not have the shapes of the table and the indices", spec.kernel);
}

} // namespace

void addLookup(Table &table) {
  for (const char *name : {"Gather", "EmbeddingLookup"})
    table[name] = {2, 1, [](const CallSpec &spec) { return checkLookup(spec, false); }};
  for (const char *name : {"GatherGrad", "UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin"})
    table[name] = {2, 1, [](const CallSpec &spec) { return checkLookup(spec, true); }};
  table["GatherD"] = {2, 1, [](const CallSpec &spec) { return checkAlongside(spec, false); }};
  table["GatherDGrad"] = {2, 1, [](const CallSpec &spec) { return checkAlongside(spec, true); }};
}

} // namespace calls
} // namespace msc
