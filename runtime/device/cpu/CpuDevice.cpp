#include "runtime/device/cpu/CpuDevice.h"

#include "runtime/comm/Region.h"
#include "runtime/device/ElementBits.h"
#include "runtime/device/cpu/MatMul.h"
#include "runtime/device/cpu/calls/Kernels.h"
#include "runtime/device/cpu/WorkerPool.h"
#include "runtime/plan/PlanIndex.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <sys/mman.h>
#include <unordered_map>
#include <utility>

namespace msc::device {
namespace {

constexpr size_t alignment = 64;
/// Kernels take at most so many pointers; the plan checker knows the same number.
constexpr size_t mostArguments = 48;

/// Bytes read and written that make one task of a copy: small enough to balance, large enough to hide the hand-over.
constexpr int64_t copyTaskBytes = 256 * 1024;
constexpr int64_t mostCopyTasks = 64;

/// Anonymous zeroed memory.
class Mapping {
public:
  Mapping() = default;
  explicit Mapping(size_t bytes) : size(bytes) {
    base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      base = nullptr;
    else
      ::madvise(base, bytes, MADV_HUGEPAGE); // advice only
  }
  ~Mapping() {
    if (base)
      ::munmap(base, size);
  }
  Mapping(Mapping &&other) noexcept : base(std::exchange(other.base, nullptr)), size(other.size) {}
  Mapping &operator=(Mapping &&other) noexcept {
    std::swap(base, other.base);
    std::swap(size, other.size);
    return *this;
  }
  std::byte *data() const { return static_cast<std::byte *>(base); }
  size_t bytes() const { return base ? size : 0; }

private:
  void *base = nullptr;
  size_t size = 0;
};

/// The working memory of an operation: a block for all tasks, and one for each worker.
class Workspace {
public:
  Workspace(ScratchSize size, int workers) : blocks(static_cast<size_t>(workers) + 1, {nullptr, aligned(size.worker)}) {
    blocks.front().bytes = aligned(size.shared);
  }

  size_t bytes() const { return blocks.front().bytes + (blocks.size() - 1) * blocks.back().bytes; }
  /// Of blocks that have no place.
  size_t bytesLeft() const {
    size_t left = 0;
    for (const Block &block : blocks)
      left += block.place ? 0 : block.bytes;
    return left;
  }

  /// Puts blocks where there is room.
  void place(std::vector<std::span<std::byte>> free) {
    for (std::span<std::byte> &range : free)
      range = range.subspan(std::min(range.size(), -reinterpret_cast<uintptr_t>(range.data()) & (alignment - 1)));
    for (Block &block : blocks)
      for (std::span<std::byte> &range : free)
        if (block.bytes <= range.size()) {
          block.place = range.data();
          range = range.subspan(block.bytes);
          break;
        }
  }

  /// In memory that all operations share, if that is large enough: it is in the caches. Else each block at its place, and the others there.
  Scratch in(const Mapping &common) {
    const bool isSmall = bytes() <= common.bytes();
    std::byte *next = common.data();
    for (Block &block : blocks)
      if (isSmall || !block.place)
        block.place = std::exchange(next, next + block.bytes);
    Scratch scratch{{}, blocks.front().place};
    for (size_t i = 1; i < blocks.size(); ++i)
      scratch.workers.push_back(blocks[i].place);
    return scratch;
  }

private:
  struct Block {
    std::byte *place = nullptr;
    size_t bytes = 0;
  };
  std::vector<Block> blocks;

