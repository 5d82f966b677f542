#include "runtime/device/cuda/LocalCommunicator.h"

#include "runtime/comm/Gather.h"
#include "runtime/comm/Operation.h"
#include "runtime/device/cuda/Kernels.h"

#include <condition_variable>
#include <mutex>
#include <numeric>

namespace msc::device::cuda {
namespace {

using comm::ElementType;
using comm::Message;
using comm::OperationLabel;
using comm::ReducePart;

/// What the ranks of the process share. Who leaves waits for all others that came: their work may still read its memory.
class Hub {
public:
  void enter() {
    std::lock_guard lock(mutex);
    ++inside;
  }
  void leave() {
    constexpr std::chrono::seconds limit{10};
    std::unique_lock lock(mutex);
    if (--inside == 0)
      allLeft.notify_all();
    allLeft.wait_for(lock, limit, [&] { return inside == 0; });
  }

private:
  std::mutex mutex;
  std::condition_variable allLeft;
  int64_t inside = 0;
};

/// One member's side of a group: what its stream has come to.
struct Events {
  CUevent ready = nullptr; ///< its memory may be read and written by all
  CUevent over = nullptr;  ///< it has read and written what it had to
};

class LocalGroup;

/// What a rank brings into a collective, for its peers to see while it is prepared; and what it does itself.
class LocalCall final : public comm::StreamCall {
public:
  LocalCall(LocalGroup &group, OperationLabel label) : group(group), label(std::move(label)) {}
  Status enqueue(comm::StreamHandle stream) override;

  LocalGroup &group;
  OperationLabel label;
  std::vector<ReducePart> parts;
  std::vector<Message> sends;
  std::vector<std::unique_ptr<Operation>> operations;
};

class LocalGroup final : public comm::StreamGroup {
public:
  LocalGroup(Shared &shared, comm::Group &hosts) : shared(shared), driver(shared.driver), hosts(hosts) {}
  ~LocalGroup() override {
    for (CUevent event : {own.ready, own.over})
      if (event)
        driver.cuEventDestroy(event);
  }
  Status open() {
    MSC_CUDA(cuEventCreate, &own.ready, CU_EVENT_DISABLE_TIMING);
    MSC_CUDA(cuEventCreate, &own.over, CU_EVENT_DISABLE_TIMING);
    auto gathered = comm::gather(hosts, own, {"events of the group", ""});
    if (!gathered)
      return gathered.error();
    events = std::move(*gathered);
    return {};
  }

  int rank() const override { return hosts.rank(); }
  int size() const override { return hosts.size(); }
  Prepared prepareAllReduce(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                            const OperationLabel &label) override;
  Prepared prepareReduceScatter(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                const OperationLabel &label) override;
  Prepared prepareAllGather(const void *source, void *target, int64_t count, ElementType type,
                            const OperationLabel &label) override;
  Prepared prepareExchange(std::vector<Message> sends, std::vector<Message> receives, ElementType type,
                           const OperationLabel &label) override;

  /// `body` puts work on `stream` that may read what all members had written before, and is over before any of them goes on.
  Status together(CUstream stream, const OperationLabel &label, const std::function<Status()> &body) {
    MSC_CUDA(cuEventRecord, own.ready, stream);
    if (Status status = meet(stream, &Events::ready, label); !status)
      return status;
    if (Status status = body(); !status)
      return status;
    MSC_CUDA(cuEventRecord, own.over, stream);
    return meet(stream, &Events::over, label);
  }

private:
  using Peers = std::vector<const LocalCall *>;

  /// An event is recorded before the hosts meet and waited for before they meet again: nobody records it in between.
  Status meet(CUstream stream, CUevent Events::*event, const OperationLabel &label) {
    if (Status status = hosts.barrier(label); !status)
      return status;
    for (int member = 0; member < size(); ++member)
      if (member != rank())
        MSC_CUDA(cuStreamWaitEvent, stream, events[static_cast<size_t>(member)].*event, 0);
    return {};
  }

  /// Shows `call` to the peers, and makes what this rank does out of what all of them bring.
  Prepared prepare(std::unique_ptr<LocalCall> call, const std::function<Status(const Peers &)> &make) {
    auto peers = comm::gather(hosts, static_cast<const LocalCall *>(call.get()), call->label);
    if (!peers)
      return peers.error();
    if (Status status = make(*peers); !status)
      return status.error();
    if (Status status = hosts.barrier(call->label); !status) // nobody looks at it any more
      return status.error();
    return std::unique_ptr<comm::StreamCall>(std::move(call));
  }

