// cuDNN takes images whose planes lie apart, and different padding on both sides, only by few engines, or by none. Where it has
// none, the part of an image that takes part is copied into dense memory, with its padding in it. TurnedConvolution.cpp copies images
// where channels should be neighbours.
#include "runtime/device/cuda/CudnnConvolution.h"

#include "runtime/device/cuda/CudnnOperation.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/TurnedConvolution.h"

#include <algorithm>

namespace msc::device::cuda {
namespace {

using cudnn::Sizes;

std::optional<cudnn::DataType> typeOf(plan::DataType type) {
  switch (type) {
  case plan::F32: return cudnn::DataType::Float;
  case plan::F16: return cudnn::DataType::Half;
  case plan::BF16: return cudnn::DataType::Bfloat16;
  default: return std::nullopt;
  }
}

/// One direction as cuDNN counts it: every window has all its inputs, and there are as many outputs as fit in.
struct Side {
  int64_t input = 0; ///< what windows reach of it
  int64_t before = 0, after = 0;
  int64_t least = 0; ///< of `after`
};

/// None if all windows lie in the padding.
std::optional<Side> sideOf(const Window &window) {
  int64_t reach = (window.output - 1) * window.stride + (window.kernel - 1) * window.dilation + 1;
  Side side{window.input, window.before, 0, reach - window.before - window.input};
  if (side.least <= -window.stride) // one more window would fit in
    side.input += side.least, side.least = 0;
  if (side.input < 1)
    return std::nullopt;
  bool mayBeEven = side.least <= side.before && side.before < side.least + window.stride;
  side.least = std::max<int64_t>(side.least, 0);
  side.after = mayBeEven ? side.before : side.least;
  return side;
}

/// x or y: the part of a dense tensor that takes part.
struct Image {
  std::byte *tensor = nullptr;
  Sizes held = {}, part = {}; ///< of the tensor, and of its part
  int64_t first = 0;          ///< element of the tensor
  Sizes packed = {};          ///< a dense copy of the part, with its padding
  int64_t packedFirst = 0;    ///< element of the copy at which the part begins
  bool isPacked = false;

  bool isWhole() const { return held == part; }
  Sizes strides() const { return cudnn::denseStrides(isPacked ? packed : held); }
  Sizes sizes() const { return isPacked ? packed : part; }
  uint64_t packedBytes(size_t element) const {
    auto bytes = static_cast<uint64_t>(packed[0] * packed[1] * packed[2] * packed[3]) * element;
    return isPacked ? (bytes + 255) / 256 * 256 : 0; // what lies behind it is aligned
  }
};

/// A kernel that copies between a tensor and its packed part.
struct Transfer {
  CUfunction kernel = nullptr;
  CUdeviceptr descriptor = 0;
  uint64_t count = 0;
};

class LibraryConvolution final : public CudnnOperation {
public:
  LibraryConvolution(Shared &shared, ConvolutionResult result, Image x, std::byte *w, Image y, plan::DataType type)
      : CudnnOperation(shared), driver(shared.driver), result(result), x(x), y(y), w(w),
        elementBytes(msc::elementBytes(type)) {}

  /// False if cuDNN has nothing for the problem, which knows neither sizes nor addresses of x and y yet.
  Result<bool> prepare(cudnn::Problem problem) {
    problem.x = x.sizes(), problem.xStrides = x.strides();
    problem.y = y.sizes(), problem.yStrides = y.strides();
    problem.alignment = {alignmentOf(x), cuda::alignmentOf(w, 16), alignmentOf(y)};
    if (Status status = leaveMemory(); !status)
      return status.error();
    if (!choose(problem))
      return false;
    for (const Image *image : {&x, &y})
      if (Status status = prepareCopy(*image); !status)
        return status.error();
    announce();
    return true;
  }

  Scratch scratch() const override {
    return {.needed = x.packedBytes(elementBytes) + y.packedBytes(elementBytes) + workspaceBytes()};
  }