  static size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
};

Error outOfMemory(const char *what, uint64_t bytes) {
  return {ExitCode::NoResource, fmt::format("cannot allocate {} bytes for {}", bytes, what), "use more devices"};
}

using Caller = void (*)(void *function, std::byte *const *arguments, int64_t begin, int64_t end);

template <size_t... I> Caller callerOf(std::index_sequence<I...>) {
  return [](void *function, std::byte *const *arguments, int64_t begin, int64_t end) {
    using Kernel = void (*)(decltype((void)I, static_cast<std::byte *>(nullptr))..., int64_t, int64_t);
    reinterpret_cast<Kernel>(function)(arguments[I]..., begin, end);
  };
}
template <size_t... N> std::array<Caller, sizeof...(N)> makeCallers(std::index_sequence<N...>) {
  return {callerOf(std::make_index_sequence<N>())...};
}

/// A call of a generated kernel, cut into its tasks. Pieces of a cut row are tasks, too, behind which the kernel is called once more.
class Launch final : public ScratchOperation {
public:
  Launch(const LaunchSpec &spec, void *function, Caller caller, WorkerPool &pool)
      : function(function), caller(caller), arguments(spec.arguments), pool(pool), scratchBytes(spec.pieceScratch) {
    for (int64_t piece = 0; piece < spec.pieces; ++piece)
      ranges.push_back({piece, piece + 1});
    if (spec.pieces > 0) {
      arguments.push_back(nullptr); // setScratch
      last = {spec.pieces, spec.pieces + 1};
      return;
    }
    for (int64_t task = 0; task < spec.tasks; ++task) {
      auto bound = [&](int64_t value) { return value == spec.end ? value : value / spec.unit * spec.unit; };
      Range piece = pieceOf(spec.end, task, spec.tasks);
      piece = {bound(piece.begin), bound(piece.end)};
      if (piece.size() > 0)
        ranges.push_back(piece);
    }
  }
  Status run() override {
    pool.run(
        tasks(), [](void *self, int64_t task, int) { static_cast<Launch *>(self)->run(task); }, this);
    if (isCut())
      caller(function, arguments.data(), last.begin, last.end);
    return {};
  }
  int64_t tasks() const { return std::ssize(ranges); }
  /// Something follows behind the tasks.
  bool isCut() const { return last.size() != 0; }
  ScratchSize scratchSize() const override { return {.shared = scratchBytes}; }
  void setScratch(const Scratch &scratch) override {
    if (isCut())
      arguments.back() = scratch.shared;
  }
  void run(int64_t task) const { caller(function, arguments.data(), ranges[task].begin, ranges[task].end); }

private:
  void *function;
  Caller caller;
  std::vector<std::byte *> arguments;
  std::vector<Range> ranges; ///< of tasks
  Range last;                ///< behind all tasks
  WorkerPool &pool;
  size_t scratchBytes;
};

/// Entries in their order. Kernels in a row of which none uses what another one writes are one call of all threads: optimizers update many
/// parameters so, most of which are one task.
class Together final : public Sequence {
public:
  /// `launches`: those operations that are some.
  Together(const std::vector<SequenceEntry> &entries, const std::unordered_map<const Operation *, const Launch *> &launches, WorkerPool &pool) : pool(pool) {
    for (const SequenceEntry &entry : entries) {
      const auto launch = launches.find(entry.operation);
      if (launch == launches.end() || groups.empty() || !groups.back().takes(entry))
        groups.emplace_back();
      groups.back().add(entry, launch == launches.end() ? nullptr : launch->second);
    }
  }

  Status run(size_t &failed) override {
    failed = 0;
    for (Group &group : groups) {
      if (group.entries == 1) {
        if (Status status = group.operation->run(); !status)
          return status;
      } else {
        pool.run(
            std::ssize(group.tasks),
            [](void *self, int64_t task, int) {
              const auto &[launch, piece] = static_cast<Group *>(self)->tasks[task];
              launch->run(piece);
            },
            &group);
      }
      failed += group.entries;
    }
    return {};
  }

private:
  struct Group {
    size_t entries = 0;
    Operation *operation = nullptr;                       ///< of the first
    std::vector<std::pair<const Launch *, int64_t>> tasks; ///< of all; none: it is no kernel
    std::vector<MemoryRange> reads, writes;

