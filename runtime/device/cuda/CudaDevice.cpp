#include "runtime/device/cuda/Calls.h"
#include "runtime/device/cuda/CollectiveBuilder.h"
#include "runtime/device/cuda/CudaBackend.h"
#include "runtime/device/cuda/Inlet.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/SpreadEntries.h"
#include "runtime/device/cuda/Staging.h"
#include "runtime/device/cuda/StreamSequence.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace msc::device::cuda {
namespace {

double gibibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0);
}

class CudaDevice final : public Device {
public:
  CudaDevice(std::shared_ptr<Gpu> gpu, const CudaOptions &options, std::shared_ptr<Choices> choices, bool measures)
      : shared(std::move(gpu), options), driver(shared.driver), graphs(options.graphs), measures(measures),
        staging(driver, [this](CUstream stream) { return wait(stream); }) {
    shared.choices = std::move(choices);
  }

  ~CudaDevice() override {
    if (!shared.gpu->makeCurrent())
      return;
    abandonGroups();
    for (auto &[number, stream] : shared.streams)
      if (stream.handle)
        driver.cuStreamSynchronize(stream.handle); // its memory goes next; an error has been told
    if (copies)
      driver.cuStreamDestroy(copies); // inlets are gone, and have waited
    if (!communicator || !communicator->leavesMemory())
      for (CUdeviceptr memory : memories)
        driver.cuMemFree(memory);
    communicator.reset();
    if (shared.handle)
      shared.blas.cublasLtDestroy(shared.handle);
    shared.convolutions.reset();
    for (auto &[number, stream] : shared.streams)
      if (stream.handle)
        driver.cuStreamDestroy(stream.handle);
  }

  Status open(const Connect &connect) {
    if (Status status = shared.gpu->makeCurrent(); !status)
      return status;
    MSC_CUDA(cuStreamCreate, &shared.streams[0].handle, CU_STREAM_NON_BLOCKING);
    shared.constant = [this](const void *data, size_t bytes) { return constant(data, bytes); };
    shared.checkSlot = [this](IndexCheck check) { return checkSlot(std::move(check)); };
    shared.scratch = [this](size_t bytes) { return pack(bytes); };
    shared.zeros = [this](size_t bytes) { return zeros(bytes); };
    shared.wait = [this](CUstream stream) { return wait(stream); };
    if (Status status = staging.allocate(); !status || !connect)
      return status;
    auto connected = connect(shared);
    if (!connected)
      return connected.error();
    communicator = std::move(*connected);
    return {};
  }

  const char *name() const override { return "cuda"; }
  bool sharesHostMemory() const override { return false; }