  /// Elements [first, first + count) of all sources to the same places of all targets.
  Status reduce(LocalCall &call, const std::vector<const void *> &sources, const std::vector<void *> &targets, int64_t first,
                int64_t count, ElementType type, ReduceKind kind);
  Status copy(LocalCall &call, const void *source, void *target, int64_t count, ElementType type);

  Shared &shared;
  const DriverTable &driver;
  comm::Group &hosts;
  Events own;
  std::vector<Events> events; ///< by member
};

Status LocalCall::enqueue(comm::StreamHandle handle) {
  Stream stream{static_cast<CUstream>(handle), 0};
  return group.together(stream.handle, label, [&] {
    for (const std::unique_ptr<Operation> &operation : operations)
      if (Status status = static_cast<StreamOperation &>(*operation).enqueue(stream); !status)
        return status;
    return Status();
  });
}

Status LocalGroup::reduce(LocalCall &call, const std::vector<const void *> &sources, const std::vector<void *> &targets,
                          int64_t first, int64_t count, ElementType type, ReduceKind kind) {
  static const std::map<ElementType, const char *> kernels{{ElementType::F32, "msc_reduce_f32"},
                                                           {ElementType::F64, "msc_reduce_f64"},
                                                           {ElementType::I32, "msc_reduce_i32"},
                                                           {ElementType::I64, "msc_reduce_i64"},
                                                           {ElementType::Bool, "msc_reduce_bool"}};
  if (Status status = comm::checkReducible(type, call.label); !status) // also without a piece: the others would wait for this rank
    return status;
  if (count == 0)
    return {};
  std::vector<int64_t> descriptor{static_cast<int64_t>(sources.size()), static_cast<int64_t>(targets.size()),
                                  static_cast<int64_t>(kind), first};
  for (const void *source : sources)
    descriptor.push_back(reinterpret_cast<int64_t>(source));
  for (void *target : targets)
    descriptor.push_back(reinterpret_cast<int64_t>(target));
  Result<CUdeviceptr> memory = shared.constant(descriptor.data(), descriptor.size() * sizeof(int64_t));
  if (!memory)
    return memory.error();
  auto made = launchOwn(shared, kernels.at(type), {*memory}, count);
  if (!made)
    return made.error();
  call.operations.push_back(std::move(*made));
  return {};
}

Status LocalGroup::copy(LocalCall &call, const void *source, void *target, int64_t count, ElementType type) {
  if (count == 0)
    return {};
  comm::Region whole{0, {count}, {1}};
  auto from = static_cast<std::byte *>(const_cast<void *>(source)), to = static_cast<std::byte *>(target);
  auto made = prepareCopy(shared, {from, to, whole, whole, comm::elementSize(type)}, 0);
  if (!made)
    return made.error();
  call.operations.push_back(std::move(*made));
  return {};
}

comm::StreamGroup::Prepared LocalGroup::prepareAllReduce(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                                         const OperationLabel &label) {
  auto call = std::make_unique<LocalCall>(*this, label);
  LocalCall &mine = *call;
  mine.parts = std::move(parts);
  return prepare(std::move(call), [&](const Peers &peers) {
    for (size_t i = 0; i < mine.parts.size(); ++i) {
      std::vector<const void *> sources;
      std::vector<void *> targets;
      for (const LocalCall *peer : peers) {
        sources.push_back(peer->parts[i].source);
        targets.push_back(peer->parts[i].target);
      }
      // This rank owns one piece of the result and writes it to all members.
      int64_t count = mine.parts[i].count, begin = rank() * count / size(), end = (rank() + 1) * count / size();
      if (Status status = reduce(mine, sources, targets, begin, end - begin, type, kind); !status)
        return status;
    }
    return Status();
  });
}

comm::StreamGroup::Prepared LocalGroup::prepareReduceScatter(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                                             const OperationLabel &label) {
  auto call = std::make_unique<LocalCall>(*this, label);
  LocalCall &mine = *call;
  mine.parts = std::move(parts);
  return prepare(std::move(call), [&](const Peers &peers) {
    for (size_t i = 0; i < mine.parts.size(); ++i) {
      int64_t block = mine.parts[i].count * static_cast<int64_t>(comm::elementSize(type)) * rank();
      std::vector<const void *> sources;
      for (const LocalCall *peer : peers)
        sources.push_back(static_cast<const std::byte *>(peer->parts[i].source) + block);
      if (Status status = reduce(mine, sources, {mine.parts[i].target}, 0, mine.parts[i].count, type, kind); !status)
        return status;
    }
    return Status();
  });
}

comm::StreamGroup::Prepared LocalGroup::prepareAllGather(const void *source, void *target, int64_t count, ElementType type,
                                                         const OperationLabel &label) {
  auto call = std::make_unique<LocalCall>(*this, label);
  LocalCall &mine = *call;
  mine.parts = {{source, target, count}};
  return prepare(std::move(call), [&](const Peers &peers) {
    size_t block = static_cast<size_t>(count) * comm::elementSize(type);
    auto to = static_cast<std::byte *>(target);
    for (size_t member = 0; member < peers.size(); ++member)
      if (Status status = copy(mine, peers[member]->parts[0].source, to + member * block, count, type); !status)
        return status;
    return Status();
  });
}

comm::StreamGroup::Prepared LocalGroup::prepareExchange(std::vector<Message> sends, std::vector<Message> receives,
                                                        ElementType type, const OperationLabel &label) {
  auto call = std::make_unique<LocalCall>(*this, label);
  LocalCall &mine = *call;
  mine.sends = std::move(sends);
  return prepare(std::move(call), [&](const Peers &peers) -> Status {
    std::vector<size_t> next(peers.size(), 0); // message of each peer
    for (const Message &message : receives) {
      auto from = static_cast<size_t>(message.peer);
      const std::vector<Message> &sent = peers[from]->sends;
      size_t &at = next[from];
      while (at < sent.size() && sent[at].peer != rank())
        ++at;
      if (at == sent.size() || sent[at].count != message.count)
        return Error{ExitCode::PeerFailed, fmt::format("ranks do different things in '{}'", label.name),
                     "run the same plan and the same build on all ranks"};
      if (Status status = copy(mine, sent[at++].data, message.data, message.count, type); !status)
        return status;
    }
    return {};
  });
}

class LocalCommunicator final : public comm::StreamCommunicator {
public:
  LocalCommunicator(Shared &shared, comm::World &world) : shared(shared), world(world) {}
  ~LocalCommunicator() override { abort(); }

