// Pooling over windows of images, and its gradients.
#include "runtime/plan/calls/Call.h"
#include "runtime/plan/calls/Pooling.h"

#include <algorithm>

namespace msc {

Range PoolingSide::cover(int64_t i) const { return under({i, i + 1}); }

int64_t PoolingSide::counted(int64_t i) const {
  int64_t begin = window.under(i, 0), end = std::min(begin + window.kernel, window.input + window.after);
  return std::max<int64_t>(1, countPadding ? end - begin : cover(i).size());
}

/// What [begin, end) of `from` equal parts of a whole touch of its `to` equal parts.
static Range touched(const Range &parts, int64_t from, int64_t to) {
  int64_t begin = parts.begin * to / from;
  return {begin, parts.size() == 0 ? begin : (parts.end * to + from - 1) / from};
}

Range PoolingSide::under(const Range &windows) const {
  return isAdaptive ? touched(windows, small(), large()) : window.under(windows);
}

Range PoolingSide::over(const Range &elements) const {
  return isAdaptive ? touched(elements, large(), small()) : window.over(elements);
}

static std::optional<std::array<PoolingSide, 2>> adaptiveSides(const std::array<int64_t, 2> &large, const std::array<int64_t, 2> &small,
                                                               std::string &why) {
  constexpr int64_t largest = int64_t{1} << 20; // products of two fit 64 bits
  for (size_t d : {0, 1})
    if (std::min(large[d], small[d]) < 1 || std::max(large[d], small[d]) > largest)
      why = fmt::format("dimension {} has size {}", d + 2, large[d]);
  if (!why.empty())
    return std::nullopt;
  return std::array{PoolingSide(large[0], small[0]), PoolingSide(large[1], small[1])};
}

std::optional<std::array<PoolingSide, 2>> poolingSides(const CallSpec &spec, int64_t rows, int64_t columns, int64_t smallRows,
                                                       int64_t smallColumns, std::string &why) {
  if (spec.kernel.rfind("Adaptive", 0) == 0)
    return adaptiveSides({rows, columns}, {smallRows, smallColumns}, why);
  WindowAttributes windows;
  windows.kernel = spec.attributes.ints("kernel_size");
  windows.stride = spec.attributes.ints("strides");
  windows.strideName = "strides";
  windows.padMode = spec.attributes.text("pad_mode", "valid");
  if (std::vector<int64_t> pad = spec.attributes.ints("pad"); !pad.empty())
    windows.pad = pad;
  auto over = windowsOver(windows, rows, columns, why);
  if (!over)
    return std::nullopt;
  bool countPadding = spec.attributes.flag("count_include_pad");
  return std::array{PoolingSide((*over)[0], countPadding), PoolingSide((*over)[1], countPadding)};
}

namespace calls {
namespace {

/// Both are images with the same batch and channels.
Status checkImages(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  if (!allFloats(spec))
    return refuse("{} takes tensors of one float type", spec.kernel);
  if (large.shape.size() != 4 || small.shape.size() != 4)
    return refuse("{} takes tensors of 4 dimensions", spec.kernel);
  if (!sameCut(large, 0, small, 0) || !sameCut(large, 1, small, 1))
    return refuse("{}: batch or channels differ between its tensors", spec.kernel);
  return {};
}

Error lacking(const CallSpec &spec, size_t dim) {
  return refuse("{}: the rank lacks indices of dimension {} that its windows reach", spec.kernel, dim);
}

/// Sides over `large` whose number of windows `small` has.
Result<std::array<PoolingSide, 2>> checkedSides(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  if (Status status = checkImages(spec, large, small); !status)
    return status.error();
  std::string why;
  auto sides = poolingSides(spec, large.size(2), large.size(3), small.size(2), small.size(3), why);
  if (!sides)
    return refuse("{}: {}", spec.kernel, why);
  for (size_t dim : {2, 3})
    if (small.size(dim) != (*sides)[dim - 2].small())
      return refuse("{}: dimension {} has {} windows, found {}", spec.kernel, dim, (*sides)[dim - 2].small(), small.size(dim));
  return *sides;
}

/// (x) -> y: a rank has all that its windows cover. A single window may be cut: every rank has a part of it.
Status checkPool(const CallSpec &spec) {
  const CallTensor &large = spec.operands[0], &small = spec.results[0];
  auto sides = checkedSides(spec, large, small);
  if (!sides)
    return sides.error();
  for (size_t dim : {2, 3}) {
    Range needed = (*sides)[dim - 2].under(small.box[dim]);
    bool isPart = spec.kernel == "AdaptiveAvgPool2D" && small.shape[dim] == 1 && !large.isWindowed(dim);
    if (!isPart && !contains(large.held(dim, needed), needed))
      return lacking(spec, dim);
  }
  return {};
}

/// (.., dy) -> dx: a rank has the gradients of all windows over its part.
Status checkPoolGrad(const CallSpec &spec) {
  const CallTensor &large = spec.results[0], &small = spec.operands.back();
  auto sides = checkedSides(spec, large, small);
  if (!sides)
    return sides.error();
  for (size_t dim : {2, 3}) {
    Range needed = (*sides)[dim - 2].over(large.box[dim]);
    if (!contains(small.held(dim, needed), needed))
      return lacking(spec, dim);
  }
  return {};
}

/// (x, dy) -> dx: a rank has all that those windows cover, too.
Status checkMaxPoolGrad(const CallSpec &spec) {
  const CallTensor &x = spec.operands[0], &dx = spec.results[0];
  if (x.shape.size() != 4 || dx.shape.size() != 4)
    return refuse("{} takes tensors of 4 dimensions", spec.kernel);
  if (!sameCut(x, 0, dx, 0) || !sameCut(x, 1, dx, 1) || x.size(2) != dx.shape[2] || x.size(3) != dx.shape[3])
    return refuse("{}: the gradient has another shape than the input", spec.kernel);
  auto sides = checkedSides(spec, dx, spec.operands[1]);
  if (!sides)
    return sides.error();
  for (size_t dim : {2, 3}) {
    const PoolingSide &side = (*sides)[dim - 2];
    Range needed = side.under(side.over(dx.box[dim]));
    if (!contains(x.held(dim, needed), needed))
      return lacking(spec, dim);
  }
  return checkPoolGrad(spec);
}

} // namespace

void addPooling(Table &table) {
  table["MaxPool"] = {1, 1, checkPool, 0, true};
  table["AvgPool"] = {1, 1, checkPool, 0, true};
  table["AdaptiveAvgPool2D"] = {1, 1, checkPool, 0, true};
  table["MaxPoolGrad"] = {2, 1, checkMaxPoolGrad, 0, true};
  table["AvgPoolGrad"] = {1, 1, checkPoolGrad, 0, true};
  table["AdaptiveAvgPool2DGrad"] = {1, 1, checkPoolGrad, 0, true};
}

} // namespace calls
} // namespace msc
