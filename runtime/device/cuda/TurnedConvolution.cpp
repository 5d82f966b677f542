#include "runtime/device/cuda/TurnedConvolution.h"

#include "runtime/device/cuda/CudnnOperation.h"
#include "runtime/device/cuda/Kernels.h"

#include <algorithm>

namespace msc::device::cuda {
namespace {

using cudnn::Sizes;

constexpr int64_t elementSize = 2; // f16 and bf16
constexpr int64_t vectorOf = 8;    ///< neighbouring channels that are moved at once

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// N, C, rows, columns, with channels as neighbours.
Sizes lastStrides(const Sizes &sizes) {
  return {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]};
}

/// A tensor and its copy.
struct Turned {
  PlainTensor plain;
  int64_t held = 0;     ///< channels of the copy: a multiple of 8, zeros behind the tensor's own
  bool isCopied = true; ///< else both are the same
  uint64_t offset = 0;  ///< of the copy, in the scratch memory

  explicit Turned(const PlainTensor &tensor) : plain(tensor), held(roundedUp(tensor.sizes[1], vectorOf)) {
    isCopied = plane() > 1 || held != tensor.sizes[1] || alignmentOf(tensor.data, 16) != 16;
  }
  int64_t plane() const { return plain.sizes[2] * plain.sizes[3]; }
  Sizes sizes() const { return {plain.sizes[0], held, plain.sizes[2], plain.sizes[3]}; }
  uint64_t bytes() const {
    return isCopied ? static_cast<uint64_t>(roundedUp(plain.sizes[0] * held * plane() * elementSize, 256)) : 0;
  }
  CUdeviceptr place(const Stream &stream) const { return isCopied ? stream.scratch + offset : addressOf(plain.data); }
};

/// A launch of msc_turn_last_2 or msc_turn_first_2, but for the place of the copy.
struct TurnKernel {
  CUfunction function = nullptr;
  int64_t tileRows = 0, tileColumns = 0, pitch = 0, tiles = 0;
  uint32_t sharedBytes = 0;
};

class TurnedConvolution final : public CudnnOperation {
public:
  TurnedConvolution(Shared &shared, const PlainTensor &x, const PlainTensor &w, const PlainTensor &y)
      : CudnnOperation(shared), driver(shared.driver), tensors{Turned(x), Turned(w), Turned(y)} {}

  Result<bool> prepare(cudnn::Problem problem) {
    result = problem.result;
    for (Turned &tensor : tensors) {
      tensor.offset = copies;
      copies += tensor.bytes();
    }
    size_t free = 0, total = 0;
    MSC_CUDA(cuMemGetInfo, &free, &total);
    if (copies > free / 2)
      return false;
    auto &[x, w, y] = tensors;
    problem.x = x.sizes(), problem.w = w.sizes(), problem.y = y.sizes();
    problem.xStrides = lastStrides(problem.x), problem.wStrides = lastStrides(problem.w), problem.yStrides = lastStrides(problem.y);
    problem.alignment = {16, 16, 16};
    const uint64_t most = shared.convolutions->mostWorkspaceBytes; // for those that make no copies
    shared.convolutions->mostWorkspaceBytes = std::min<uint64_t>(most, (free - copies) / 2);
    const bool isKnown = choose(problem);
    shared.convolutions->mostWorkspaceBytes = most;
    if (!isKnown)
      return false;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (Status status = tensors[i].isCopied ? prepareTurn(tensors[i], kernels[i], i == written()) : Status(); !status)
        return status.error();
    announce();
    return true;
  }

  Scratch scratch() const override { return {.needed = copies + workspaceBytes()}; }

  Status enqueue(const Stream &stream) override {
    std::array<void *, 3> places = {};
    for (size_t i = 0; i < tensors.size(); ++i) {
      places[i] = reinterpret_cast<void *>(tensors[i].place(stream));
      if (Status status = i != written() ? turn(stream, i) : Status(); !status)
        return status;
    }
    Status status = execute(places, stream.scratch + copies, stream);
    return status ? turn(stream, written()) : status;
  }

private:
  size_t written() const { return result == ConvolutionResult::Input ? 0 : result == ConvolutionResult::Filter ? 1 : 2; }

