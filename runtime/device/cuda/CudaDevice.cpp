#include "runtime/device/cuda/CudaBackend.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/Staging.h"
#include "runtime/device/cuda/StreamSequence.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace msc::device::cuda {
namespace {

double gibibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0);
}

class CudaDevice final : public Device {
public:
  CudaDevice(std::shared_ptr<Gpu> gpu, const CudaOptions &options)
      : shared(std::move(gpu), options.ptx, options.tensorFloat), driver(shared.driver), graphs(options.graphs),
        staging(driver) {}

  ~CudaDevice() override {
    if (!shared.gpu->makeCurrent())
      return;
    for (auto &[number, stream] : shared.streams)
      if (stream.handle)
        driver.cuStreamSynchronize(stream.handle); // its memory goes next; an error has been told
    for (CUdeviceptr memory : memories)
      driver.cuMemFree(memory);
    if (shared.handle)
      shared.blas.cublasLtDestroy(shared.handle);
    for (auto &[number, stream] : shared.streams)
      if (stream.handle)
        driver.cuStreamDestroy(stream.handle);
  }

  Status open() {
    if (Status status = shared.gpu->makeCurrent(); !status)
      return status;
    MSC_CUDA(cuStreamCreate, &shared.streams[0].handle, CU_STREAM_NON_BLOCKING);
    return staging.allocate();
  }

  const char *name() const override { return "cuda"; }
  bool sharesHostMemory() const override { return false; }

  Result<std::byte *> allocateArena(uint64_t bytes) override {
    Result<CUdeviceptr> arena = allocate(std::max<uint64_t>(bytes, 1), "the arena");
    if (!arena)
      return arena.error();
    MSC_CUDA(cuMemsetD8Async, *arena, 0, bytes, first());
    return reinterpret_cast<std::byte *>(*arena);
  }

  Prepared prepareLaunch(const LaunchSpec &spec) override { return cuda::prepareLaunch(shared, spec); }
  Prepared prepareFill(const FillSpec &spec) override { return cuda::prepareFill(shared, spec); }
  Prepared prepareMatMul(const MatMulSpec &spec) override {
    const BlasTable &blas = shared.blas;
    if (!shared.handle)
      MSC_BLAS(cublasLtCreate, &shared.handle);
    return cuda::prepareMatMul(shared, spec);
  }
  Prepared prepareCall(const CallSpec &spec) override {
    if (Status status = checkCall(spec); !status)
      return status.error();
    return Error{ExitCode::NoResource, fmt::format("the device {} has no kernel '{}'", name(), spec.kernel),
                 "run on CPUs with --device cpu"};
  }
  Prepared prepareCopy(const CopySpec &spec) override {
    bool isPlain = spec.from.sizes.size() == 1 && spec.from.strides[0] == 1 && spec.to.strides[0] == 1;
    if (isPlain)
      return cuda::prepareCopy(shared, spec, 0);
    Result<CUdeviceptr> descriptor = describe(spec);
    if (!descriptor)
      return descriptor.error();
    return cuda::prepareCopy(shared, spec, *descriptor);
  }

  /// Library calls get memory to work in once it is known that there are any. What was put on the stream so far is done when
  /// this returns, so that its errors are told before the first step.
  Status finishPreparation() override {
    if (Status status = giveWorkspaces(); !status)
      return status;
    return synchronize();
  }

  std::unique_ptr<Sequence> makeSequence(std::vector<SequenceEntry> entries) override {
    Status status = openStreams(entries);
    if (status) {
      auto made = makeStreamSequence(shared, std::move(entries), graphs);
      if (made)
        return std::move(*made);
      status = made.error();
    }
    return std::make_unique<Unusable>(status.error());
  }

