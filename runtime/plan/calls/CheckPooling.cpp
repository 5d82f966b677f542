// Pooling over windows of images, and its gradients.
#include "runtime/plan/calls/Call.h"
#include "runtime/plan/calls/Pooling.h"

#include <algorithm>

namespace msc {

std::optional<std::array<Window, 2>> poolingWindows(const CallAttributes &attributes, int64_t rows, int64_t columns,
                                                    std::string &why) {
  WindowAttributes windows;
  windows.kernel = attributes.ints("kernel_size");
  windows.stride = attributes.ints("strides");
  windows.strideName = "strides";
  windows.padMode = attributes.text("pad_mode", "valid");
  if (std::vector<int64_t> pad = attributes.ints("pad"); !pad.empty())
    windows.pad = pad;
  return windowsOver(windows, rows, columns, why);
}

namespace calls {
namespace {

/// Both are images with the same batch and channels, whole in rows and columns.
Status checkImages(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  if (!allFloats(spec))
    return refuse("{} takes tensors of one float type", spec.kernel);
  if (large.shape.size() != 4 || small.shape.size() != 4)
    return refuse("{} takes tensors of 4 dimensions", spec.kernel);
  if (!sameCut(large, 0, small, 0) || !sameCut(large, 1, small, 1))
    return refuse("{}: batch or channels differ between its tensors", spec.kernel);
  for (size_t dim : {2, 3})
    if (!small.isWhole(dim) || !large.isWhole(dim))
      return refuse("{} takes dimension {} whole on every rank", spec.kernel, dim);
  return {};
}

/// `small` holds one element per window over `large`.
Status checkWindows(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  if (Status status = checkImages(spec, large, small); !status)
    return status;
  std::string why;
  auto windows = poolingWindows(spec.attributes, large.shape[2], large.shape[3], why);
  if (!windows)
    return refuse("{}: {}", spec.kernel, why);
  for (size_t dim : {2, 3})
    if (small.shape[dim] != (*windows)[dim - 2].output)
      return refuse("{}: dimension {} has {} windows, found {}", spec.kernel, dim, (*windows)[dim - 2].output, small.shape[dim]);
  return {};
}

Status checkPool(const CallSpec &spec) { return checkWindows(spec, spec.operands[0], spec.results[0]); }

/// (dy) -> dx.
Status checkAvgPoolGrad(const CallSpec &spec) { return checkWindows(spec, spec.results[0], spec.operands[0]); }

/// (x, dy) -> dx.
Status checkMaxPoolGrad(const CallSpec &spec) {
  if (spec.operands[0].shape != spec.results[0].shape || spec.operands[0].box != spec.results[0].box)
    return refuse("{}: the gradient has another shape than the input", spec.kernel);
  return checkWindows(spec, spec.results[0], spec.operands[1]);
}

/// Windows of any sizes: all that matters is that there are elements to cover.
Status checkAdaptive(const CallSpec &spec, const CallTensor &large, const CallTensor &small) {
  if (Status status = checkImages(spec, large, small); !status)
    return status;
  constexpr int64_t largest = int64_t{1} << 20; // products of two fit 64 bits
  for (size_t dim : {2, 3})
    if (large.shape[dim] < 1 || std::max(large.shape[dim], small.shape[dim]) > largest)
      return refuse("{}: dimension {} has size {}", spec.kernel, dim, large.shape[dim]);
  return {};
}

Status checkAdaptivePool(const CallSpec &spec) { return checkAdaptive(spec, spec.operands[0], spec.results[0]); }

Status checkAdaptivePoolGrad(const CallSpec &spec) { return checkAdaptive(spec, spec.results[0], spec.operands[0]); }

} // namespace

void addPooling(Table &table) {
  table["MaxPool"] = {1, 1, checkPool};
  table["AvgPool"] = {1, 1, checkPool};
  table["MaxPoolGrad"] = {2, 1, checkMaxPoolGrad};
  table["AdaptiveAvgPool2D"] = {1, 1, checkAdaptivePool};
  table["AdaptiveAvgPool2DGrad"] = {1, 1, checkAdaptivePoolGrad};
  table["AvgPoolGrad"] = {1, 1, checkAvgPoolGrad};
}

} // namespace calls
} // namespace msc