  /// Tiles that have whole planes where these are small: they are then one piece of the plain tensor, wherever rows begin.
  Status prepareTurn(const Turned &tensor, TurnKernel &kernel, bool isBack) {
    constexpr int64_t smallPlane = 320, side = 64, apart = 66;
    const int64_t plane = tensor.plane(), channels = isBack ? tensor.plain.sizes[1] : tensor.held;
    const bool isSmall = plane <= smallPlane;
    const int64_t ofChannels = channels <= vectorOf ? vectorOf : side, ofPlane = isSmall ? plane : channels <= vectorOf ? 8 * side : side;
    kernel.pitch = isSmall ? plane : ofPlane + apart - side;
    kernel.tileRows = isBack ? ofPlane : ofChannels, kernel.tileColumns = isBack ? ofChannels : ofPlane;
    kernel.tiles = tensor.plain.sizes[0] * ((channels + ofChannels - 1) / ofChannels) * ((plane + ofPlane - 1) / ofPlane);
    kernel.sharedBytes = static_cast<uint32_t>(ofChannels * kernel.pitch * elementSize);
    Result<CUfunction> function = shared.gpu->function(kernelsPtx, isBack ? "msc_turn_first_2" : "msc_turn_last_2");
    if (!function)
      return function.error();
    kernel.function = *function;
    return {};
  }

  /// Makes the copy, or for what was written brings it back.
  Status turn(const Stream &stream, size_t which) {
    const Turned &tensor = tensors[which];
    if (!tensor.isCopied)
      return {};
    const TurnKernel &kernel = kernels[which];
    const bool isBack = which == written();
    const int64_t channels = tensor.plain.sizes[1], plane = tensor.plane();
    CUdeviceptr own = addressOf(tensor.plain.data), copy = tensor.place(stream);
    auto unsignedOf = [](int64_t value) { return static_cast<uint64_t>(value); };
    uint64_t values[] = {isBack ? own : copy,         isBack ? copy : own,           unsignedOf(isBack ? plane : channels),
                         unsignedOf(isBack ? channels : plane), unsignedOf(tensor.held), unsignedOf(kernel.tileRows),
                         unsignedOf(kernel.tileColumns), unsignedOf(kernel.pitch),   unsignedOf(kernel.tiles)};
    void *places[std::size(values)];
    std::transform(std::begin(values), std::end(values), places, [](uint64_t &value) { return &value; });
    auto blocks = static_cast<unsigned>(std::min<int64_t>(kernel.tiles, 1 << 20));
    MSC_CUDA(cuLaunchKernel, kernel.function, blocks, 1, 1, kernelBlock, 1, 1, kernel.sharedBytes, stream.handle, places, nullptr);
    return {};
  }

  const DriverTable &driver;
  std::array<Turned, 3> tensors; ///< x, w, y
  std::array<TurnKernel, 3> kernels;
  ConvolutionResult result = ConvolutionResult::Output;
  uint64_t copies = 0; ///< bytes of all of them
};

} // namespace

bool turnsChannels(const cudnn::Problem &problem, const PlainTensor &x, const PlainTensor &w, const PlainTensor &y, int64_t leastOperations) {
  auto plane = [](const PlainTensor &tensor) { return tensor.sizes[2] * tensor.sizes[3]; };
  const double operations = 2.0 * static_cast<double>(y.sizes[0] * y.sizes[1] * plane(y)) * static_cast<double>(w.sizes[1] * plane(w));
  const bool isNarrow = problem.type == cudnn::DataType::Half || problem.type == cudnn::DataType::Bfloat16;
  if (!isNarrow || w.sizes[1] != x.sizes[1] || y.sizes[1] % vectorOf != 0 || operations < static_cast<double>(leastOperations))
    return false;
  const bool skips = plane(w) == 1 && (problem.stride[0] > 1 || problem.stride[1] > 1);
  return plane(x) % vectorOf != 0 || plane(y) % vectorOf != 0 || x.sizes[1] % vectorOf != 0 || skips;
}

Prepared turnedConvolution(Shared &shared, cudnn::Problem problem, const PlainTensor &x, const PlainTensor &w, const PlainTensor &y) {
  auto made = std::make_unique<TurnedConvolution>(shared, x, w, y);
  Result<bool> prepared = made->prepare(problem);
  if (!prepared)
    return prepared.error();
  return std::unique_ptr<Operation>(*prepared ? std::move(made) : nullptr);
}

} // namespace msc::device::cuda
