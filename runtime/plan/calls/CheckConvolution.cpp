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

/// One direction on this rank: the part of x and of y that takes part in what it computes. False if the rank lacks some.
bool bindDirection(Convolution &convolution, size_t direction, const Window &whole, ConvolutionResult result, const CallTensor &x,
                   const CallTensor &y) {
  size_t dim = direction + 2;
  Window &window = convolution.windows[direction];
  window = whole;
  if (!x.isWindowed(dim) && !y.isWindowed(dim) && x.isWhole(dim) && y.isWhole(dim)) {
    convolution.x[direction] = {whole.input, 0};
    convolution.y[direction] = {whole.output, 0};
    return true;
  }
  bool towardsInput = result == ConvolutionResult::Input;
  Range inputs = towardsInput ? x.box[dim] : whole.under(y.box[dim]);
  Range outputs = towardsInput ? whole.over(x.box[dim]) : y.box[dim];
  Range heldX = x.held(dim, inputs), heldY = y.held(dim, outputs);
  if ((towardsInput ? x : y).isWindowed(dim) || !calls::contains(heldX, inputs) || !calls::contains(heldY, outputs))
    return false;
  window.before = whole.before + inputs.begin - outputs.begin * whole.stride;
  if (window.before < 0) { // inputs in front of the first window
    inputs.begin = std::min(inputs.begin - window.before, inputs.end);
    window.before = 0;
  }
  window.input = inputs.size();
  window.output = outputs.size();
  int64_t reach = outputs.size() == 0 ? 0 : (outputs.size() - 1) * whole.stride + (whole.kernel - 1) * whole.dilation + 1;
  window.after = std::max<int64_t>(0, reach - window.before - window.input);
  convolution.x[direction] = {heldX.size(), inputs.begin - heldX.begin};
  convolution.y[direction] = {heldY.size(), outputs.begin - heldY.begin};
  return true;
}

std::optional<std::array<Window, 2>> windowsIn(const CallAttributes &attributes, const CallTensor &x, const CallTensor &w,
                                               std::string &why) {
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
  return windowsOver(windows, x.size(2), x.size(3), why);
}

} // namespace

std::optional<Convolution> convolutionOf(const CallAttributes &attributes, ConvolutionResult result, const CallTensor &x,
                                         const CallTensor &w, const CallTensor &y, std::string &why) {
  for (const CallTensor *tensor : {&x, &w, &y})
    if (tensor->shape.size() != 4) {
      why = "tensors have 4 dimensions";
      return std::nullopt;
    }
  if (!w.isWhole(2) || !w.isWhole(3)) {
    why = "the kernel is whole on every rank";
    return std::nullopt;
  }
  auto over = windowsIn(attributes, x, w, why);
  if (!over)
    return std::nullopt;
  Convolution convolution;
  for (size_t direction : {0, 1}) {
    const Window &whole = (*over)[direction];
    if (y.size(direction + 2) != whole.output)
      why = fmt::format("dimension {} has {} windows, found {}", direction + 2, whole.output, y.size(direction + 2));
    else if (!bindDirection(convolution, direction, whole, result, x, y))
      why = fmt::format("the rank lacks indices of dimension {} that its windows reach", direction + 2);
    if (!why.empty())
      return std::nullopt;
  }
  if (!calls::sameCut(x, 0, y, 0)) {
    why = "batches differ between its tensors";
    return std::nullopt;
  }
  convolution.images = x.box[0].size();
  why = channelsWrong(convolution, attributes.integer("group", 1), x, w, y);
  return why.empty() ? std::optional(convolution) : std::nullopt;
}

namespace calls {
namespace {

Status check(const CallSpec &spec, ConvolutionResult result, const CallTensor &x, const CallTensor &w, const CallTensor &y) {
  if (!allFloats(spec))
    return refuse("{} takes tensors of one float type", spec.kernel);
  std::string why;
  if (!convolutionOf(spec.attributes, result, x, w, y, why))
    return refuse("{}: {}", spec.kernel, why);
  return {};
}

Status checkForward(const CallSpec &spec) {
  return check(spec, ConvolutionResult::Output, spec.operands[0], spec.operands[1], spec.results[0]);
}
Status checkInput(const CallSpec &spec) {
  return check(spec, ConvolutionResult::Input, spec.results[0], spec.operands[1], spec.operands[0]);
}
Status checkFilter(const CallSpec &spec) {
  return check(spec, ConvolutionResult::Filter, spec.operands[1], spec.results[0], spec.operands[0]);
}

} // namespace

void addConvolution(Table &table) {
  table["Conv2D"] = {2, 1, checkForward, 0, true};
  table["Conv2DTranspose"] = {2, 1, checkInput, 0, true};
  table["Conv2DBackpropInput"] = {2, 1, checkInput, 0, true};
  table["Conv2DBackpropFilter"] = {2, 1, checkFilter, 0, true};
}

} // namespace calls
} // namespace msc
