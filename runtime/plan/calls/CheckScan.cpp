// Running sums and the largest elements along one dimension, which every rank holds from end to end.
#include "runtime/plan/calls/Call.h"

namespace msc::calls {
namespace {

Status checkCumSum(const CallSpec &spec) {
  const CallTensor &x = spec.operands[0], &y = spec.results[0];
  auto rank = static_cast<int64_t>(x.shape.size());
  int64_t axis = spec.attributes.integer("axis", 0);
  if (x.shape != y.shape || x.box != y.box || x.type != y.type || x.type == plan::BOOL)
    return refuse("{} gives a tensor like its operand", spec.kernel);
  if (axis < -rank || axis >= rank)
    return refuse("{}: there is no dimension {}", spec.kernel, axis);
  size_t dim = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  return x.isWhole(dim) ? Status() : refuse("{} takes dimension {} whole on every rank", spec.kernel, dim);
}

Status checkTopK(const CallSpec &spec) {
  const CallTensor &x = spec.operands[0], &values = spec.results[0], &indices = spec.results[1];
  if (x.shape.empty() || values.type != x.type || x.type == plan::BOOL || indices.type != plan::I32)
    return refuse("{} takes numbers and gives some of them with their places", spec.kernel);
  if (values.shape != indices.shape || values.box != indices.box || values.shape.size() != x.shape.size())
    return refuse("{}: its results differ in shape", spec.kernel);
  size_t last = x.shape.size() - 1;
  for (size_t dim = 0; dim < last; ++dim)
    if (!sameCut(x, dim, values, dim))
      return refuse("{}: its results differ in shape", spec.kernel);
  if (!x.isWhole(last) || !values.isWhole(last))
    return refuse("{} takes dimension {} whole on every rank", spec.kernel, last);
  if (values.shape[last] != spec.attributes.integer("k", -1) || values.shape[last] > x.shape[last])
    return refuse("{} gives {} of {} elements", spec.kernel, values.shape[last], x.shape[last]);
  return {};
}

} // namespace

void addScan(Table &table) {
  table["CumSum"] = {1, 1, checkCumSum};
  table["TopK"] = {1, 2, checkTopK};
}

} // namespace msc::calls
