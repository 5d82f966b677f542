// Running sums and the largest elements along one dimension.
#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"
#include "runtime/plan/calls/Scan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace msc::device::calls {
namespace {

using Prepared = Result<std::unique_ptr<ScratchOperation>>;

/// A task has some lines; a line is one element of all dimensions but the axis.
Prepared prepareCumSum(const CallSpec &spec, WorkerPool &pool) {
  const Lines of = linesOf(spec);
  int64_t inner = of.inner, length = of.length, lines = of.count, tasks = std::min(spec.tasks, lines);
  bool exclusive = spec.attributes.flag("exclusive"), reverse = spec.attributes.flag("reverse");
  std::vector<Range> parts = partsOf(spec, of);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *x = reinterpret_cast<const Element *>(spec.operands[0].data);
    auto *y = reinterpret_cast<Element *>(spec.results[0].data);
    auto body = [=](int64_t task, std::byte *, std::byte *) {
      Range range = pieceOf(lines, task, tasks);
      for (int64_t line = range.begin; line < range.end; ++line)
        for (Range part : parts) {
          int64_t start = line / inner * length * inner + line % inner;
          Number<Element> sum{};
          for (int64_t i = part.begin; i < part.end; ++i) {
            int64_t place = start + (reverse ? part.begin + part.end - 1 - i : i) * inner;
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

/// The better one stands in front: NaN, then the larger, then the one whose place is smaller.
template <typename Number> bool isBefore(Number a, Number b, int64_t placeOfA, int64_t placeOfB) {
  if constexpr (std::is_floating_point_v<Number>)
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) && std::isnan(b) ? placeOfA < placeOfB : std::isnan(a);
  return a != b ? a > b : placeOfA < placeOfB;
}

template <typename Number> constexpr Number lowest() {
  if constexpr (std::is_floating_point_v<Number>)
    return -std::numeric_limits<Number>::infinity();
  else
    return std::numeric_limits<Number>::min();
}

/// Scratch memory for the elements of a row as numbers, and their order.
template <typename Number> struct Row {
  static size_t numberBytes(int64_t length) { return (static_cast<size_t>(length) * sizeof(Number) + 63) / 64 * 64; }
  static size_t bytes(int64_t length) { return numberBytes(length) + static_cast<size_t>(length) * sizeof(int32_t); }

  Row(std::byte *scratch, int64_t length)
      : numbers(reinterpret_cast<Number *>(scratch)), order(reinterpret_cast<int32_t *>(scratch + numberBytes(length))) {}

  template <typename Element> void read(const Element *from, int64_t count) {
    std::transform(from, from + count, numbers, [](Element e) { return static_cast<Number>(e); });
    std::iota(order, order + count, 0);
  }

  Number *numbers;
  int32_t *order;
};

Prepared prepareTopKPieces(const CallSpec &spec, WorkerPool &pool) {
  const CallTensor &input = spec.operands[0];
  int64_t k = spec.attributes.integer("k", 0), pieces = spec.attributes.integer("pieces", 1);
  Range held = input.box.back(), own = spec.results[0].box.back();
  int64_t length = held.size(), size = input.shape.back(), width = own.size(), firstPiece = own.begin / k;
  int64_t rows = elementCount(spec.results[0].box) / width, tasks = std::min(spec.tasks, rows);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *x = reinterpret_cast<const Element *>(input.data);
    auto *values = reinterpret_cast<Element *>(spec.results[0].data);
    auto *places = reinterpret_cast<int32_t *>(spec.results[1].data);
    using Own = Number<Element>;
    auto body = [=](int64_t task, std::byte *scratch, std::byte *) {
      Row<Own> row(scratch, length);
      Range range = pieceOf(rows, task, tasks);
      for (int64_t at = range.begin * (width / k); at < range.end * (width / k); ++at) {
        Range piece = pieceOf(size, firstPiece + at % (width / k), pieces);
        const Element *from = x + at / (width / k) * length + piece.begin - held.begin;
        int64_t found = std::min(k, piece.size());
        row.read(from, piece.size());
        std::partial_sort(row.order, row.order + found, row.order + piece.size(),
                          [&](int32_t i, int32_t j) { return isBefore(row.numbers[i], row.numbers[j], i, j); });
        for (int64_t i = 0; i < k; ++i) {
          values[at * k + i] = i < found ? from[row.order[i]] : static_cast<Element>(lowest<Own>());
          places[at * k + i] = static_cast<int32_t>(i < found ? piece.begin + row.order[i] : size);
        }
      }
    };
    return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body, {.worker = Row<Own>::bytes(length)}));
  });
}

Prepared prepareTopKMerge(const CallSpec &spec, WorkerPool &pool) {
  int64_t length = spec.operands[0].shape.back(), k = spec.results[0].shape.back();
  int64_t rows = elementCount(spec.results[0].box) / k, tasks = std::min(spec.tasks, rows);
  bool sorted = spec.attributes.flag("sorted", true);
  return withNumber(spec.results[0].type, [&]<typename Element>(Element) -> Prepared {
    auto *x = reinterpret_cast<const Element *>(spec.operands[0].data);
    auto *places = reinterpret_cast<const int32_t *>(spec.operands[1].data);
    auto *values = reinterpret_cast<Element *>(spec.results[0].data);
    auto *indices = reinterpret_cast<int32_t *>(spec.results[1].data);
    using Own = Number<Element>;
    auto body = [=](int64_t task, std::byte *scratch, std::byte *) {
      Row<Own> row(scratch, length);
      Range range = pieceOf(rows, task, tasks);
      for (int64_t r = range.begin; r < range.end; ++r) {
        const int32_t *place = places + r * length;
        row.read(x + r * length, length);
        std::partial_sort(row.order, row.order + k, row.order + length, [&](int32_t i, int32_t j) {
          return isBefore(row.numbers[i], row.numbers[j], place[i], place[j]);
        });
        if (!sorted)
          std::sort(row.order, row.order + k, [&](int32_t i, int32_t j) { return place[i] < place[j]; });
        for (int64_t i = 0; i < k; ++i) {
          indices[r * k + i] = place[row.order[i]];
          values[r * k + i] = x[r * length + row.order[i]];
        }
      }
    };
    return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body, {.worker = Row<Own>::bytes(length)}));
  });
}

} // namespace

void addScan(Table &table) {
  table["CumSumPieces"] = prepareCumSum;
  table["TopKPieces"] = prepareTopKPieces;
  table["TopKMerge"] = prepareTopKMerge;
}

} // namespace msc::device::calls
