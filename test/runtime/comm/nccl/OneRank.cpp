#include "test/runtime/comm/nccl/OneRank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace msc::comm::nccl::test {
namespace {

constexpr size_t count = 1000; // f32

class Probe {
public:
  Probe(const Table &nccl, const device::cuda::DriverTable &driver) : nccl(nccl), driver(driver) {}

  ~Probe() {
    if (executable)
      driver.cuGraphExecDestroy(executable);
    if (graph)
      driver.cuGraphDestroy(graph);
    for (Handle communicator : {part, whole})
      if (communicator)
        (void)abort(communicator);
    for (void *memory : memories)
      if (memory)
        nccl.ncclMemFree(memory);
    if (host)
      driver.cuMemFreeHost(host);
    if (stream)
      driver.cuStreamDestroy(stream);
  }

  Status run() {
    UniqueId id;
    Config config;
    config.blocking = 0;
    // In order: each needs what the one before it made.
    for (const std::function<Status()> &step : std::initializer_list<std::function<Status()>>{
             [&] { return called("ncclGetUniqueId", nccl.ncclGetUniqueId(&id)); },
             [&] { return settled("ncclCommInitRankConfig", nccl.ncclCommInitRankConfig(&whole, 1, id, 0, &config), &whole); },
             [&] { return settled("ncclCommSplit", nccl.ncclCommSplit(whole, 0, 0, &part, &config), &whole); },
             [&] { return settled("ncclCommSplit", Code::Success, &part); },
             [&] { return allocate(); },
             [&] { return capture(); },
             [&] { return launch(); },
             [&] { return launch(); },
             [&] { return compare(); },
             [&] { return settled("ncclCommFinalize", nccl.ncclCommFinalize(part), &part); },
             [&] { return called("ncclCommDestroy", nccl.ncclCommDestroy(std::exchange(part, nullptr))); },
             [&] { return abort(std::exchange(whole, nullptr)); }})
      if (Status status = step(); !status)
        return status;
    return {};
  }

private:
  Status called(const char *function, Code code) const {
    if (code == Code::Success || code == Code::InProgress)
      return {};
    return Error{ExitCode::Failed, fmt::format("{} returned {} ({})", function, static_cast<int>(code), nccl.ncclGetErrorString(code)), ""};
  }
  /// Waits until what was called has come to its end on the communicator, for 30 s at most.
  Status settled(const char *function, Code code, const Handle *communicator) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (code == Code::Success || code == Code::InProgress) {
      Code state = Code::InProgress;
      if (*communicator)
        code = nccl.ncclCommGetAsyncError(*communicator, &state);
      if (*communicator && code == Code::Success && state != Code::InProgress)
        return called(function, state);
      if (std::chrono::steady_clock::now() > end)
        return Error{ExitCode::Failed, fmt::format("{} has not come to its end after 30 s", function), ""};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return called(function, code);
  }
  /// As the communicator does: in a group, which waits for no other.
  Status abort(Handle communicator) const {
    if (Status status = called("ncclGroupStart", nccl.ncclGroupStart()); !status)
      return status;
    const Code aborted = nccl.ncclCommAbort(communicator), ended = nccl.ncclGroupEnd();
    Status status = called("ncclCommAbort", aborted);
    return status ? called("ncclGroupEnd", ended) : status;
  }

  Status allocate() {
    for (void *&memory : memories)
      if (Status status = called("ncclMemAlloc", nccl.ncclMemAlloc(&memory, count * sizeof(float))); !status)
        return status;
    MSC_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    void *memory = nullptr;
    MSC_CUDA(cuMemHostAlloc, &memory, count * sizeof(float), 0);
    host = static_cast<float *>(memory);
    for (size_t i = 0; i < count; ++i)
      host[i] = static_cast<float>(i) / 7;
    MSC_CUDA(cuMemcpyHtoDAsync, addressOf(memories[0]), host, count * sizeof(float), stream);
    MSC_CUDA(cuStreamSynchronize, stream);
    return {};
  }

  /// memories[0] -> [1] -> [2] -> [3].
  Status capture() {
    MSC_CUDA(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    Status issued = issue();
    const CUresult ended = driver.cuStreamEndCapture(stream, &graph);
    if (!issued)
      return issued;
    if (Status status = check(driver, "cuStreamEndCapture", ended); !status)
      return status;
    MSC_CUDA(cuGraphInstantiateWithFlags, &executable, graph, 0);
    return {};
  }
  Status issue() {
    const Code reduced = nccl.ncclAllReduce(memories[0], memories[1], count, DataType::Float32, Reduction::Sum, part, stream);
    if (Status status = settled("ncclAllReduce", reduced, &part); !status)
      return status;
    const Code gathered = nccl.ncclAllGather(memories[1], memories[2], count, DataType::Float32, part, stream);
    if (Status status = settled("ncclAllGather", gathered, &part); !status)
      return status;
    if (Status status = called("ncclGroupStart", nccl.ncclGroupStart()); !status)
      return status;
    const Code scattered = nccl.ncclReduceScatter(memories[2], memories[3], count, DataType::Float32, Reduction::Max, part, stream);
    const Code ended = nccl.ncclGroupEnd(); // always: this thread stays in the group otherwise
    if (Status status = called("ncclReduceScatter", scattered); !status)
      return status;
    return settled("ncclGroupEnd", ended, &part);
  }

  Status launch() {
    MSC_CUDA(cuGraphLaunch, executable, stream);
    MSC_CUDA(cuStreamSynchronize, stream);
    return {};
  }

  Status compare() {
    const std::vector<float> sent(host, host + count);
    for (size_t at = 1; at < memories.size(); ++at) {
      std::fill_n(host, count, -1.0f);
      MSC_CUDA(cuMemcpyDtoHAsync, host, addressOf(memories[at]), count * sizeof(float), stream);
      MSC_CUDA(cuStreamSynchronize, stream);
      if (!std::equal(sent.begin(), sent.end(), host))
        return Error{ExitCode::Failed, fmt::format("collective {} of 3 does not give one rank's numbers back", at), ""};
    }
    return {};
  }
  static CUdeviceptr addressOf(void *memory) { return reinterpret_cast<CUdeviceptr>(memory); }

  const Table &nccl;
  const device::cuda::DriverTable &driver;
  Handle whole = nullptr, part = nullptr;
  std::array<void *, 4> memories{};
  CUstream stream = nullptr;
  float *host = nullptr; ///< pinned
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
};

} // namespace

Status probeOneRank(const Table &nccl, const device::cuda::DriverTable &driver) { return Probe(nccl, driver).run(); }

} // namespace msc::comm::nccl::test