    bool takes(const SequenceEntry &entry) const {
      constexpr size_t mostEntries = 64; // all are compared
      return !tasks.empty() && entries < mostEntries && !overlap(writes, entry.reads) && !overlap(writes, entry.writes) && !overlap(reads, entry.writes);
    }
    void add(const SequenceEntry &entry, const Launch *launch) {
      operation = entries++ == 0 ? entry.operation : operation;
      for (int64_t task = 0; launch && task < launch->tasks(); ++task)
        tasks.emplace_back(launch, task);
      reads.insert(reads.end(), entry.reads.begin(), entry.reads.end());
      writes.insert(writes.end(), entry.writes.begin(), entry.writes.end());
    }
    static bool overlap(const std::vector<MemoryRange> &some, const std::vector<MemoryRange> &others) {
      return std::ranges::any_of(some, [&](const MemoryRange &a) {
        return std::ranges::any_of(others, [&](const MemoryRange &b) { return a.begin < b.end && b.begin < a.end; });
      });
    }
  };
  std::vector<Group> groups;
  WorkerPool &pool;
};

/// Elements from one strided region to another, cut into tasks of equal length.
class Copy final : public Operation {
public:
  Copy(const CopySpec &spec, WorkerPool &pool) : spec(spec), count(spec.from.count()), pool(pool) {
    int64_t bytes = 2 * count * static_cast<int64_t>(spec.elementBytes); // read and written
    tasks = std::clamp<int64_t>(bytes / copyTaskBytes, 1, mostCopyTasks);
  }
  Status run() override {
    pool.run(
        tasks,
        [](void *self, int64_t task, int) {
          auto *copy = static_cast<Copy *>(self);
          const CopySpec &spec = copy->spec;
          Range piece = pieceOf(copy->count, task, copy->tasks);
          comm::copyPart(spec.target, spec.to, spec.source, spec.from, piece.begin, piece.end, spec.elementBytes, false);
        },
        this);
    return {};
  }

private:
  CopySpec spec;
  int64_t count, tasks = 1;
  WorkerPool &pool;
};

class Fill final : public Operation {
public:
  explicit Fill(const FillSpec &spec) : spec(spec), size(elementBytes(spec.type)), bits(elementBits(spec.type, spec.value)) {}
  Status run() override {
    if (bits == 0)
      std::memset(spec.target, 0, spec.count * size);
    else if (size == 4)
      std::fill_n(reinterpret_cast<uint32_t *>(spec.target), spec.count, static_cast<uint32_t>(bits));
    else if (size == 8)
      std::fill_n(reinterpret_cast<uint64_t *>(spec.target), spec.count, bits);
    else if (size == 2)
      std::fill_n(reinterpret_cast<uint16_t *>(spec.target), spec.count, static_cast<uint16_t>(bits));
    else
      std::memset(spec.target, static_cast<int>(bits & 0xff), spec.count);
    return {};
  }

private:
  FillSpec spec;
  size_t size;
  uint64_t bits;
};

class CpuDevice final : public Device {
public:
  CpuDevice(std::shared_ptr<KernelLibrary> kernels, const CpuOptions &options)
      : kernels(std::move(kernels)), pool(options.threads, options.processors), sharedWorkspace(options.sharedWorkspace),
        callers(makeCallers(std::make_index_sequence<mostArguments + 2>())) {}

  const char *name() const override { return "cpu"; }

  Result<std::byte *> allocateArena(uint64_t bytes) override {
    if (!pool.status())
      return pool.status().error();
    arena = Mapping(std::max<uint64_t>(bytes, alignment));
    if (!arena.data())
      return outOfMemory("the arena", bytes);
    return arena.data();
  }

  Result<std::unique_ptr<Operation>> prepareLaunch(const LaunchSpec &spec) override {
    void *function = kernels->find(spec.symbol);
    if (!function)
      return Error{ExitCode::BadFile, fmt::format("the plan's machine code has no kernel '{}'", spec.symbol), ""};
    if (spec.arguments.size() > mostArguments)
      return Error{ExitCode::BadFile, fmt::format("kernel '{}' takes {} arguments", spec.symbol, spec.arguments.size()),
                   ""};
    auto made = std::make_unique<Launch>(spec, function, callers[spec.arguments.size() + (spec.pieces > 0 ? 1 : 0)], pool);
    if (made->isCut())
      sharing.push_back(made.get());
    else
      launches[made.get()] = made.get();
    return std::unique_ptr<Operation>(std::move(made));
  }
  Result<std::unique_ptr<Operation>> prepareMatMul(const MatMulSpec &spec) override {
    auto made = device::prepareMatMul(spec, pool);
    if (!made)
      return made.error();
    sharing.push_back(made->get());
    return std::unique_ptr<Operation>(std::move(*made));
  }
  Result<std::unique_ptr<Operation>> prepareCall(const CallSpec &spec) override {
    if (Status status = checkCall(spec); !status)
      return status.error();
    auto prepare = calls::table().find(spec.kernel);
    if (prepare == calls::table().end())
      return Error{ExitCode::BadFile, fmt::format("the device {} has no kernel '{}'", name(), spec.kernel), ""};
    auto made = prepare->second(spec, pool);
    if (!made)
      return made.error();
    sharing.push_back(made->get());
    return std::unique_ptr<Operation>(std::move(*made));
  }
  Result<std::unique_ptr<Operation>> prepareCopy(const CopySpec &spec) override {
    return std::unique_ptr<Operation>(new Copy(spec, pool));
  }
  Result<std::unique_ptr<Operation>> prepareFill(const FillSpec &spec) override {
    return std::unique_ptr<Operation>(new Fill(spec));
  }

