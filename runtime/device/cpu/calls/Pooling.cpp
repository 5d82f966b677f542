// Pooling in plain loops: every plane (one channel of one image) is a piece of work of its own.
#include "runtime/plan/calls/Pooling.h"

#include "runtime/device/cpu/calls/Elements.h"
#include "runtime/device/cpu/calls/Kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msc::device::calls {
namespace {

/// The rows (or columns) of the large plane that one row (column) of the small one stands for.
struct Cover {
  int64_t begin = 0, end = 0;
  int64_t counted = 1; ///< how many an average divides by
};

struct Planes {
  std::vector<Cover> rows, columns;
  int64_t largeRows = 0, largeColumns = 0;

  int64_t largeSize() const { return largeRows * largeColumns; }
  int64_t smallSize() const { return static_cast<int64_t>(rows.size() * columns.size()); }
};

/// Calls f(element of the large plane) for all that the window covers, row by row.
template <typename Function> void forWindow(const Planes &planes, const Cover &rows, const Cover &columns, Function f) {
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t at = row * planes.largeColumns + columns.begin; at < row * planes.largeColumns + columns.end; ++at)
      f(at);
}

/// Calls f(rows, columns) for every window, in the order of the small plane's elements.
template <typename Function> void forWindows(const Planes &planes, Function f) {
  for (const Cover &rows : planes.rows)
    for (const Cover &columns : planes.columns)
      f(rows, columns);
}

template <typename Number> Number divisorOf(const Cover &rows, const Cover &columns) {
  return static_cast<Number>(std::max<int64_t>(1, rows.counted * columns.counted));
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
  forWindows(planes, [&](const Cover &rows, const Cover &columns) {
    int64_t at = largestOf(planes, x, rows, columns);
    *y++ = at < 0 ? static_cast<Element>(-std::numeric_limits<float>::infinity()) : x[at];
  });
}

template <typename Element> void averagePlane(const Planes &planes, const Element *x, Element *y) {
  using Number = ComputeType<Element>;
  forWindows(planes, [&](const Cover &rows, const Cover &columns) {
    Number sum = 0;
    forWindow(planes, rows, columns, [&](int64_t at) { sum += static_cast<Number>(x[at]); });
    *y++ = static_cast<Element>(sum / divisorOf<Number>(rows, columns));
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
void maxGradientPlane(const Planes &planes, const Element *x, const Element *dy, PlaneSum<Element> dx) {
  forWindows(planes, [&](const Cover &rows, const Cover &columns) {
    auto slope = static_cast<ComputeType<Element>>(*dy++);
    if (int64_t at = largestOf(planes, x, rows, columns); at >= 0)
      dx.add(at, slope);
  });
}

template <typename Element> void averageGradientPlane(const Planes &planes, const Element *dy, PlaneSum<Element> dx) {
  using Number = ComputeType<Element>;
  forWindows(planes, [&](const Cover &rows, const Cover &columns) {
    Number share = static_cast<Number>(*dy++) / divisorOf<Number>(rows, columns);
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

/// What the windows cover. Like PyTorch and MindSpore, padding counts up to the edge of the padded image.
std::vector<Cover> coversOf(const Window &window, bool countPadding) {
  std::vector<Cover> covers;
  for (int64_t i = 0; i < window.output; ++i) {
    Cover cover{window.under(i, window.first(i)), window.under(i, window.last(i))};
    int64_t begin = window.under(i, 0), end = std::min(begin + window.kernel, window.input + window.after);
    cover.counted = countPadding ? end - begin : cover.end - cover.begin;
    covers.push_back(cover);
  }
  return covers;
}

/// `small` pieces that cover `large`, overlapping where it does not divide.
std::vector<Cover> adaptiveCovers(int64_t large, int64_t small) {
  std::vector<Cover> covers;
  for (int64_t i = 0; i < small; ++i) {
    Cover cover{i * large / small, ((i + 1) * large + small - 1) / small};
    cover.counted = cover.end - cover.begin;
    covers.push_back(cover);
  }
  return covers;
}

Planes planesOf(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  int64_t rows = large.shape[2], columns = large.shape[3];
  if (spec.kernel.rfind("Adaptive", 0) == 0)
    return {adaptiveCovers(rows, small.shape[2]), adaptiveCovers(columns, small.shape[3]), rows, columns};
  std::string why;
  auto windows = *poolingWindows(spec.attributes, rows, columns, why);
  bool countPadding = spec.attributes.flag("count_include_pad");
  return {coversOf(windows[0], countPadding), coversOf(windows[1], countPadding), rows, columns};
}

template <typename Element> Element *elements(const CallTensor &tensor) { return reinterpret_cast<Element *>(tensor.data); }

/// Scratch memory for the sums of one plane.
ScratchSize sumsOf(const Planes &planes) { return {.worker = static_cast<size_t>(planes.largeSize()) * sizeof(float)}; }

Result<std::unique_ptr<ScratchOperation>> prepareMaxPool(const CallSpec &spec, WorkerPool &pool) {
  Planes planes = planesOf(spec, spec.operands[0], spec.results[0]);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      maxPlane(planes, x + p * planes.largeSize(), y + p * planes.smallSize());
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareAvgPool(const CallSpec &spec, WorkerPool &pool) {
  Planes planes = planesOf(spec, spec.operands[0], spec.results[0]);
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *y = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, {}, [=](int64_t p, std::byte *) {
      averagePlane(planes, x + p * planes.largeSize(), y + p * planes.smallSize());
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareMaxPoolGrad(const CallSpec &spec, WorkerPool &pool) {
  Planes planes = planesOf(spec, spec.results[0], spec.operands.back());
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *x = elements<Element>(spec.operands[0]), *dy = elements<Element>(spec.operands[1]), *dx = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, sumsOf(planes), [=](int64_t p, std::byte *scratch) {
      maxGradientPlane<Element>(planes, x + p * planes.largeSize(), dy + p * planes.smallSize(),
                                {scratch, dx + p * planes.largeSize(), planes.largeSize()});
    });
  });
}

Result<std::unique_ptr<ScratchOperation>> prepareAvgPoolGrad(const CallSpec &spec, WorkerPool &pool) {
  Planes planes = planesOf(spec, spec.results[0], spec.operands.back());
  return withFloat(spec.results[0].type, [&]<typename Element>(Element) {
    auto *dy = elements<Element>(spec.operands[0]), *dx = elements<Element>(spec.results[0]);
    return overPlanes(spec, pool, sumsOf(planes), [=](int64_t p, std::byte *scratch) {
      averageGradientPlane<Element>(planes, dy + p * planes.smallSize(),
                                    {scratch, dx + p * planes.largeSize(), planes.largeSize()});
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
