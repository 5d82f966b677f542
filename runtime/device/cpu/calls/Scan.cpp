// Running sums and the largest elements along one dimension.
#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace msc::device::calls {
namespace {

using Prepared = Result<std::unique_ptr<ScratchOperation>>;

/// A task has some lines; a line is one element of all dimensions but the axis.
Prepared prepareCumSum(const CallSpec &spec, WorkerPool &pool) {
  std::vector<int64_t> shape = spec.operands[0].localShape();
  int64_t axis = spec.attributes.integer("axis", 0);
  auto at = shape.begin() + (axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  int64_t inner = std::accumulate(at + 1, shape.end(), int64_t{1}, std::multiplies<>()), length = *at;
  int64_t lines = std::accumulate(shape.begin(), at, inner, std::multiplies<>()), tasks = std::min(spec.tasks, lines);
  bool exclusive = spec.attributes.flag("exclusive"), reverse = spec.attributes.flag("reverse");
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *x = reinterpret_cast<const Element *>(spec.operands[0].data);
    auto *y = reinterpret_cast<Element *>(spec.results[0].data);
    auto body = [=](int64_t task, std::byte *, std::byte *) {
      Range range = pieceOf(lines, task, tasks);
      for (int64_t line = range.begin; line < range.end; ++line) {
        int64_t start = line / inner * length * inner + line % inner;
        Number<Element> sum{};
        for (int64_t i = 0; i < length; ++i) {
          int64_t place = start + (reverse ? length - 1 - i : i) * inner;
          auto term = static_cast<Number<Element>>(x[place]);
          if (exclusive)
            y[place] = static_cast<Element>(sum);
          sum = plus(sum, term);
          if (!exclusive)
            y[place] = static_cast<Element>(sum);
        }
      }
    };
    return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body));
  });
}

/// The better one stands in front: NaN, then the larger, then the first.
template <typename Number> bool isBefore(const Number *row, int32_t i, int32_t j) {
  Number a = row[i], b = row[j];
  if constexpr (std::is_floating_point_v<Number>)
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) && std::isnan(b) ? i < j : std::isnan(a);
  return a != b ? a > b : i < j;
}

Prepared prepareTopK(const CallSpec &spec, WorkerPool &pool) {
  int64_t length = spec.operands[0].shape.back(), k = spec.results[0].shape.back();
  int64_t rows = elementCount(spec.results[0].box) / k, tasks = std::min(spec.tasks, rows);
  bool sorted = spec.attributes.flag("sorted", true);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *x = reinterpret_cast<const Element *>(spec.operands[0].data);
    auto *values = reinterpret_cast<Element *>(spec.results[0].data);
    auto *indices = reinterpret_cast<int32_t *>(spec.results[1].data);
    size_t rowBytes = (static_cast<size_t>(length) * sizeof(Number<Element>) + 63) / 64 * 64;
    auto body = [=](int64_t task, std::byte *scratch, std::byte *) {
      auto *row = reinterpret_cast<Number<Element> *>(scratch);
      auto *order = reinterpret_cast<int32_t *>(scratch + rowBytes);
      Range range = pieceOf(rows, task, tasks);
      for (int64_t r = range.begin; r < range.end; ++r) {
        std::transform(x + r * length, x + (r + 1) * length, row, [](Element e) { return static_cast<Number<Element>>(e); });
        std::iota(order, order + length, 0);
        std::partial_sort(order, order + k, order + length, [=](int32_t i, int32_t j) { return isBefore(row, i, j); });
        if (!sorted)
          std::sort(order, order + k);
        for (int64_t i = 0; i < k; ++i) {
          indices[r * k + i] = order[i];
          values[r * k + i] = x[r * length + order[i]];
        }
      }
    };
    return std::unique_ptr<ScratchOperation>(
        new TaskOperation(pool, tasks, body, {.worker = rowBytes + static_cast<size_t>(length) * sizeof(int32_t)}));
  });
}

} // namespace

void addScan(Table &table) {
  table["CumSum"] = prepareCumSum;
  table["TopK"] = prepareTopK;
}

} // namespace msc::device::calls