  Status finishPreparation(const FreeRanges &freeWhile) override {
    size_t common = 0;
    std::vector<Workspace> workspaces;
    for (ScratchOperation *operation : sharing) {
      Workspace &made = workspaces.emplace_back(operation->scratchSize(), pool.size());
      if (freeWhile && made.bytes() > sharedWorkspace)
        made.place(freeWhile(*operation));
      common = std::max(common, made.bytesLeft());
    }
    if (common > 0) {
      memory = Mapping(common);
      if (!memory.data())
        return outOfMemory("the workspace of library kernels", common);
    }
    for (size_t i = 0; i < sharing.size(); ++i)
      sharing[i]->setScratch(workspaces[i].in(memory));
    return {};
  }

  std::unique_ptr<Sequence> makeSequence(std::vector<SequenceEntry> entries) override {
    if (pool.size() == 1)
      return runInOrder(std::move(entries));
    return std::make_unique<Together>(entries, launches, pool);
  }

  Status upload(std::byte *target, const void *source, size_t bytes) override {
    if (bytes != 0)
      std::memcpy(target, source, bytes);
    return {};
  }
  Status download(void *target, const std::byte *source, size_t bytes) override {
    if (bytes != 0)
      std::memcpy(target, source, bytes);
    return {};
  }
  Status synchronize() override { return {}; }
  uint64_t allocatedBytes() const override { return arena.bytes() + memory.bytes(); }

private:
  std::shared_ptr<KernelLibrary> kernels;
  WorkerPool pool;
  size_t sharedWorkspace;
  std::array<Caller, mostArguments + 2> callers; ///< the last for a kernel with scratch memory
  Mapping arena, memory; ///< of buffers, of operations at work
  std::unordered_map<const Operation *, const Launch *> launches; ///< owned by whoever prepared them; used only until sequences are made
  std::vector<ScratchOperation *> sharing; ///< likewise, until finishPreparation
};

/// First number in the line of `path` that starts with `key` ("" = first line); none if there is no such file or number.
std::optional<uint64_t> numberIn(const std::string &path, const std::string &key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0)
      continue;
    size_t digit = line.find_first_of("0123456789");
    if (digit == std::string::npos)
      return std::nullopt;
    return std::strtoull(line.c_str() + digit, nullptr, 10);
  }
  return std::nullopt;
}

double gibibytes(double bytes) { return bytes / (1024.0 * 1024.0 * 1024.0); }

} // namespace

CpuOptions shareOfHost(int threadsPerRank, int64_t localRank, int64_t localSize) {
  std::vector<int> all = usableProcessors();
  auto count = static_cast<int64_t>(std::max<size_t>(all.size(), 1));
  CpuOptions options;
  options.threads = threadsPerRank > 0 ? threadsPerRank : static_cast<int>(std::max<int64_t>(1, count / localSize));
  // A run that leaves processors free leaves their choice to the kernel: others may run here too.
  if (!all.empty() && options.threads * localSize >= count)
    for (int i = 0; i < options.threads; ++i)
      options.processors.push_back(all[(localRank * options.threads + i) % count]);
  return options;
}

std::unique_ptr<Device> createCpuDevice(std::shared_ptr<KernelLibrary> kernels, const CpuOptions &options) {
  return std::make_unique<CpuDevice>(std::move(kernels), options);
}

uint64_t hostMemoryBytes() {
  uint64_t total = numberIn("/proc/meminfo", "MemTotal:").value_or(0) * 1024;
  if (auto limit = numberIn("/sys/fs/cgroup/memory.max", ""))
    total = total == 0 ? *limit : std::min<uint64_t>(total, *limit);
  return total;
}

Status checkHostMemory(uint64_t bytes, int64_t ranks) {
  std::optional<uint64_t> available = numberIn("/proc/meminfo", "MemAvailable:");
  double free = available ? static_cast<double>(*available) * 1024.0 : 1e300;
  if (auto limit = numberIn("/sys/fs/cgroup/memory.max", "")) {
    double used = static_cast<double>(numberIn("/sys/fs/cgroup/memory.current", "").value_or(0));
    free = std::min(free, static_cast<double>(*limit) - used);
  }
  double needed = static_cast<double>(bytes) * static_cast<double>(ranks);
  if (needed <= free)
    return {};
  return Error{ExitCode::NoResource,
               fmt::format("the plan takes {:.2f} GiB per rank, {:.2f} GiB for {} on this host, but {:.2f} GiB are free",
                           gibibytes(static_cast<double>(bytes)), gibibytes(needed),
                           ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks), gibibytes(free)),
               "use more hosts, or more devices"};
}

} // namespace msc::device