  Result<std::byte *> allocateArena(uint64_t bytes) override {
    Result<CUdeviceptr> arena = allocateShared(std::max<uint64_t>(bytes, 1), "the arena");
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
    return cuda::prepareCall(shared, spec);
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

  CollectiveForm collectiveForm() const override {
    if (!communicator)
      return CollectiveForm::OfHost;
    return communicator->isCapturable() ? CollectiveForm::InSequence : CollectiveForm::Separate;
  }
  Status openGroups(const std::vector<comm::Partition> &partitions) override {
    for (const comm::Partition &partition : partitions)
      if (auto group = communicator->group(partition); !group)
        return group.error();
    return {};
  }
  Prepared prepareCollective(const CollectiveSpec &spec) override {
    auto group = communicator->group(*spec.partition);
    if (!group)
      return group.error();
    for (PackingMemory &memory : packing)
      memory.used = 0;
    return cuda::prepareCollective(shared, *group, spec, [this](const CopySpec &copy) { return prepareCopy(copy); });
  }
  Status closeGroups() override { return communicator ? communicator->close() : Status(); }
  void abandonGroups() override {
    if (communicator)
      communicator->abort();
  }

  /// Library calls get memory to work in once it is known that there are any. What was put on the stream so far is done when
  /// this returns, so that its errors are told before the first step.
  Status finishPreparation(const FreeRanges &) override {
    if (Status status = furnish(shared.streams[0], shared.needed); !status)
      return status;
    if (Status status = synchronize(); !status)
      return status;
    return shared.choices ? tune() : Status();
  }

  std::unique_ptr<Sequence> makeSequence(std::vector<SequenceEntry> entries) override {
    if (graphs && entries.size() >= manyEntries)
      if (std::vector<SequenceEntry> spread = entries; spreadOut(spread))
        entries = std::move(spread);
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
  Status fetch(void *target, const std::byte *source, size_t bytes) override {
    return staging.downloadLater(target, addressOf(source), bytes, first());
  }
  Result<std::unique_ptr<Inlet>> openInlet(size_t bytes) override {
    constexpr size_t few = 1 << 20; // go quickly as they are
    if (bytes < few)
      return Device::openInlet(bytes);
    if (!copies)
      MSC_CUDA(cuStreamCreate, &copies, CU_STREAM_NON_BLOCKING);
    Result<CUdeviceptr> memory = allocate(bytes, "memory for the next inputs");
    if (!memory)
      return memory.error();
    auto inlet = std::make_unique<CudaInlet>(shared, copies, *memory, bytes);
    if (Status status = inlet->allocate(); !status)
      return status.error();
    return std::unique_ptr<Inlet>(std::move(inlet));
  }
  /// One wait for all that was fetched, and for the marks of wrong indices.
  Status synchronize() override {
    places.resize(checks.size());
    for (size_t done = 0; done < places.size();) {
      size_t part = std::min<size_t>(places.size() - done, Staging::mostLater / sizeof(uint64_t));
      if (Status status = staging.downloadLater(&places[done], slots + done * sizeof(uint64_t), part * sizeof(uint64_t), first()); !status)
        return status;
      done += part;
    }
    if (Status status = wait(first()); !status)
      return status;
    staging.allDone();
    return checkIndices();
  }
  uint64_t allocatedBytes() const override { return allocated; }

  std::string note() const override {
    std::string convolutions = noteOfConvolutions();
    return unmeasured == 0 ? convolutions
                           : fmt::format("{}{}the file of --tune lacks {}, of {} convolutions and products, and none is measured here: one process without "
                                         "--deterministic does that", convolutions, convolutions.empty() ? "" : "; ", unmeasured, tunable);
  }

private:
  std::string noteOfConvolutions() const {
    const cudnn::Library &library = *shared.convolutions;
    int64_t all = shared.byLibrary + shared.byKernels;
    if (all == 0)
      return "";
    if (shared.byKernels == 0)
      return fmt::format("convolutions by {}", library.name());
    if (shared.byLibrary == 0 && library.problem.empty())
      return "convolutions by plain kernels, which are slow";
    if (shared.byLibrary == 0)
      return fmt::format("convolutions by plain kernels, which are slow; cuDNN 9 would be fast: {}", library.problem);
    return fmt::format("{} of {} convolutions by {}, the others by plain kernels, which are slow", shared.byLibrary, all,
                       library.name());
  }

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

  Status wait(CUstream stream) {
    if (!communicator)
      return done(driver.cuStreamSynchronize(stream));
    communicator->setWaiting(true);
    CUresult result = driver.cuStreamSynchronize(stream);
    communicator->setWaiting(false);
    // Where the communication was ended, streams end, too, whatever they say.
    Status status = communicator->check();
    return status ? done(result) : status;
  }

  /// In a graph nobody knows which operator it was.
  Status done(CUresult result) const {
    Status status = check(driver, "cuStreamSynchronize", result);
    if (!status && shared.runsGraphs)
      return Error{status.error().code, status.error().message, "run again with --no-cuda-graph: the message then names the operator"};
    return status;
  }

  /// Memory in which peers may read and write.
  Result<CUdeviceptr> allocateShared(uint64_t bytes, const char *what) {
    if (!communicator)
      return allocate(bytes, what);
    Result<void *> memory = communicator->allocate(bytes);
    if (!memory)
      return memory.error();
    if (!*memory)
      return allocate(bytes, what);
    allocated += bytes;
    return reinterpret_cast<CUdeviceptr>(*memory);
  }

  /// Memory into which the collective that is prepared packs: others use the same, since they run one after the other.
  Result<CUdeviceptr> pack(uint64_t bytes) {
    constexpr uint64_t unit = 256, least = uint64_t{2} << 20; // as much as the driver gives at a time
    bytes = (bytes + unit - 1) / unit * unit;
    for (PackingMemory &memory : packing)
      if (memory.bytes - memory.used >= bytes)
        return memory.begin + std::exchange(memory.used, memory.used + bytes);
    // Twice what there was, if that is to be had: collectives that grow from one to the next leave no more behind than the last ones take.
    const bool grows = !packing.empty() && packing.back().used == 0;
    uint64_t all = std::max(bytes, grows ? 2 * packing.back().bytes : least);
    Result<CUdeviceptr> memory = allocateShared(all, "memory for collectives");
    if (!memory && all > bytes)
      memory = allocateShared(all = bytes, "memory for collectives");
    if (memory)
      packing.push_back({*memory, all, bytes});
    return memory;
  }

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

  /// Gives a stream what library calls on it work in.
  Status furnish(Stream &stream, const Scratch &scratch) {
    if (!stream.workspace && shared.handle) {
      Result<CUdeviceptr> memory = allocate(workspaceBytes, "the workspace of library kernels");
      if (!memory)
        return memory.error();
      stream.workspace = *memory;
    }
    return giveScratch(stream, scratch);
  }

  /// Takes the ways that were chosen before, and measures where none was, if it may: ranks of other processes would choose otherwise.
  /// Nothing in the arena has a value yet.
  Status tune() {
    for (TunableOperation *operation : std::exchange(shared.tunables, {})) {
      ++tunable;
      std::string problem = shared.gpu->name + ": " + operation->problem();
      std::optional<size_t> way = shared.choices->of(problem);
      unmeasured += !way && !measures;
      if (!way && measures)
        if (std::optional<size_t> best = fastestOf(*operation))
          way = shared.choices->settle(problem, *best);
      operation->use(way && *way < operation->ways() ? *way : 0);
    }
    return shared.choices->write();
  }

  std::optional<size_t> fastestOf(TunableOperation &operation) {
    std::optional<size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (size_t way = 0; way < operation.ways(); ++way)
      if (double ms = measure(operation, way); ms < least)
        best = way, least = ms;
    return best;
  }

  /// Milliseconds on the first stream, the least of some tries; infinite where the way fails.
  double measure(TunableOperation &operation, size_t way) {
    constexpr int tries = 4; // the first one warms up
    operation.use(way);
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < tries; ++i) {
      auto begin = std::chrono::steady_clock::now();
      if (!operation.run() || !wait(first()))
        return std::numeric_limits<double>::infinity();
      std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
      least = i == 0 ? least : std::min(least, taken.count());
    }
    return least;
  }

  /// What a stream had before stays: a graph may hold it. A wish that would leave little of the GPU's memory is not granted.
  Status giveScratch(Stream &stream, const Scratch &scratch) {
    size_t free = 0, total = 0;
    uint64_t bytes = std::max(scratch.needed, scratch.wished);
    if (scratch.wished > std::max(scratch.needed, stream.scratchBytes)) {
      MSC_CUDA(cuMemGetInfo, &free, &total);
      if (free < scratch.wished + leftBytes)
        bytes = scratch.needed;
    }
    if (bytes <= stream.scratchBytes)
      return {};
    Result<CUdeviceptr> memory = allocate(bytes, "the workspace of library kernels");
    if (!memory)
      return bytes > scratch.needed ? giveScratch(stream, {.needed = scratch.needed}) : Status(memory.error());
    stream.scratch = *memory, stream.scratchBytes = bytes;
    return {};
  }

  /// Side streams for whose memory there is room, beside what they have.
  unsigned affordableSides() const {
    size_t free = 0, total = 0;
    if (driver.cuMemGetInfo(&free, &total) != CUDA_SUCCESS)
      return 0;
    uint64_t missing = leftBytes;
    for (unsigned side = 0; side < sideStreams; ++side) {
      auto known = shared.streams.find(firstSideStream + side);
      const Stream stream = known == shared.streams.end() ? Stream() : known->second;
      missing += (stream.workspace ? 0 : workspaceBytes) + (stream.scratchBytes >= mostSideScratch ? 0 : mostSideScratch);
      if (free < missing)
        return side;
    }
    return sideStreams;
  }

  /// False: the memory for it was not to be had. What an operation computes in decides how it computes, so that one stays on the first stream,
  /// where it runs the first time, unless it gets as much on another.
  bool spreadOut(std::vector<SequenceEntry> &entries) {
    auto scratchOf = [](const Operation *operation) { return static_cast<const StreamOperation *>(operation)->scratch(); };
    const uint64_t granted = shared.streams.at(0).scratchBytes;
    spreadEntries(entries, affordableSides(), [&](const Operation &operation) {
      const Scratch scratch = scratchOf(&operation);
      return std::max(scratch.needed, scratch.wished) > std::min(mostSideScratch, granted);
    });
    return openStreams(entries) && std::ranges::all_of(entries, [&](const SequenceEntry &entry) {
             return entry.stream == 0 || scratchOf(entry.operation).wished <= shared.streams.at(entry.stream).scratchBytes;
           });
  }

  Status openStreams(const std::vector<SequenceEntry> &entries) {
    std::map<uint32_t, Scratch> needed;
    for (const SequenceEntry &entry : entries) {
      if (!shared.streams.count(entry.stream)) {
        CUstream made = nullptr;
        MSC_CUDA(cuStreamCreate, &made, CU_STREAM_NON_BLOCKING);
        shared.streams[entry.stream].handle = made;
      }
      needed[entry.stream].raise(static_cast<StreamOperation *>(entry.operation)->scratch());
    }
    needed[0].raise(shared.needed);
    for (const auto &[stream, scratch] : needed) // not others: one that was opened in vain gets nothing
      if (Status status = furnish(shared.streams[stream], scratch); !status)
        return status;
    return {};
  }

  /// The regions of a copy in device memory; copies of the same regions share it.
  Result<CUdeviceptr> describe(const CopySpec &spec) {
    if (spec.from.sizes.size() > CopyDescriptor::mostDims)
      return Error{
          ExitCode::BadFile,
          fmt::format("a copy has {} dimensions, GPUs take up to {}", spec.from.sizes.size(), CopyDescriptor::mostDims), ""};
    CopyDescriptor shape;
    shape.dims = static_cast<int64_t>(spec.from.sizes.size());
    std::copy(spec.from.sizes.begin(), spec.from.sizes.end(), shape.sizes);
    std::copy(spec.from.strides.begin(), spec.from.strides.end(), shape.from);
    std::copy(spec.to.strides.begin(), spec.to.strides.end(), shape.to);
    return constant(&shape, sizeof(shape));
  }

  Result<CUdeviceptr> constant(const void *data, size_t bytes) {
    CUdeviceptr &known = constants[std::string(static_cast<const char *>(data), bytes)];
    if (known)
      return known;
    Result<CUdeviceptr> memory = allocate(bytes, "the sizes that kernels read");
    if (!memory)
      return memory;
    if (Status status = staging.upload(*memory, data, bytes, first()); !status)
      return status.error();
    known = *memory;
    return known;
  }

  Result<CUdeviceptr> zeros(size_t bytes) {
    Result<CUdeviceptr> memory = allocate(bytes, "the scratch of a kernel");
    if (memory)
      MSC_CUDA(cuMemsetD8Async, *memory, 0, bytes, first());
    return memory;
  }

  Result<CUdeviceptr> checkSlot(IndexCheck index) {
    if (!slots) {
      Result<CUdeviceptr> memory = allocate(mostSlots * sizeof(uint64_t), "the sizes that kernels read");
      if (!memory)
        return memory;
      slots = *memory;
      MSC_CUDA(cuMemsetD8Async, slots, 0xff, mostSlots * sizeof(uint64_t), first());
    }
    if (checks.size() == mostSlots)
      return Error{ExitCode::NoResource, fmt::format("the plan has more than {} look-ups", mostSlots),
                   "run on CPUs with --device cpu"};
    checks.push_back(std::move(index));
    return slots + (checks.size() - 1) * sizeof(uint64_t);
  }

  /// Look-ups have found an index in the meantime that numbers nothing.
  Status checkIndices() {
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] != UINT64_MAX)
        return wrongIndex(checks[i], places[i]);
    return {};
  }
  Error wrongIndex(const IndexCheck &check, uint64_t place) {
    int64_t wide = 0;
    int32_t narrow = 0;
    size_t bytes = check.wide ? sizeof(wide) : sizeof(narrow);
    void *target = check.wide ? static_cast<void *>(&wide) : &narrow;
    if (Status status = staging.download(target, check.indices + place * bytes, bytes, first()); !status)
      return status.error();
    return {ExitCode::Failed,
            fmt::format("index {} of '{}' is outside [{}, {})", check.wide ? wide : narrow, check.kernel, check.from, check.size), ""};
  }

  static constexpr size_t mostSlots = 512;
  static constexpr uint64_t leftBytes = uint64_t{256} << 20;   ///< for graphs and what libraries load later
  static constexpr unsigned sideStreams = 3;
  static constexpr size_t manyEntries = 32;                    ///< fewer are over before further streams would help
  static constexpr uint64_t mostSideScratch = uint64_t{64} << 20; ///< operations that take more share that of the first stream

  Shared shared;
  const DriverTable &driver;
  bool graphs;
  bool measures;          ///< what `choices` lack
  int64_t tunable = 0;    ///< operations
  int64_t unmeasured = 0; ///< of these, that `choices` lacked, and that may not be measured
  Staging staging;
  std::unique_ptr<comm::StreamCommunicator> communicator; ///< null: collectives are of the host
  std::vector<CUdeviceptr> memories;
  struct PackingMemory {
    CUdeviceptr begin;
    uint64_t bytes, used; ///< by the collective that is prepared
  };
  std::vector<PackingMemory> packing;
  std::map<std::string, CUdeviceptr> constants; ///< by content
  CUdeviceptr slots = 0;                        ///< of `checks`, all ones where nothing is wrong
  std::vector<IndexCheck> checks;
  std::vector<uint64_t> places; ///< of wrong indices, as they were last looked at
  CUstream copies = nullptr;    ///< of inputs; null: none was asked for
  uint64_t allocated = 0;
};

} // namespace

Result<std::unique_ptr<Device>> createDevice(std::shared_ptr<Gpu> gpu, const CudaOptions &options, const Connect &connect,
                                             std::shared_ptr<Choices> choices, bool measures) {
  auto device = std::make_unique<CudaDevice>(std::move(gpu), options, std::move(choices), measures);
  if (Status status = device->open(connect); !status)
    return status.error();
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace msc::device::cuda