  Status enqueue(const Stream &stream) override {
    CUdeviceptr packedX = stream.scratch, packedY = packedX + x.packedBytes(elementBytes);
    CUdeviceptr workspace = packedY + y.packedBytes(elementBytes);
    auto pointer = [&](const Image &image, CUdeviceptr packed) {
      CUdeviceptr part = addressOf(image.tensor) + static_cast<uint64_t>(image.first) * elementBytes;
      return reinterpret_cast<void *>(image.isPacked ? packed : part);
    };
    if (Status status = pack(stream, packedX, packedY); !status)
      return status;
    if (Status status = execute({pointer(x, packedX), w, pointer(y, packedY)}, workspace, stream); !status)
      return status;
    const bool isInput = result == ConvolutionResult::Input;
    return isInput && x.isPacked ? copy(stream, x, packedX, false) : Status();
  }

private:
  int64_t alignmentOf(const Image &image) const {
    return image.isPacked ? 16 : cuda::alignmentOf(image.tensor + static_cast<size_t>(image.first) * elementBytes, 16);
  }

  /// The arena is there: engines get at most half of what is free behind it.
  Status leaveMemory() {
    size_t free = 0, total = 0;
    MSC_CUDA(cuMemGetInfo, &free, &total);
    shared.convolutions->mostWorkspaceBytes = std::min<uint64_t>(shared.convolutions->mostWorkspaceBytes, free / 2);
    return {};
  }

  Status prepareCopy(const Image &image) {
    if (!image.isPacked)
      return {};
    Sizes tensor = cudnn::denseStrides(image.held), packed = cudnn::denseStrides(image.packed);
    bool packs = &image == &y || result != ConvolutionResult::Input;
    CopyDescriptor shape{.dims = 4};
    std::copy(image.part.begin(), image.part.end(), shape.sizes);
    std::copy(tensor.begin(), tensor.end(), packs ? shape.from : shape.to);
    std::copy(packed.begin(), packed.end(), packs ? shape.to : shape.from);
    Result<CUdeviceptr> descriptor = shared.constant(&shape, sizeof(shape));
    if (!descriptor)
      return descriptor.error();
    Result<CUfunction> kernel = shared.gpu->function(kernelsPtx, fmt::format("msc_copy_{}", elementBytes));
    if (!kernel)
      return kernel.error();
    auto count = static_cast<uint64_t>(image.part[0] * image.part[1] * image.part[2] * image.part[3]);
    (&image == &x ? copyX : copyY) = {*kernel, *descriptor, count};
    return {};
  }

  /// What cuDNN reads besides the tensors; zeros where it writes nothing.
  Status pack(const Stream &stream, CUdeviceptr packedX, CUdeviceptr packedY) {
    if (y.isPacked)
      if (Status status = copy(stream, y, packedY, true); !status)
        return status;
    if (result == ConvolutionResult::Input) {
      if (!x.isWhole())
        MSC_CUDA(cuMemsetD8Async, addressOf(x.tensor), 0, bytesOf(x.held), stream.handle);
      return {};
    }
    if (!x.isPacked)
      return {};
    if (x.packed != x.part)
      MSC_CUDA(cuMemsetD8Async, packedX, 0, bytesOf(x.packed), stream.handle);
    return copy(stream, x, packedX, true);
  }

  size_t bytesOf(const Sizes &sizes) const {
    return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]) * elementBytes;
  }

  Status copy(const Stream &stream, const Image &image, CUdeviceptr packed, bool packs) {
    const Transfer &transfer = &image == &x ? copyX : copyY;
    CUdeviceptr own = addressOf(image.tensor) + static_cast<uint64_t>(image.first) * elementBytes;
    packed += static_cast<uint64_t>(image.packedFirst) * elementBytes;
    uint64_t values[] = {packs ? packed : own, packs ? own : packed, transfer.descriptor, transfer.count};
    void *places[] = {&values[0], &values[1], &values[2], &values[3]};
    auto blocks = static_cast<unsigned>(std::min<uint64_t>((transfer.count + kernelBlock - 1) / kernelBlock, 1 << 16));
    MSC_CUDA(cuLaunchKernel, transfer.kernel, blocks, 1, 1, kernelBlock, 1, 1, 0, stream.handle, places, nullptr);
    return {};
  }

