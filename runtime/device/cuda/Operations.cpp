#include "runtime/device/cuda/Operations.h"

#include "runtime/device/ElementBits.h"
#include "runtime/device/cuda/Kernels.h"

#include <algorithm>
#include <limits>

namespace msc::device::cuda {
namespace {

/// A kernel with its arguments, each of 64 bits.
class Launch final : public StreamOperation {
public:
  Launch(Shared &shared, CUfunction function, int64_t blocks, uint32_t block, std::vector<uint64_t> values,
         uint32_t sharedBytes = 0, uint64_t workBytes = 0, size_t workArgument = 0)
      : StreamOperation(shared.streams[0]), driver(shared.driver), function(function), block(block), sharedBytes(sharedBytes),
        workBytes(workBytes), workArgument(workArgument), values(std::move(values)) {
    shared.needed.raise(scratch());
    this->blocks = static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, std::numeric_limits<int32_t>::max()));
    for (uint64_t &value : this->values)
      places.push_back(&value);
  }
  Status enqueue(const Stream &stream) override {
    if (workBytes > 0)
      values[workArgument] = stream.scratch;
    MSC_CUDA(cuLaunchKernel, function, blocks, 1, 1, block, 1, 1, sharedBytes, stream.handle, places.data(), nullptr);
    return {};
  }
  Scratch scratch() const override { return {.needed = workBytes}; }

private:
  const DriverTable &driver;
  CUfunction function;
  unsigned blocks, block, sharedBytes;
  uint64_t workBytes;
  size_t workArgument;
  std::vector<uint64_t> values;
  std::vector<void *> places;
};

/// Contiguous memory to contiguous memory.
class PlainCopy final : public StreamOperation {
public:
  PlainCopy(Shared &shared, CUdeviceptr target, CUdeviceptr source, size_t bytes)
      : StreamOperation(shared.streams[0]), driver(shared.driver), target(target), source(source), bytes(bytes) {}
  Status enqueue(const Stream &stream) override {
    MSC_CUDA(cuMemcpyDtoDAsync, target, source, bytes, stream.handle);
    return {};
  }

private:
  const DriverTable &driver;
  CUdeviceptr target, source;
  size_t bytes;
};

/// Elements of 1, 2 or 4 bytes.
class Fill final : public StreamOperation {
public:
  Fill(Shared &shared, CUdeviceptr target, size_t count, size_t bytes, uint64_t bits)
      : StreamOperation(shared.streams[0]), driver(shared.driver), target(target), count(count), bytes(bytes), bits(bits) {}
  Status enqueue(const Stream &stream) override {
    if (bytes == 1)
      MSC_CUDA(cuMemsetD8Async, target, static_cast<unsigned char>(bits), count, stream.handle);
    else if (bytes == 2)
      MSC_CUDA(cuMemsetD16Async, target, static_cast<unsigned short>(bits), count, stream.handle);
    else
      MSC_CUDA(cuMemsetD32Async, target, static_cast<unsigned>(bits), count, stream.handle);
    return {};
  }

private:
  const DriverTable &driver;
  CUdeviceptr target;
  size_t count, bytes;
  uint64_t bits;
};

} // namespace

Prepared launchOwn(Shared &shared, const OwnKernel &kernel, std::vector<uint64_t> arguments, int64_t count, Blocks blocks) {
  Result<CUfunction> function = shared.gpu->function(kernel.ptx, kernel.entry);
  if (!function)
    return function.error();
  constexpr uint32_t unasked = 48 << 10; // what a block may have of shared memory without being allowed more
  const DriverTable &driver = shared.driver;
  if (kernel.sharedBytes > unasked)
    MSC_CUDA(cuFuncSetAttribute, *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             static_cast<int>(kernel.sharedBytes));
  arguments.push_back(static_cast<uint64_t>(count));
  constexpr int64_t mostBlocks = 1 << 16;
  int64_t wanted = blocks == Blocks::Fill ? (count + kernel.block - 1) / kernel.block : count;
  return std::unique_ptr<Operation>(
      new Launch(shared, *function, std::min(wanted, mostBlocks), kernel.block, std::move(arguments), kernel.sharedBytes,
                 kernel.workBytes, kernel.workArgument));
}

Prepared launchOwn(Shared &shared, const std::string &entry, std::vector<uint64_t> arguments, int64_t count, Blocks blocks) {
  return launchOwn(shared, OwnKernel{kernelsPtx, entry, kernelBlock}, std::move(arguments), count, blocks);
}

Prepared inTurn(Shared &shared, std::vector<Prepared> parts) {
  std::vector<std::unique_ptr<Operation>> operations;
  for (Prepared &part : parts) {
    if (!part)
      return part.error();
    operations.push_back(std::move(*part));
  }
  return std::unique_ptr<Operation>(new Several(shared, std::move(operations)));
}

Prepared prepareLaunch(Shared &shared, const LaunchSpec &spec) {
  if (spec.entry.empty() || shared.ptx.empty())
    return Error{ExitCode::BadFile, fmt::format("the plan holds no GPU code for kernel '{}'", spec.symbol),
                 "compile the network again with --device-target auto"};
  Result<CUfunction> function = shared.gpu->function(shared.ptx, spec.entry);
  if (!function)
    return function.error();
  std::vector<uint64_t> values;
  for (std::byte *argument : spec.arguments)
    values.push_back(addressOf(argument));
  if (spec.scratch != 0) {
    Result<CUdeviceptr> scratch = shared.zeros(spec.scratch);
    if (!scratch)
      return scratch.error();
    values.push_back(*scratch);
  }
  values.push_back(static_cast<uint64_t>(spec.end));
  return std::unique_ptr<Operation>(new Launch(shared, *function, spec.blocks, spec.block, std::move(values)));
}

Prepared prepareFill(Shared &shared, const FillSpec &spec) {
  size_t bytes = elementBytes(spec.type);
  uint64_t bits = elementBits(spec.type, spec.value);
  if (bytes == 8)
    return launchOwn(shared, "msc_fill_8", {addressOf(spec.target), bits}, spec.count);
  return std::unique_ptr<Operation>(new Fill(shared, addressOf(spec.target), static_cast<size_t>(spec.count), bytes, bits));
}

Prepared prepareCopy(Shared &shared, const CopySpec &spec, CUdeviceptr descriptor) {
  CUdeviceptr source = addressOf(spec.source) + static_cast<uint64_t>(spec.from.offset) * spec.elementBytes;
  CUdeviceptr target = addressOf(spec.target) + static_cast<uint64_t>(spec.to.offset) * spec.elementBytes;
  if (!descriptor)
    return std::unique_ptr<Operation>(
        new PlainCopy(shared, target, source, static_cast<size_t>(spec.from.count()) * spec.elementBytes));
  return launchOwn(shared, fmt::format("msc_copy_{}", spec.elementBytes), {target, source, descriptor}, spec.from.count());
}

} // namespace msc::device::cuda
