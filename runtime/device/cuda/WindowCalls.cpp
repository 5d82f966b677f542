// Convolutions by cuDNN where it has something for them. All others, and pooling, as launches of our own kernels, in f32, f64, f16
// and bf16.
#include "runtime/device/cuda/WindowCalls.h"

#include "runtime/device/cuda/CudnnConvolution.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/plan/calls/Convolution.h"
#include "runtime/plan/calls/PoolingPlanes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

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
void addWindowsOver(std::vector<int32_t> &words, const std::vector<PoolingCover> &covers, int64_t first, int64_t count) {
  for (int64_t at = first; at < first + count; ++at) {
    auto isOver = [at](const PoolingCover &cover) { return cover.begin <= at && at < cover.end; };
    auto begin = std::find_if(covers.begin(), covers.end(), isOver);
    auto end = std::find_if_not(begin, covers.end(), isOver); // begins and ends of windows never fall
    words.insert(words.end(), {static_cast<int32_t>(begin - covers.begin()), static_cast<int32_t>(end - covers.begin())});
  }
}

/// How many threads, as a power of two, go along a row: as many as leave the fewest idle, and not less than a warp.
int32_t shiftOf(int64_t columns) {
  auto padded = [=](int32_t shift) { return (((columns - 1) >> shift) + 1) << shift; };
  int32_t best = 0;
  while (best < 5 && int64_t{1} << best < columns)
    ++best;
  for (int32_t shift = 6; best >= 5 && shift <= 8; ++shift)
    if (padded(shift) <= padded(best))
      best = shift;
  return best;
}

/// A pooling as kernels take it. Planes have less than 2^31 elements.
struct Pool {
  PoolingDescriptor made;
  CUdeviceptr descriptor = 0;

  static Result<Pool> of(Shared &shared, const CallSpec &spec, const PoolingPlanes &planes, const PoolingInset &inset) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (planes.largeSize() > most || planes.smallSize() > most || inset.size() > most)
      return lacks(spec);
    auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
    const Box &box = spec.results[0].box;
    Pool pool;
    pool.made = {.planes = box[0].size() * box[1].size(),
                 .largeRows = narrow(planes.largeRows),
                 .largeColumns = narrow(planes.largeColumns),
                 .smallRows = narrow(planes.smallRows),
                 .smallColumns = narrow(planes.smallColumns),
                 .rows = narrow(static_cast<int64_t>(planes.rows.size())),
                 .columns = narrow(static_cast<int64_t>(planes.columns.size())),
                 .smallRow = planes.rows.empty() ? 0 : narrow(planes.rows[0].small),
                 .smallColumn = planes.columns.empty() ? 0 : narrow(planes.columns[0].small),
                 .ownRows = narrow(inset.rows),
                 .ownColumns = narrow(inset.columns),
                 .firstRow = narrow(inset.firstRow),
                 .firstColumn = narrow(inset.firstColumn),
                 .windowShift = shiftOf(static_cast<int64_t>(planes.columns.size())),
                 .ownShift = shiftOf(inset.columns)};
    std::vector<int32_t> words(sizeof(pool.made) / sizeof(int32_t));
    std::memcpy(words.data(), &pool.made, sizeof(pool.made));
    for (const std::vector<PoolingCover> *covers : {&planes.rows, &planes.columns})
      for (const PoolingCover &cover : *covers)
        words.insert(words.end(), {narrow(cover.small), narrow(cover.begin), narrow(cover.end), narrow(cover.counted)});
    addWindowsOver(words, planes.rows, inset.firstRow, inset.rows);
    addWindowsOver(words, planes.columns, inset.firstColumn, inset.columns);
    Result<CUdeviceptr> descriptor = shared.constant(words.data(), words.size() * sizeof(int32_t));
    if (!descriptor)
      return descriptor.error();
    pool.descriptor = *descriptor;
    return pool;
  }

  int64_t placeBytes() const { return made.planes * made.rows * made.columns * static_cast<int64_t>(sizeof(int32_t)); }

  /// The kernel `name` takes the descriptor and these; its blocks go along rows of windows, or of the gradient.
  Prepared launch(Shared &shared, const CallSpec &spec, const char *name, std::vector<uint64_t> values, bool overWindows,
                  std::optional<size_t> places = {}) const {
    values.insert(values.begin(), descriptor);
    int64_t lines = made.planes * (overWindows ? made.rows : made.ownRows);
    int64_t atOnce = kernelBlock >> (overWindows ? made.windowShift : made.ownShift);
    OwnKernel kernel{kernelsPtx, numberEntry(name, spec.results[0].type), kernelBlock};
    if (places)
      kernel.workArgument = *places, kernel.workBytes = static_cast<uint64_t>(placeBytes());
    return launchOwn(shared, kernel, std::move(values), (lines + atOnce - 1) / atOnce, Blocks::OnePerItem);
  }
};

Prepared poolForward(Shared &shared, const CallSpec &spec, const char *name) {
  Result<Pool> pool = Pool::of(shared, spec, planesOfPool(spec), {});
  if (!pool)
    return pool.error();
  return pool->launch(shared, spec, name, {addressOf(spec.results[0].data), addressOf(spec.operands[0].data)}, true);
}
Prepared maxPool(Shared &shared, const CallSpec &spec) { return poolForward(shared, spec, "pool_max"); }
Prepared averagePool(Shared &shared, const CallSpec &spec) { return poolForward(shared, spec, "pool_average"); }

/// First where the largest element of each window is, so that windows are searched once each, then what arrives there.
Prepared maxPoolBack(Shared &shared, const CallSpec &spec) {
  PoolingInset inset;
  PoolingPlanes planes = planesOfGradient(spec, spec.operands[0], inset);
  Result<Pool> pool = Pool::of(shared, spec, planes, inset);
  if (!pool)
    return pool.error();
  std::vector<Prepared> parts;
  if (pool->placeBytes() > 0)
    parts.push_back(pool->launch(shared, spec, "pool_places", {0, addressOf(spec.operands[0].data)}, true, 1));
  parts.push_back(pool->launch(shared, spec, "pool_max_input", {addressOf(spec.results[0].data), 0, addressOf(spec.operands[1].data)}, false, 2));
  return inTurn(shared, std::move(parts));
}
Prepared averagePoolBack(Shared &shared, const CallSpec &spec) {
  PoolingInset inset;
  PoolingPlanes planes = planesOfGradient(spec, spec.results[0], inset);
  Result<Pool> pool = Pool::of(shared, spec, planes, inset);
  if (!pool)
    return pool.error();
  return pool->launch(shared, spec, "pool_average_input", {addressOf(spec.results[0].data), addressOf(spec.operands[0].data)}, false);
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
