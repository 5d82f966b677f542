#include "runtime/device/cuda/PeerAccess.h"

#include "runtime/comm/Gather.h"

#include <condition_variable>
#include <cstring>
#include <mutex>

namespace msc::device::cuda {
namespace {

using comm::OperationLabel;

const OperationLabel ranksOfGpu{"ranks of the GPU", ""};

/// What the ranks of the process share. Who leaves waits for all others that came: their work may still read its memory.
class Hub {
public:
  void enter() {
    std::lock_guard lock(mutex);
    ++inside;
  }
  /// False: some have not left in time.
  bool leave() {
    constexpr std::chrono::seconds limit{10};
    std::unique_lock lock(mutex);
    if (--inside == 0)
      allLeft.notify_all();
    return allLeft.wait_for(lock, limit, [&] { return inside == 0; });
  }

private:
  std::mutex mutex;
  std::condition_variable allLeft;
  int64_t inside = 0;
};

/// Streams wait for the events of the other members. Of two events in turn, each is recorded before the hosts meet and waited for before they meet
/// again: nobody records it in between.
class EventMeeting final : public StreamMeeting {
public:
  EventMeeting(const DriverTable &driver, comm::Group &hosts) : driver(driver), hosts(hosts) {}
  ~EventMeeting() override {
    for (CUevent event : own)
      if (event)
        driver.cuEventDestroy(event);
  }
  Status open() {
    for (CUevent &event : own)
      MSC_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    auto gathered = comm::gather(hosts, own, {"events of the group", ""});
    if (!gathered)
      return gathered.error();
    events = std::move(*gathered);
    return {};
  }

  Status meet(CUstream stream, const OperationLabel &label) override {
    MSC_CUDA(cuEventRecord, own[turn], stream);
    if (Status status = hosts.barrier(label); !status)
      return status;
    for (size_t member = 0; member < events.size(); ++member)
      if (static_cast<int>(member) != hosts.rank())
        MSC_CUDA(cuStreamWaitEvent, stream, events[member][turn], 0);
    turn = 1 - turn;
    return {};
  }

private:
  const DriverTable &driver;
  comm::Group &hosts;
  std::array<CUevent, 2> own = {};
  std::vector<std::array<CUevent, 2>> events; ///< by member
  size_t turn = 0;
};

/// Addresses are the same for all.
class ThreadAccess final : public PeerAccess {
public:
  ThreadAccess(Shared &shared, comm::Group &all) : shared(shared), all(all) {}
  ~ThreadAccess() override { leave(); }

  /// Everybody enters the hub of rank 0.
  Status open() {
    auto first = std::make_shared<Hub>();
    auto hubs = comm::gather(all, &first, ranksOfGpu);
    if (!hubs)
      return hubs.error();
    hub = *(*hubs)[0];
    hub->enter();
    return all.barrier(ranksOfGpu);
  }

  Result<PeerAddress> tell(const void *address) override { return PeerAddress{{}, reinterpret_cast<uint64_t>(address)}; }
  Result<std::byte *> find(const PeerAddress &told, int64_t) override { return reinterpret_cast<std::byte *>(told.offset); }
  Result<std::unique_ptr<StreamMeeting>> meeting(comm::Group &hosts) override {
    auto made = std::make_unique<EventMeeting>(shared.driver, hosts);
    if (Status status = made->open(); !status)
      return status.error();
    return std::unique_ptr<StreamMeeting>(std::move(made));
  }
  Status close() override {
    if (Status status = all.barrier({"end of the run", ""}); !status)
      return status;
    leave();
    return {};
  }
  bool leave() override {
    if (hub)
      haveAllLeft = hub->leave();
    hub.reset();
    return haveAllLeft;
  }

private:
  Shared &shared;
  comm::Group &all;
  std::shared_ptr<Hub> hub; ///< null: not entered, or left
  bool haveAllLeft = true;
};

/// Hosts wait for their own streams and meet: no stream ever waits for another process, whose end would leave it waiting.
class WaitingMeeting final : public StreamMeeting {
public:
  WaitingMeeting(Shared &shared, comm::Group &hosts) : shared(shared), hosts(hosts) {}
  Status meet(CUstream stream, const OperationLabel &label) override {
    if (Status status = shared.wait(stream); !status)
      return status;
    return hosts.barrier(label);
  }

private:
  Shared &shared;
  comm::Group &hosts;
};

/// Allocations of other processes are opened once each. (CUDA driver API, "Memory Management", cuIpcGetMemHandle and those behind it: handles are of whole
/// allocations, not for the process that made them, and closed before the memory is freed.)
class ProcessAccess final : public PeerAccess {
public:
  ProcessAccess(Shared &shared, comm::Group &all) : driver(shared.driver), all(all), shared(shared) {}
  ~ProcessAccess() override { leave(); }

