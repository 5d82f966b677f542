// Convolutions and their gradients.
#include "runtime/plan/calls/Convolution.h"

#include <algorithm>

namespace msc {
namespace {

/// Groups of `perGroup` channels that the range of channels covers; none if it cuts one.
std::optional<Range> groupsOf(const Range &channels, int64_t perGroup) {
  if (perGroup < 1 || channels.begin % perGroup != 0 || channels.end % perGroup != 0)
    return std::nullopt;
  return Range{channels.begin / perGroup, channels.end / perGroup};
}

std::string channelsWrong(Convolution &convolution, int64_t groups, const CallTensor &x, const CallTensor &w, const CallTensor &y) {
  using namespace calls;
  if (groups < 1 || groups > x.shape[1] || x.shape[1] % groups != 0 || w.shape[0] % groups != 0 ||
      w.shape[1] != x.shape[1] / groups)
    return fmt::format("{} channels in {} groups do not fit weights of {} x {}", x.shape[1], groups, w.shape[0], w.shape[1]);
  if (!sameCut(w, 0, y, 1))
    return "output channels differ between its tensors";
  convolution.inputs = x.box[1].size();
  convolution.outputs = y.box[1].size();
  if (groups == 1)
    return sameCut(x, 1, w, 1) ? "" : "input channels differ between its tensors";
  auto inputs = groupsOf(x.box[1], w.shape[1]), outputs = groupsOf(y.box[1], w.shape[0] / groups);
  if (!w.isWhole(1) || !inputs || !outputs || *inputs != *outputs)
    return "the channels of a group are not together on one rank";
  convolution.groups = inputs->size();
  return "";
}

} // namespace

std::optional<Convolution> convolutionOf(const CallAttributes &attributes, const CallTensor &x, const CallTensor &w,
                                         const CallTensor &y, std::string &why) {
  for (const CallTensor *tensor : {&x, &w, &y}) {
    if (tensor->shape.size() != 4) {
      why = "tensors have 4 dimensions";
      return std::nullopt;
    }
    if (!tensor->isWhole(2) || !tensor->isWhole(3)) {
      why = "rows and columns are whole on every rank";
      return std::nullopt;
    }
  }
  WindowAttributes windows;
  windows.kernel = {w.shape[2], w.shape[3]};
  auto given = [&](const char *name, std::vector<int64_t> &target) {
    if (std::vector<int64_t> ints = attributes.ints(name); !ints.empty())
      target = ints;
  };
  given("stride", windows.stride);
  given("dilation", windows.dilation);
  given("pad", windows.pad);
  windows.padMode = attributes.text("pad_mode", "valid");
  auto over = windowsOver(windows, x.shape[2], x.shape[3], why);
  if (!over)
    return std::nullopt;
  for (size_t dim : {2, 3})
    if (y.shape[dim] != (*over)[dim - 2].output) {
      why = fmt::format("dimension {} has {} windows, found {}", dim, (*over)[dim - 2].output, y.shape[dim]);
      return std::nullopt;
    }
  if (!calls::sameCut(x, 0, y, 0)) {
    why = "batches differ between its tensors";
    return std::nullopt;
  }
  Convolution convolution;
  convolution.images = x.box[0].size();
  convolution.windows = *over;
  why = channelsWrong(convolution, attributes.integer("group", 1), x, w, y);
  return why.empty() ? std::optional(convolution) : std::nullopt;
}

namespace calls {
namespace {

Status check(const CallSpec &spec, const CallTensor &x, const CallTensor &w, const CallTensor &y) {
  if (!allFloats(spec))
    return refuse("{} takes tensors of one float type", spec.kernel);
  std::string why;
  if (!convolutionOf(spec.attributes, x, w, y, why))
    return refuse("{}: {}", spec.kernel, why);
  return {};
}

Status checkForward(const CallSpec &spec) { return check(spec, spec.operands[0], spec.operands[1], spec.results[0]); }
Status checkInput(const CallSpec &spec) { return check(spec, spec.results[0], spec.operands[1], spec.operands[0]); }
Status checkFilter(const CallSpec &spec) { return check(spec, spec.operands[1], spec.results[0], spec.operands[0]); }

} // namespace

void addConvolution(Table &table) {
  table["Conv2D"] = {2, 1, checkForward};
  table["Conv2DTranspose"] = {2, 1, checkInput};
  table["Conv2DBackpropInput"] = {2, 1, checkInput};
  table["Conv2DBackpropFilter"] = {2, 1, checkFilter};
}

} // namespace calls
} // namespace msc
