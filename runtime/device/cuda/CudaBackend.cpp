#include "runtime/device/cuda/CudaBackend.h"

#include "runtime/comm/Gather.h"
#include "runtime/device/cuda/LocalCommunicator.h"
#include "runtime/device/cuda/Placement.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

namespace msc::device::cuda {
namespace {

class CudaBackend final : public Backend {
public:
  CudaBackend(const Tables &tables, const CudaOptions &options, std::shared_ptr<Choices> choices, int count)
      : tables(tables), options(options), choices(std::move(choices)), gpus(static_cast<size_t>(count)) {}

  const char *name() const override { return "cuda"; }

  Result<std::unique_ptr<Device>> create(const DeviceRequest &request) override {
    auto ordinal = static_cast<int>(request.localRank % visible());
    Collectives path = Collectives::Host;
    if (request.world)
      path = pathOf(*request.world);
    if (request.world && (request.world->size() > 1 || path == Collectives::Nccl)) {
      Result<int> placed = place(*request.world, path, ordinal);
      if (!placed)
        return placed.error();
      ordinal = *placed;
    }
    Result<std::shared_ptr<Gpu>> gpu = gpuOf(ordinal);
    if (!gpu)
      return gpu.error();
    const bool measures = !options.deterministic && (!request.world || isOneProcess(*request.world));
    switch (path) {
    case Collectives::Nccl:
      return createDevice(*gpu, options, [&](Shared &) { return options.nccl->connect(*request.world); }, choices,
                          measures);
    case Collectives::Local:
      return createDevice(*gpu, options, [&](Shared &shared) { return connectLocally(shared, *request.world, isOneProcess(*request.world)); }, choices,
                          measures);
    default: return createDevice(*gpu, options, nullptr, choices, measures);
    }
  }

  std::string note(const RankCount &ranks) const override {
    std::string host = "collectives go through the memory of the host", gpus = visible() == 1 ? "GPU" : "GPUs";
    Collectives path = chooseCollectives(options.collectives, ranks, visible(), options.nccl != nullptr);
    if (ranks.all == 1 && path == Collectives::Host)
      return "";
    if (path == Collectives::Local)
      return fmt::format("{} logical ranks on 1 GPU; collectives by its kernels", ranks.all);
    if (path == Collectives::Nccl)
      return fmt::format("collectives by {}", options.nccl->name());
    if (ranks.local > visible())
      return fmt::format("{} logical ranks on {} {}; {}", ranks.local, visible(), gpus, host);
    if (options.collectives == Collectives::Auto && !options.ncclProblem.empty())
      return fmt::format("{}: {}", host, options.ncclProblem);
    return host;
  }

private:
  /// What a rank tells the others before it has a GPU.
  struct Introduction {
    VisibleGpus gpus;
    int64_t path = 0;
    int64_t isNamed = 0; ///< 1: NCCL_HOSTID tells NCCL that the rank is on a host of its own, whose GPU may be another's
  };

  int64_t visible() const { return static_cast<int64_t>(gpus.size()); }

  Collectives pathOf(const comm::World &world) const {
    return chooseCollectives(options.collectives, {world.size(), world.localSize(), isOneProcess(world)}, visible(),
                             options.nccl != nullptr);
  }

  static bool isOneProcess(const comm::World &world) { return std::strcmp(world.transport(), "threads") == 0; }