  Result<PeerAddress> tell(const void *address) override {
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    CUdeviceptr begin = 0;
    size_t bytes = 0;
    MSC_CUDA(cuMemGetAddressRange, &begin, &bytes, at);
    auto known = told.find(begin);
    if (known == told.end()) {
      CUipcMemHandle handle;
      if (Status got = check(driver, "cuIpcGetMemHandle", driver.cuIpcGetMemHandle(&handle, begin)); !got)
        return unreachable(got.error(), all.rank());
      known = told.emplace(begin, Allocation()).first;
      std::memcpy(known->second.data(), &handle, sizeof(handle));
    }
    return PeerAddress{known->second, at - begin};
  }

  Result<std::byte *> find(const PeerAddress &address, int64_t rank) override {
    if (rank == all.rank()) {
      for (const auto &[begin, allocation] : told)
        if (allocation == address.allocation)
          return reinterpret_cast<std::byte *>(begin + address.offset);
    }
    auto known = opened.find(address.allocation);
    if (known == opened.end()) {
      CUipcMemHandle handle;
      std::memcpy(&handle, address.allocation.data(), sizeof(handle));
      CUdeviceptr begin = 0;
      Status got = check(driver, "cuIpcOpenMemHandle",
                         driver.cuIpcOpenMemHandle(&begin, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
      if (!got)
        return unreachable(got.error(), rank);
      known = opened.emplace(address.allocation, begin).first;
    }
    return reinterpret_cast<std::byte *>(known->second + address.offset);
  }

  Result<std::unique_ptr<StreamMeeting>> meeting(comm::Group &hosts) override {
    return std::unique_ptr<StreamMeeting>(new WaitingMeeting(shared, hosts));
  }

  Status close() override {
    leave();
    if (Status status = all.barrier({"end of the run", ""}); !status)
      return status;
    told.clear();
    return {};
  }
  /// Nobody waits for the other processes: after a failure some are gone.
  bool leave() override {
    for (const auto &[allocation, begin] : opened)
      driver.cuIpcCloseMemHandle(begin);
    opened.clear();
    return told.empty();
  }

private:
  using Allocation = decltype(PeerAddress::allocation);

  static Error unreachable(const Error &cause, int64_t rank) {
    return {ExitCode::NoResource, fmt::format("processes cannot reach the GPU memory of rank {}: {}", rank, cause.message),
            "use --collectives host, or give all ranks one namespace of processes and one of IPC where they run in containers"};
  }

  const DriverTable &driver;
  comm::Group &all;
  Shared &shared;
  std::map<CUdeviceptr, Allocation> told;   ///< own allocations, by their beginning
  std::map<Allocation, CUdeviceptr> opened; ///< those of peers
};

} // namespace

Result<std::unique_ptr<PeerAccess>> openPeerAccess(Shared &shared, comm::Group &all, bool isOneProcess) {
  if (!isOneProcess)
    return std::unique_ptr<PeerAccess>(new ProcessAccess(shared, all));
  auto made = std::make_unique<ThreadAccess>(shared, all);
  if (Status status = made->open(); !status)
    return status.error();
  return std::unique_ptr<PeerAccess>(std::move(made));
}

} // namespace msc::device::cuda