  const DriverTable &driver;
  ConvolutionResult result;
  Image x, y;
  std::byte *w;
  size_t elementBytes;
  Transfer copyX, copyY;
};

Image imageOf(const CallTensor &tensor, int64_t images, int64_t channels, const std::array<PlaneSide, 2> &plane,
              std::array<int64_t, 2> part) {
  Image image{.tensor = tensor.data,
              .held = {images, channels, plane[0].held, plane[1].held},
              .part = {images, channels, part[0], part[1]},
              .first = plane[0].first * plane[1].held + plane[1].first};
  image.packed = image.part;
  return image;
}

} // namespace

Prepared libraryConvolution(Shared &shared, const Convolution &shape, ConvolutionResult result, const CallTensor &x,
                            const CallTensor &w, const CallTensor &y) {
  std::unique_ptr<Operation> none;
  auto type = typeOf(x.type);
  const auto &windows = shape.windows;
  if (!type || shape.images * shape.inputs * shape.outputs == 0 || shape.groups == 0 || windows[0].output < 1 ||
      windows[1].output < 1)
    return none;
  auto rows = sideOf(windows[0]), columns = sideOf(windows[1]);
  if (!rows || !columns)
    return none;
  Image imageX = imageOf(x, shape.images, shape.inputs, shape.x, {rows->input, columns->input});
  Image imageY = imageOf(y, shape.images, shape.outputs, shape.y, {windows[0].output, windows[1].output});
  if (result == ConvolutionResult::Output && !imageY.isWhole())
    return none;
  cudnn::Problem problem{.type = *type,
                         .tensorFloat = shared.tensorFloat,
                         .w = {shape.outputs, shape.inputsPerGroup(), windows[0].kernel, windows[1].kernel},
                         .stride = {windows[0].stride, windows[1].stride},
                         .dilation = {windows[0].dilation, windows[1].dilation},
                         .before = {rows->before, columns->before},
                         .after = {rows->after, columns->after}};
  problem.result = result, problem.wStrides = cudnn::denseStrides(problem.w);
  bool isEven = problem.before == problem.after;
  if (isEven && imageX.isWhole() && imageY.isWhole()) {
    PlainTensor plainX{x.data, imageX.held}, plainW{w.data, problem.w}, plainY{y.data, imageY.held};
    if (turnsChannels(problem, plainX, plainW, plainY, shared.turnFrom))
      if (Prepared turned = turnedConvolution(shared, problem, plainX, plainW, plainY); !turned || *turned)
        return turned;
  }
  auto attempt = [&]() -> Prepared {
    auto made = std::make_unique<LibraryConvolution>(shared, result, imageX, w.data, imageY, x.type);
    Result<bool> prepared = made->prepare(problem);
    if (!prepared)
      return prepared.error();
    return std::unique_ptr<Operation>(*prepared ? std::move(made) : nullptr);
  };
  problem.anyEngine = isEven && imageX.isWhole() && imageY.isWhole();
  Prepared direct = attempt();
  if (!direct || *direct || problem.anyEngine)
    return direct;
  problem.anyEngine = true;
  imageX.isPacked = !isEven || !imageX.isWhole();
  imageY.isPacked = !imageY.isWhole();
  if (!isEven) {
    int64_t width = columns->before + columns->input + columns->least;
    imageX.packed[2] = rows->before + rows->input + rows->least, imageX.packed[3] = width;
    imageX.packedFirst = rows->before * width + columns->before;
    problem.before = problem.after = {0, 0};
  }
  return attempt();
}

} // namespace msc::device::cuda