  /// The ordinal for this rank, `usual` unless ranks need GPUs of their own; or what all ranks find wrong with what they have.
  Result<int> place(comm::World &world, Collectives path, int usual) const {
    std::vector<int64_t> everyone(static_cast<size_t>(world.size()));
    std::iota(everyone.begin(), everyone.end(), int64_t{0});
    Result<comm::Group *> group = world.group(everyone);
    if (!group)
      return group.error();
    Result<std::vector<GpuIdentity>> identities = identify();
    if (!identities)
      return identities.error();
    Introduction own{visibleGpus(*identities), static_cast<int64_t>(path), std::getenv("NCCL_HOSTID") != nullptr};
    auto all = comm::gather(**group, own, {"which GPUs there are", ""});
    if (!all)
      return all.error();
    std::vector<VisibleGpus> seen;
    bool areNamed = true;
    for (size_t rank = 0; rank < all->size(); ++rank) {
      if ((*all)[rank].path != (*all)[0].path)
        return Error{ExitCode::NoResource,
                     fmt::format("rank 0 would communicate {}, rank {} {}", pathText((*all)[0].path), rank,
                                 pathText((*all)[rank].path)),
                     "have the same libraries on all hosts, or say which way with --collectives"};
      seen.push_back((*all)[rank].gpus);
      areNamed &= (*all)[rank].isNamed != 0;
    }
    if (path == Collectives::Local) {
      if (world.localSize() != world.size())
        return Error{ExitCode::Usage, "--collectives local is for ranks on one GPU, and these are on several hosts",
                     "use --collectives host"};
      auto first = comm::gather(**group, (*identities)[0], {"which GPUs are taken", ""});
      if (!first)
        return first.error();
      if (Status same = checkSame(*first); !same)
        return same.error();
      return 0;
    }
    if (path != Collectives::Nccl || areNamed)
      return usual;
    Result<int> chosen = chooseGpu(seen, world.rank());
    if (!chosen)
      return chosen;
    auto taken = comm::gather(**group, (*identities)[static_cast<size_t>(*chosen)], {"which GPUs are taken", ""});
    if (!taken)
      return taken.error();
    if (Status distinct = checkDistinct(*taken); !distinct)
      return distinct.error();
    return chosen;
  }

  static const char *pathText(int64_t path) {
    switch (static_cast<Collectives>(path)) {
    case Collectives::Nccl: return "by NCCL";
    case Collectives::Local: return "by kernels of one GPU";
    default: return "through the host";
    }
  }

  Result<std::vector<GpuIdentity>> identify() const {
    const DriverTable &driver = tables.driver;
    std::vector<GpuIdentity> identities(gpus.size());
    for (size_t i = 0; i < gpus.size(); ++i) {
      CUdevice device = 0;
      CUuuid uuid;
      MSC_CUDA(cuDeviceGet, &device, static_cast<int>(i));
      MSC_CUDA(cuDeviceGetUuid, &uuid, device);
      std::memcpy(identities[i].data(), uuid.bytes, sizeof(uuid.bytes));
    }
    return identities;
  }

  Result<std::shared_ptr<Gpu>> gpuOf(int ordinal) {
    std::lock_guard lock(mutex);
    std::shared_ptr<Gpu> &gpu = gpus[static_cast<size_t>(ordinal)];
    if (gpu)
      return gpu;
    Result<std::shared_ptr<Gpu>> opened = Gpu::open(tables, ordinal);
    if (opened)
      gpu = *opened;
    return opened;
  }

  Tables tables;
  CudaOptions options;
  std::shared_ptr<Choices> choices; ///< null: nothing is tuned
  std::mutex mutex;
  std::vector<std::shared_ptr<Gpu>> gpus; ///< null: not opened
};

constexpr const char *showOne = "CUDA_VISIBLE_DEVICES says which GPUs a process sees; run on CPUs with --device cpu";

} // namespace

Result<std::unique_ptr<Backend>> createBackend(const Tables &tables, const CudaOptions &options) {
  const DriverTable &driver = tables.driver;
  if (CUresult result = driver.cuInit(0); result != CUDA_SUCCESS)
    return Error{ExitCode::NoResource, "no GPU: " + failed(driver, "cuInit", result).message, showOne};
  int version = 0, count = 0;
  MSC_CUDA(cuDriverGetVersion, &version);
  if (version / 1000 < CUDA_VERSION / 1000)
    return Error{ExitCode::NoResource,
                 fmt::format("the driver is of CUDA {}.{}, this build needs CUDA {}", version / 1000, version % 1000 / 10,
                             CUDA_VERSION / 1000),
                 "install a newer driver, or run on CPUs with --device cpu"};
  if (options.collectives == Collectives::Nccl && !options.nccl)
    return Error{ExitCode::NoResource, options.ncclProblem, "leave out --collectives nccl"};
  MSC_CUDA(cuDeviceGetCount, &count);
  if (count < 1)
    return Error{ExitCode::NoResource, "no GPU: the driver shows none", showOne};
  std::shared_ptr<Choices> choices;
  if (!options.tuning.empty()) {
    Result<std::shared_ptr<Choices>> opened = Choices::open(options.tuning);
    if (!opened)
      return opened.error();
    choices = std::move(*opened);
  }
  return std::unique_ptr<Backend>(new CudaBackend(tables, options, std::move(choices), count));
}

} // namespace msc::device::cuda
