// Convolutions by cuDNN where it has something for them. All others, and pooling, as launches of our own kernels, in f32, f64, f16
// and bf16.
#include "runtime/device/cuda/WindowCalls.h"

#include "runtime/device/cuda/CudnnConvolution.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/plan/calls/Convolution.h"
#include "runtime/plan/calls/PoolingPlanes.h"

#include <algorithm>
#include <cstring>

namespace msc::device::cuda {
namespace {

ConvolutionDescriptor describe(const Convolution &c) {
  ConvolutionDescriptor made{.inputs = c.inputs,
                             .outputs = c.outputs,
                             .inputsPerGroup = c.inputsPerGroup(),
                             .outputsPerGroup = c.outputsPerGroup(),
                             .images = c.images};
  for (size_t d : {0, 1}) {
    const Window &window = c.windows[d];
    made.kernel[d] = window.kernel, made.stride[d] = window.stride, made.dilation[d] = window.dilation;
    made.before[d] = window.before, made.input[d] = window.input, made.output[d] = window.output;
    made.heldX[d] = c.x[d].held, made.firstX[d] = c.x[d].first;
    made.heldY[d] = c.y[d].held, made.firstY[d] = c.y[d].first;
  }
  return made;
}

/// By cuDNN, or by the kernel `name`, which takes the descriptor, the result and both operands in their order.
Prepared convolve(Shared &shared, const CallSpec &spec, const char *name, ConvolutionResult result, const CallTensor &x,
                  const CallTensor &w, const CallTensor &y, Blocks blocks) {
  std::string why;
  Convolution shape = *convolutionOf(spec.attributes, result, x, w, y, why);
  Prepared byLibrary = libraryConvolution(shared, shape, result, x, w, y);
  if (!byLibrary || *byLibrary) {
    shared.byLibrary += 1;
    return byLibrary;
  }
  shared.byKernels += 1;
  ConvolutionDescriptor made = describe(shape);
  Result<CUdeviceptr> descriptor = shared.constant(&made, sizeof(made));
  if (!descriptor)
    return descriptor.error();
  std::vector<uint64_t> values{*descriptor, addressOf(spec.results[0].data), addressOf(spec.operands[0].data),
                               addressOf(spec.operands[1].data)};
  return launchOwn(shared, numberEntry(name, spec.results[0].type), std::move(values), elementCount(spec.results[0].box), blocks);
}

Prepared forward(Shared &shared, const CallSpec &spec) {
  return convolve(shared, spec, "convolution", ConvolutionResult::Output, spec.operands[0], spec.operands[1], spec.results[0],
                  Blocks::Fill);
}
Prepared towardsInput(Shared &shared, const CallSpec &spec) {
  return convolve(shared, spec, "convolution_input", ConvolutionResult::Input, spec.results[0], spec.operands[1],
                  spec.operands[0], Blocks::Fill);
}
Prepared towardsFilter(Shared &shared, const CallSpec &spec) {
  return convolve(shared, spec, "convolution_filter", ConvolutionResult::Filter, spec.operands[1], spec.results[0],
                  spec.operands[0], Blocks::OnePerItem);
}

/// Appends, for `count` elements from `first` on, the begin and the end of the windows that cover each.
void addWindowsOver(std::vector<int64_t> &words, const std::vector<PoolingCover> &covers, int64_t first, int64_t count) {
  for (int64_t at = first; at < first + count; ++at) {
    auto isOver = [at](const PoolingCover &cover) { return cover.begin <= at && at < cover.end; };
    auto begin = std::find_if(covers.begin(), covers.end(), isOver);
    auto end = std::find_if_not(begin, covers.end(), isOver); // begins and ends of windows never fall
    words.insert(words.end(), {begin - covers.begin(), end - covers.begin()});
  }
}

/// The descriptor and what lies behind it.
Result<CUdeviceptr> describe(Shared &shared, const PoolingPlanes &planes, const PoolingInset &inset) {
  PoolingDescriptor made{.largeRows = planes.largeRows,
                         .largeColumns = planes.largeColumns,
                         .smallRows = planes.smallRows,
                         .smallColumns = planes.smallColumns,
                         .rows = static_cast<int64_t>(planes.rows.size()),
                         .columns = static_cast<int64_t>(planes.columns.size()),
                         .ownRows = inset.rows,
                         .ownColumns = inset.columns,
                         .firstRow = inset.firstRow,
                         .firstColumn = inset.firstColumn};
  std::vector<int64_t> words(sizeof(made) / sizeof(int64_t));
  std::memcpy(words.data(), &made, sizeof(made));
  for (const std::vector<PoolingCover> *covers : {&planes.rows, &planes.columns})
    for (const PoolingCover &cover : *covers)
      words.insert(words.end(), {cover.small, cover.begin, cover.end, cover.counted});
  addWindowsOver(words, planes.rows, inset.firstRow, inset.rows);
  addWindowsOver(words, planes.columns, inset.firstColumn, inset.columns);
  return shared.constant(words.data(), words.size() * sizeof(int64_t));
}

/// The kernel `name` takes the descriptor, the result and all operands in their order.
Prepared pool(Shared &shared, const CallSpec &spec, const char *name, const PoolingPlanes &planes, const PoolingInset &inset) {
  Result<CUdeviceptr> descriptor = describe(shared, planes, inset);
  if (!descriptor)
    return descriptor.error();
  std::vector<uint64_t> values{*descriptor, addressOf(spec.results[0].data)};
  for (const CallTensor &operand : spec.operands)
    values.push_back(addressOf(operand.data));
  return launchOwn(shared, numberEntry(name, spec.results[0].type), std::move(values), elementCount(spec.results[0].box));
}

Prepared maxPool(Shared &shared, const CallSpec &spec) { return pool(shared, spec, "pool_max", planesOfPool(spec), {}); }
Prepared averagePool(Shared &shared, const CallSpec &spec) { return pool(shared, spec, "pool_average", planesOfPool(spec), {}); }
Prepared maxPoolBack(Shared &shared, const CallSpec &spec) {
  PoolingInset inset;
  PoolingPlanes planes = planesOfGradient(spec, spec.operands[0], inset);
  return pool(shared, spec, "pool_max_input", planes, inset);
}
Prepared averagePoolBack(Shared &shared, const CallSpec &spec) {
  PoolingInset inset;
  PoolingPlanes planes = planesOfGradient(spec, spec.results[0], inset);
  return pool(shared, spec, "pool_average_input", planes, inset);
}

} // namespace

void addWindowCalls(std::map<std::string, PrepareCall> &table) {
  table["Conv2D"] = forward;
  table["Conv2DTranspose"] = table["Conv2DBackpropInput"] = towardsInput;
  table["Conv2DBackpropFilter"] = towardsFilter;
  table["MaxPool"] = maxPool;
  table["AvgPool"] = table["AdaptiveAvgPool2D"] = averagePool;
  table["MaxPoolGrad"] = maxPoolBack;
  table["AvgPoolGrad"] = table["AdaptiveAvgPool2DGrad"] = averagePoolBack;
}

} // namespace msc::device::cuda