  Status upload(std::byte *target, const void *source, size_t bytes) override {
    return staging.upload(addressOf(target), source, bytes, first());
  }
  Status download(void *target, const std::byte *source, size_t bytes) override {
    return staging.download(target, addressOf(source), bytes, first());
  }
  Status synchronize() override {
    MSC_CUDA(cuStreamSynchronize, first());
    staging.allDone();
    return {};
  }
  uint64_t allocatedBytes() const override { return allocated; }

private:
  /// A sequence that could not be made says so when it is to run.
  class Unusable final : public Sequence {
  public:
    explicit Unusable(Error error) : error(std::move(error)) {}
    Status run(size_t &failed) override {
      failed = SIZE_MAX;
      return error;
    }

  private:
    Error error;
  };

  CUstream first() const { return shared.streams.at(0).handle; }

  Result<CUdeviceptr> allocate(uint64_t bytes, const char *what) {
    CUdeviceptr memory = 0;
    CUresult result = driver.cuMemAlloc(&memory, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      size_t free = 0, total = 0;
      driver.cuMemGetInfo(&free, &total);
      return Error{ExitCode::NoResource,
                   fmt::format("{} takes {:.2f} GiB, but {:.2f} of {:.2f} GiB are free on GPU {} ({})", what, gibibytes(bytes),
                               gibibytes(free), gibibytes(total), shared.gpu->ordinal, shared.gpu->name),
                   "use more devices"};
    }
    if (result != CUDA_SUCCESS)
      return failed(driver, "cuMemAlloc", result);
    memories.push_back(memory);
    allocated += bytes;
    return memory;
  }

  Status giveWorkspaces() {
    for (auto &[number, stream] : shared.streams) {
      if (stream.workspace || !shared.handle)
        continue;
      Result<CUdeviceptr> memory = allocate(workspaceBytes, "the workspace of library kernels");
      if (!memory)
        return memory.error();
      stream.workspace = *memory;
    }
    return {};
  }

  Status openStreams(const std::vector<SequenceEntry> &entries) {
    for (const SequenceEntry &entry : entries)
      if (!shared.streams.count(entry.stream))
        MSC_CUDA(cuStreamCreate, &shared.streams[entry.stream].handle, CU_STREAM_NON_BLOCKING);
    return giveWorkspaces();
  }

  /// The regions of a copy in device memory; copies of the same regions share it.
  Result<CUdeviceptr> describe(const CopySpec &spec) {
    if (spec.from.sizes.size() > CopyDescriptor::mostDims)
      return Error{
          ExitCode::BadFile,
          fmt::format("a copy has {} dimensions, GPUs take up to {}", spec.from.sizes.size(), CopyDescriptor::mostDims), ""};
    CUdeviceptr &known = descriptors[{spec.from.sizes, spec.from.strides, spec.to.strides}];
    if (known)
      return known;
    CopyDescriptor shape;
    shape.dims = static_cast<int64_t>(spec.from.sizes.size());
    std::copy(spec.from.sizes.begin(), spec.from.sizes.end(), shape.sizes);
    std::copy(spec.from.strides.begin(), spec.from.strides.end(), shape.from);
    std::copy(spec.to.strides.begin(), spec.to.strides.end(), shape.to);
    Result<CUdeviceptr> memory = allocate(sizeof(shape), "the regions of a copy");
    if (!memory)
      return memory.error();
    if (Status status = staging.upload(*memory, &shape, sizeof(shape), first()); !status)
      return status.error();
    known = *memory;
    return known;
  }

  using Regions = std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>>;

  Shared shared;
  const DriverTable &driver;
  bool graphs;
  Staging staging;
  std::vector<CUdeviceptr> memories;
  std::map<Regions, CUdeviceptr> descriptors; ///< by sizes and strides
  uint64_t allocated = 0;
};

} // namespace

Result<std::unique_ptr<Device>> createDevice(std::shared_ptr<Gpu> gpu, const CudaOptions &options) {
  auto device = std::make_unique<CudaDevice>(std::move(gpu), options);
  if (Status status = device->open(); !status)
    return status.error();
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace msc::device::cuda