  /// Everybody enters the hub of rank 0.
  Status open() {
    std::vector<int64_t> everyone(static_cast<size_t>(world.size()));
    std::iota(everyone.begin(), everyone.end(), int64_t{0});
    Result<comm::Group *> group = world.group(everyone);
    if (!group)
      return group.error();
    all = *group;
    auto first = std::make_shared<Hub>();
    auto hubs = comm::gather(*all, &first, {"ranks of the GPU", ""});
    if (!hubs)
      return hubs.error();
    hub = *(*hubs)[0];
    hub->enter();
    return all->barrier({"ranks of the GPU", ""});
  }

  Result<comm::StreamGroup *> group(const comm::Partition &partition) override {
    if (auto found = groups.find(partition); found != groups.end())
      return static_cast<comm::StreamGroup *>(found->second.get());
    std::vector<int64_t> members;
    for (size_t rank = 0; rank < partition.size(); ++rank)
      if (partition[rank] == partition[static_cast<size_t>(world.rank())])
        members.push_back(static_cast<int64_t>(rank));
    if (members.size() == 1) {
      groups.emplace(partition, nullptr);
      return static_cast<comm::StreamGroup *>(nullptr);
    }
    Result<comm::Group *> hosts = world.group(members);
    if (!hosts)
      return hosts.error();
    auto made = std::make_unique<LocalGroup>(shared, **hosts);
    if (Status status = made->open(); !status)
      return status.error();
    return static_cast<comm::StreamGroup *>((groups[partition] = std::move(made)).get());
  }
  bool isCapturable() const override { return false; }
  Result<void *> allocate(size_t) override { return static_cast<void *>(nullptr); }
  void setWaiting(bool) override {} // what it waits for has all that it needs
  Status check() override {
    std::optional<Error> failure = world.firstFailure();
    return failure ? Status(*failure) : Status();
  }
  void abort() override { leave(); }
  Status close() override {
    if (Status status = all->barrier({"end of the run", ""}); !status)
      return status;
    leave();
    return {};
  }

private:
  void leave() {
    if (!hub)
      return;
    for (auto &[number, stream] : shared.streams)
      if (stream.handle)
        shared.driver.cuStreamSynchronize(stream.handle); // an error has been told, or will be
    hub->leave();
    hub.reset();
  }

  Shared &shared;
  comm::World &world;
  comm::Group *all = nullptr;
  std::shared_ptr<Hub> hub; ///< null: not entered, or left
  std::map<comm::Partition, std::unique_ptr<LocalGroup>> groups;
};

} // namespace

Result<std::unique_ptr<comm::StreamCommunicator>> connectLocally(Shared &shared, comm::World &world) {
  auto communicator = std::make_unique<LocalCommunicator>(shared, world);
  if (Status status = communicator->open(); !status)
    return status.error();
  return std::unique_ptr<comm::StreamCommunicator>(std::move(communicator));
}

} // namespace msc::device::cuda
