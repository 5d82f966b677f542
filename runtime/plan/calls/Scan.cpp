#include "runtime/plan/calls/Scan.h"

#include <algorithm>
#include <numeric>

namespace msc {

Lines linesOf(const CallSpec &spec) {
  std::vector<int64_t> shape = spec.operands[0].localShape();
  int64_t axis = spec.attributes.integer("axis", 0);
  auto dim = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  auto at = shape.begin() + static_cast<long>(dim);
  int64_t inner = std::accumulate(at + 1, shape.end(), int64_t{1}, std::multiplies<>());
  return {dim, *at, inner, std::accumulate(shape.begin(), at, inner, std::multiplies<>())};
}

std::vector<Range> partsOf(const CallSpec &spec, const Lines &lines) {
  const Range held = spec.operands[0].box[lines.dim];
  const int64_t size = spec.operands[0].shape[lines.dim], pieces = spec.attributes.integer("pieces", 1);
  std::vector<Range> parts;
  for (int64_t p = 0; p < pieces; ++p) {
    Range piece = pieceOf(size, p, pieces);
    int64_t begin = std::max(piece.begin, held.begin), end = std::min(piece.end, held.end);
    if (begin < end)
      parts.push_back({begin - held.begin, end - held.begin});
  }
  return parts;
}

} // namespace msc
