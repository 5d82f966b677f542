// Pooling in plain loops: every plane (one channel of one image) is a piece of work of its own.
#include "runtime/plan/calls/Pooling.h"

#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msc::device::calls {
namespace {

/// The rows (or columns) of the large plane that one row (column) of the small one stands for; all as they lie in memory.
struct Cover {
  int64_t small = 0;
  int64_t begin = 0, end = 0;
  int64_t counted = 1; ///< how many an average divides by
};

struct Planes {
  std::vector<Cover> rows, columns;
  int64_t largeRows = 0, largeColumns = 0, smallRows = 0, smallColumns = 0;

  int64_t largeSize() const { return largeRows * largeColumns; }
  int64_t smallSize() const { return smallRows * smallColumns; }
};

/// Calls f(element of the large plane) for all that the window covers, row by row.
template <typename Function> void forWindow(const Planes &planes, const Cover &rows, const Cover &columns, Function f) {
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t at = row * planes.largeColumns + columns.begin; at < row * planes.largeColumns + columns.end; ++at)
      f(at);
}

/// Calls f(rows, columns, element of the small plane) for every window, in the order of the small plane's elements.
template <typename Function> void forWindows(const Planes &planes, Function f) {
  for (const Cover &rows : planes.rows)
    for (const Cover &columns : planes.columns)
      f(rows, columns, rows.small * planes.smallColumns + columns.small);
}

template <typename Number> Number divisorOf(const Cover &rows, const Cover &columns) {
  return static_cast<Number>(rows.counted * columns.counted);
}

/// The first element of the window that is largest; NaN counts as largest. -1: the window lies in the padding.
template <typename Element>
int64_t largestOf(const Planes &planes, const Element *x, const Cover &rows, const Cover &columns) {
  using Number = ComputeType<Element>;
  int64_t best = -1;
  auto most = -std::numeric_limits<Number>::infinity();
  forWindow(planes, rows, columns, [&](int64_t at) {
    auto value = static_cast<Number>(x[at]);
    if (best < 0 || value > most || (value != value && most == most)) {
      best = at;
      most = value;
    }
  });
  return best;
}

template <typename Element> void maxPlane(const Planes &planes, const Element *x, Element *y) {
  forWindows(planes, [&](const Cover &rows, const Cover &columns, int64_t small) {
    int64_t at = largestOf(planes, x, rows, columns);
    y[small] = at < 0 ? static_cast<Element>(-std::numeric_limits<float>::infinity()) : x[at];
  });
}

template <typename Element> void averagePlane(const Planes &planes, const Element *x, Element *y) {
  using Number = ComputeType<Element>;
  forWindows(planes, [&](const Cover &rows, const Cover &columns, int64_t small) {
    Number sum = 0;
    forWindow(planes, rows, columns, [&](int64_t at) { sum += static_cast<Number>(x[at]); });
    y[small] = static_cast<Element>(sum / divisorOf<Number>(rows, columns));
  });
}

/// Sums of one plane in the type that kernels compute in: f16 and bf16 round once.
template <typename Element> class PlaneSum {
public:
  PlaneSum(std::byte *scratch, Element *target, int64_t size)
      : sums(std::is_same_v<Number, Element> ? reinterpret_cast<Number *>(target) : reinterpret_cast<Number *>(scratch)),
        target(target), size(size) {
    std::fill_n(sums, size, Number(0));
  }
  ~PlaneSum() {
    if constexpr (!std::is_same_v<Number, Element>)
      std::transform(sums, sums + size, target, [](Number sum) { return static_cast<Element>(sum); });
  }
  PlaneSum(const PlaneSum &) = delete;
  PlaneSum &operator=(const PlaneSum &) = delete;
  void add(int64_t at, ComputeType<Element> value) { sums[at] += value; }

private:
  using Number = ComputeType<Element>;
  Number *sums;
  Element *target;
  int64_t size;
};

/// How the planes of a gradient lie within those of the input: a rank may have more of the input around its own part.
struct Inset {
  int64_t rows = 0, columns = 0;        ///< of the gradient
  int64_t firstRow = 0, firstColumn = 0; ///< of the input, over the gradient's first

  int64_t size() const { return rows * columns; }
  /// Element of the gradient's plane for one of the input's, or -1.
  int64_t inside(int64_t at, int64_t inputColumns) const {
    int64_t row = at / inputColumns - firstRow, column = at % inputColumns - firstColumn;
    return row < 0 || row >= rows || column < 0 || column >= columns ? -1 : row * columns + column;
  }
};

template <typename Element>
void maxGradientPlane(const Planes &planes, const Inset &inset, const Element *x, const Element *dy, PlaneSum<Element> dx) {
  forWindows(planes, [&](const Cover &rows, const Cover &columns, int64_t small) {
    int64_t at = largestOf(planes, x, rows, columns);
    int64_t to = at < 0 ? -1 : inset.inside(at, planes.largeColumns);
    if (to >= 0)
      dx.add(to, static_cast<ComputeType<Element>>(dy[small]));
  });
}

template <typename Element> void averageGradientPlane(const Planes &planes, const Element *dy, PlaneSum<Element> dx) {
  using Number = ComputeType<Element>;
  forWindows(planes, [&](const Cover &rows, const Cover &columns, int64_t small) {
    Number share = static_cast<Number>(dy[small]) / divisorOf<Number>(rows, columns);
    forWindow(planes, rows, columns, [&](int64_t at) { dx.add(at, share); });
  });
}

