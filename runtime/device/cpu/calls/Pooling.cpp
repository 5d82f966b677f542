// Pooling in plain loops: every plane (one channel of one image) is a piece of work of its own.
#include "runtime/plan/calls/PoolingPlanes.h"

#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"

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

template <typename Element> void maxPlane(const PoolingPlanes &planes, const Element *x, Element *y) {
  forWindows(planes, [&](const PoolingCover &rows, const PoolingCover &columns, int64_t small) {
    int64_t at = largestOf(planes, x, rows, columns);
    y[small] = at < 0 ? static_cast<Element>(-std::numeric_limits<float>::infinity()) : x[at];
  });
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
void maxGradientPlane(const PoolingPlanes &planes, const PoolingInset &inset, const Element *x, const Element *dy,
                      PlaneSum<Element> dx) {
  forWindows(planes, [&](const PoolingCover &rows, const PoolingCover &columns, int64_t small) {
    int64_t at = largestOf(planes, x, rows, columns);
    int64_t to = at < 0 ? -1 : inset.inside(at, planes.largeColumns);
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
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      maxPlane(planes, x + p * planes.largeSize(), y + p * planes.smallSize());
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
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *dy = elements<Element>(spec.operands[1]), *dx = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, sumsOf(inset), [=](int64_t p, std::byte *scratch) {
      maxGradientPlane<Element>(planes, inset, x + p * planes.largeSize(), dy + p * planes.smallSize(),
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
