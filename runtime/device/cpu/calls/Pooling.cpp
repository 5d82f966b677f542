// Pooling: every plane (one channel of one image) is a piece of work of its own. The largest elements of windows that lie within the
// rows, as most do, are searched for many windows at once (MaxWindows.h), all else is plain loops.
#include "runtime/plan/calls/PoolingPlanes.h"

#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"
#include "runtime/device/cpu/calls/MaxWindows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msc::device::calls {
namespace {

/// Calls f(element of the large plane) for all that the window covers, row by row.
template <typename Function>
void forWindow(const PoolingPlanes &planes, const PoolingCover &rows, const PoolingCover &columns, Function f) {
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t at = row * planes.largeColumns + columns.begin; at < row * planes.largeColumns + columns.end; ++at)
      f(at);
}

/// Calls f(rows, columns, element of the small plane) for every window, in the order of the small plane's elements.
template <typename Function> void forWindows(const PoolingPlanes &planes, Function f) {
  for (const PoolingCover &rows : planes.rows)
    for (const PoolingCover &columns : planes.columns)
      f(rows, columns, rows.small * planes.smallColumns + columns.small);
}

template <typename Number> Number divisorOf(const PoolingCover &rows, const PoolingCover &columns) {
  return static_cast<Number>(rows.counted * columns.counted);
}

/// The first element of the window that is largest; NaN counts as largest. -1: the window lies in the padding.
template <typename Element>
int64_t largestOf(const PoolingPlanes &planes, const Element *x, const PoolingCover &rows, const PoolingCover &columns) {
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

/// The windows of a row that have all their columns and may be searched together.
struct WholeWindows {
  size_t first = 0;
  int64_t count = 0; ///< 0, or kMaxWindows at least
  int64_t width = 0, step = 0;
  LargestOfWindows search = nullptr;

  explicit WholeWindows(const PoolingPlanes &planes) {
    const std::vector<PoolingCover> &columns = planes.columns;
    auto widthOf = [&](size_t i) { return columns[i].end - columns[i].begin; };
    for (size_t i = 0; i < columns.size(); ++i)
      width = std::max(width, widthOf(i));
    auto isWhole = [&](size_t i) { return widthOf(i) == width && columns[i].end < planes.largeColumns; }; // one more is read
    while (first < columns.size() && !isWhole(first))
      ++first;
    size_t end = first;
    step = first + 1 < columns.size() ? columns[first + 1].begin - columns[first].begin : 0;
    while (end < columns.size() && isWhole(end) && columns[end].small == columns[first].small + static_cast<int64_t>(end - first) &&
           columns[end].begin == columns[first].begin + static_cast<int64_t>(end - first) * step)
      ++end;
    search = __builtin_cpu_supports("x86-64-v4") ? v4::largestOfWindows(step) : v3::largestOfWindows(step);
    count = static_cast<int64_t>(end - first);
    if (!search || width == 0 || count < kMaxWindows || planes.largeSize() > std::numeric_limits<int32_t>::max())
      count = 0;
  }
};

/// Calls f(element of the small plane, element of the large one that is largest in its window, or -1) for every window.
template <bool HasPlaces, typename Element, typename Function>
void forLargest(const PoolingPlanes &planes, const WholeWindows &whole, const Element *x, Function f) {
  for (const PoolingCover &rows : planes.rows) {
    const int64_t small = rows.small * planes.smallColumns;
    auto one = [&](size_t i) {
      const PoolingCover &columns = planes.columns[i];
      int64_t at = largestOf(planes, x, rows, columns);
      f(small + columns.small, at, at < 0 ? static_cast<Element>(-std::numeric_limits<float>::infinity()) : x[at]);
    };
    size_t next = 0;
    if constexpr (std::is_same_v<Element, float>)
      if (whole.count > 0 && rows.end > rows.begin) {
        for (; next < whole.first; ++next)
          one(next);
        const int64_t start = rows.begin * planes.largeColumns + planes.columns[whole.first].begin;
        const int64_t target = small + planes.columns[whole.first].small;
        float most[kMaxWindows];
        int32_t places[kMaxWindows];
        for (int64_t done = 0; done < whole.count;) {
          int64_t begin = std::min(done, whole.count - kMaxWindows); // the last ones overlap those before
          whole.search({x + start + begin * whole.step, planes.largeColumns, rows.end - rows.begin, whole.width}, most, HasPlaces ? places : nullptr);
          for (int64_t i = done - begin; i < kMaxWindows; ++i)
            f(target + begin + i, HasPlaces ? start + (begin + i) * whole.step + places[i] : 0, most[i]);
          done = begin + kMaxWindows;
        }
        next += static_cast<size_t>(whole.count);
      }
    for (; next < planes.columns.size(); ++next)
      one(next);
  }
}

template <typename Element> void averagePlane(const PoolingPlanes &planes, const Element *x, Element *y) {
  using Number = ComputeType<Element>;
  forWindows(planes, [&](const PoolingCover &rows, const PoolingCover &columns, int64_t small) {
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

template <typename Element>
void maxGradientPlane(const PoolingPlanes &planes, const WholeWindows &whole, const PoolingInset &inset, const Element *x, const Element *dy,
                      PlaneSum<Element> dx) {
  const bool isAll = inset.firstRow == 0 && inset.firstColumn == 0 && inset.rows == planes.largeRows && inset.columns == planes.largeColumns;
  forLargest<true>(planes, whole, x, [&](int64_t small, int64_t at, Element) {
    int64_t to = at < 0 || isAll ? at : inset.inside(at, planes.largeColumns);
    if (to >= 0)
      dx.add(to, static_cast<ComputeType<Element>>(dy[small]));
  });
}

template <typename Element> void averageGradientPlane(const PoolingPlanes &planes, const Element *dy, PlaneSum<Element> dx) {
  using Number = ComputeType<Element>;
  forWindows(planes, [&](const PoolingCover &rows, const PoolingCover &columns, int64_t small) {
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

template <typename Element> Element *elements(const CallTensor &tensor) { return reinterpret_cast<Element *>(tensor.data); }

/// Scratch memory for the sums of one plane.
ScratchSize sumsOf(const PoolingInset &inset) { return {.worker = static_cast<size_t>(inset.size()) * sizeof(float)}; }

Result<std::unique_ptr<ScratchOperation>> prepareMaxPool(const CallSpec &spec, WorkerPool &pool) {
  PoolingPlanes planes = planesOfPool(spec);
  WholeWindows whole(planes);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      Element *plane = y + p * planes.smallSize();
      forLargest<false>(planes, whole, x + p * planes.largeSize(), [=](int64_t small, int64_t, Element most) { plane[small] = most; });
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareAvgPool(const CallSpec &spec, WorkerPool &pool) {
  PoolingPlanes planes = planesOfPool(spec);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      averagePlane(planes, x + p * planes.largeSize(), y + p * planes.smallSize());
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareMaxPoolGrad(const CallSpec &spec, WorkerPool &pool) {
  PoolingInset inset;
  PoolingPlanes planes = planesOfGradient(spec, spec.operands[0], inset);
  WholeWindows whole(planes);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *dy = elements<Element>(spec.operands[1]), *dx = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, sumsOf(inset), [=](int64_t p, std::byte *scratch) {
      maxGradientPlane<Element>(planes, whole, inset, x + p * planes.largeSize(), dy + p * planes.smallSize(),
                                {scratch, dx + p * inset.size(), inset.size()});
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareAvgPoolGrad(const CallSpec &spec, WorkerPool &pool) {
  PoolingInset inset;
  PoolingPlanes planes = planesOfGradient(spec, spec.results[0], inset);
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