/// One task per run of planes. `plane` gets the number of a plane and the worker's scratch memory.
template <typename Plane>
Result<std::unique_ptr<ScratchOperation>> overPlanes(const CallSpec &spec, WorkerPool &pool, ScratchSize size, Plane plane) {
  int64_t count = spec.results[0].box[0].size() * spec.results[0].box[1].size();
  int64_t tasks = std::min(spec.tasks, count);
  auto body = [=](int64_t task, std::byte *worker, std::byte *) {
    Range range = pieceOf(count, task, tasks);
    for (int64_t p = range.begin; p < range.end; ++p)
      plane(p, worker);
  };
  return std::unique_ptr<ScratchOperation>(new TaskOperation(pool, tasks, body, size));
}

/// One direction: the windows of which `small` is in memory, over the elements of the large side that are.
std::vector<Cover> coversOf(const PoolingSide &side, const Range &windows, const Range &small, const Range &large) {
  std::vector<Cover> covers;
  for (int64_t i = windows.begin; i < windows.end; ++i) {
    Range cover = side.cover(i);
    int64_t begin = std::max(cover.begin, large.begin), end = std::max(begin, std::min(cover.end, large.end));
    covers.push_back({i - small.begin, begin - large.begin, end - large.begin, side.counted(i)});
  }
  return covers;
}

/// The part of both sides that a rank has in memory, and windows between them.
struct Parts {
  std::array<Range, 2> windows, small, large;
};

Planes planesOf(const std::array<PoolingSide, 2> &sides, const Parts &parts) {
  auto covers = [&](size_t d) { return coversOf(sides[d], parts.windows[d], parts.small[d], parts.large[d]); };
  return {covers(0), covers(1), parts.large[0].size(), parts.large[1].size(), parts.small[0].size(), parts.small[1].size()};
}

/// The checker has accepted the sizes.
std::array<PoolingSide, 2> sidesOf(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  std::string why;
  return *poolingSides(spec, large.size(2), large.size(3), small.size(2), small.size(3), why);
}

/// A result with an element per window.
Planes planesOfPool(const CallSpec &spec) {
  const CallTensor &large = spec.operands[0], &small = spec.results[0];
  auto sides = sidesOf(spec, large, small);
  Parts parts;
  for (size_t d : {0, 1}) {
    parts.windows[d] = parts.small[d] = small.box[d + 2];
    parts.large[d] = large.held(d + 2, sides[d].under(small.box[d + 2]));
  }
  return planesOf(sides, parts);
}

/// A gradient with respect to the images, from those of the windows that reach over it. The images themselves may be around
/// it: then the windows lie over these.
Planes planesOfGradient(const CallSpec &spec, const CallTensor &images, Inset &inset) {
  const CallTensor &dx = spec.results[0], &small = spec.operands.back();
  auto sides = sidesOf(spec, dx, small);
  Parts parts;
  for (size_t d : {0, 1}) {
    const Range &own = dx.box[d + 2];
    parts.windows[d] = sides[d].over(own);
    parts.small[d] = small.held(d + 2, parts.windows[d]);
    parts.large[d] = images.held(d + 2, sides[d].under(parts.windows[d]));
    (d == 0 ? inset.rows : inset.columns) = own.size();
    (d == 0 ? inset.firstRow : inset.firstColumn) = own.begin - parts.large[d].begin;
  }
  return planesOf(sides, parts);
}

template <typename Element> Element *elements(const CallTensor &tensor) { return reinterpret_cast<Element *>(tensor.data); }

/// Scratch memory for the sums of one plane.
ScratchSize sumsOf(const Inset &inset) { return {.worker = static_cast<size_t>(inset.size()) * sizeof(float)}; }

Result<std::unique_ptr<ScratchOperation>> prepareMaxPool(const CallSpec &spec, WorkerPool &pool) {
  Planes planes = planesOfPool(spec);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      maxPlane(planes, x + p * planes.largeSize(), y + p * planes.smallSize());
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareAvgPool(const CallSpec &spec, WorkerPool &pool) {
  Planes planes = planesOfPool(spec);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      averagePlane(planes, x + p * planes.largeSize(), y + p * planes.smallSize());
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareMaxPoolGrad(const CallSpec &spec, WorkerPool &pool) {
  Inset inset;
  Planes planes = planesOfGradient(spec, spec.operands[0], inset);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *dy = elements<Element>(spec.operands[1]), *dx = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, sumsOf(inset), [=](int64_t p, std::byte *scratch) {
      maxGradientPlane<Element>(planes, inset, x + p * planes.largeSize(), dy + p * planes.smallSize(),
                                {scratch, dx + p * inset.size(), inset.size()});
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareAvgPoolGrad(const CallSpec &spec, WorkerPool &pool) {
  Inset inset;
  Planes planes = planesOfGradient(spec, spec.results[0], inset);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *dy = elements<Element>(spec.operands[0]), *dx = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, sumsOf(inset), [=](int64_t p, std::byte *scratch) {
      averageGradientPlane<Element>(planes, dy + p * planes.smallSize(),
                                    {scratch, dx + p * inset.size(), inset.size()});
    });
  });
}

} // namespace

void addPooling(Table &table) {
  table["MaxPool"] = prepareMaxPool;
  table["AvgPool"] = prepareAvgPool;
  table["MaxPoolGrad"] = prepareMaxPoolGrad;
  table["AvgPoolGrad"] = prepareAvgPoolGrad;
  table["AdaptiveAvgPool2D"] = prepareAvgPool;
  table["AdaptiveAvgPool2DGrad"] = prepareAvgPoolGrad;
}

} // namespace msc::device::calls
