// Running sums and the largest elements along one dimension, piece by piece.
#include "runtime/plan/calls/Call.h"

namespace msc::calls {
namespace {

/// What no dimension is cut into.
constexpr int64_t kMostPieces = int64_t{1} << 20;

/// `index` is where some of the `pieces` of a dimension begins, or its end.
bool isBoundary(int64_t index, int64_t size, int64_t pieces) {
  for (int64_t p = 0; p <= pieces; ++p)
    if (p == pieces ? index == size : pieceOf(size, p, pieces).begin == index)
      return true;
  return false;
}

Status checkCumSum(const CallSpec &spec) {
  const CallTensor &x = spec.operands[0], &y = spec.results[0];
  auto rank = static_cast<int64_t>(x.shape.size());
  int64_t axis = spec.attributes.integer("axis", 0), pieces = spec.attributes.integer("pieces", 0);
  if (x.shape != y.shape || x.box != y.box || x.type != y.type || x.type == plan::BOOL)
    return refuse("{} gives a tensor like its operand", spec.kernel);
  if (axis < -rank || axis >= rank)
    return refuse("{}: there is no dimension {}", spec.kernel, axis);
  size_t dim = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  if (pieces < 1 || pieces > kMostPieces)
    return refuse("{} of {} pieces", spec.kernel, pieces);
  bool fits = isBoundary(x.box[dim].begin, x.shape[dim], pieces) && isBoundary(x.box[dim].end, x.shape[dim], pieces);
  return fits ? Status() : refuse("{} takes whole pieces of dimension {} on every rank", spec.kernel, dim);
}

/// Values and indices have one shape and, but for the last dimension, that of `x`.
Status checkChosen(const CallSpec &spec) {
  const CallTensor &x = spec.operands[0], &values = spec.results[0], &indices = spec.results[1];
  if (x.shape.empty() || values.type != x.type || x.type == plan::BOOL || indices.type != plan::I32)
    return refuse("{} takes numbers and gives some of them with their places", spec.kernel);
  if (values.shape != indices.shape || values.box != indices.box || values.shape.size() != x.shape.size())
    return refuse("{}: its results differ in shape", spec.kernel);
  for (size_t dim = 0; dim + 1 < x.shape.size(); ++dim)
    if (!sameCut(x, dim, values, dim))
      return refuse("{}: its results differ in shape", spec.kernel);
  return {};
}

Status checkTopKPieces(const CallSpec &spec) {
  if (Status status = checkChosen(spec); !status)
    return status;
  const CallTensor &x = spec.operands[0], &values = spec.results[0];
  int64_t k = spec.attributes.integer("k", 0), pieces = spec.attributes.integer("pieces", 0), size = x.shape.back();
  if (k < 1 || k > size || pieces < 1 || pieces > kMostPieces || values.shape.back() != k * pieces)
    return refuse("{} gives {} of {} elements", spec.kernel, values.shape.back(), size);
  Range held = x.box.back(), own = values.box.back();
  bool whole = own.begin % k == 0 && own.end % k == 0;
  Range wanted{whole && own.begin / k < pieces ? pieceOf(size, own.begin / k, pieces).begin : size,
               whole && own.end > own.begin ? pieceOf(size, own.end / k - 1, pieces).end : 0};
  return whole && held == wanted ? Status() : refuse("{} takes whole pieces of dimension {} on every rank", spec.kernel, x.shape.size() - 1);
}

Status checkTopKMerge(const CallSpec &spec) {
  if (Status status = checkChosen(spec); !status)
    return status;
  const CallTensor &x = spec.operands[0], &places = spec.operands[1], &values = spec.results[0];
  size_t last = x.shape.size() - 1;
  if (places.type != plan::I32 || places.shape != x.shape || places.box != x.box)
    return refuse("{}: candidates and places differ in shape", spec.kernel);
  if (!x.isWhole(last) || !values.isWhole(last))
    return refuse("{} takes dimension {} whole on every rank", spec.kernel, last);
  if (values.shape[last] != spec.attributes.integer("k", -1) || values.shape[last] > x.shape[last])
    return refuse("{} gives {} of {} elements", spec.kernel, values.shape[last], x.shape[last]);
  return {};
}

} // namespace

void addScan(Table &table) {
  table["CumSumPieces"] = {1, 1, checkCumSum};
  table["TopKPieces"] = {1, 2, checkTopKPieces};
  table["TopKMerge"] = {2, 2, checkTopKMerge};
}

} // namespace msc::calls
