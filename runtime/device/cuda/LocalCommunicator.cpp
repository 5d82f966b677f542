#include "runtime/device/cuda/LocalCommunicator.h"

#include "runtime/comm/Gather.h"
#include "runtime/comm/Operation.h"
#include "runtime/device/cuda/Kernels.h"
#include "runtime/device/cuda/PeerAccess.h"

#include <numeric>

namespace msc::device::cuda {
namespace {

using comm::ElementType;
using comm::Message;
using comm::OperationLabel;
using comm::ReducePart;

/// What a rank brings into a collective, for its peers to know while it is prepared: memory that they read, or write; and for
/// messages to whom they go.
struct Offer {
  PeerAddress source, target;
  int64_t count = 0;
  int64_t peer = -1;
};

/// Work that may read what all members had written before, and is over before any of them goes on.
class LocalCall final : public comm::StreamCall {
public:
  LocalCall(StreamMeeting &meeting, OperationLabel label) : label(std::move(label)), meeting(meeting) {}
  Status enqueue(comm::StreamHandle handle) override {
    Stream stream{static_cast<CUstream>(handle), 0};
    if (Status status = meeting.meet(stream.handle, label); !status)
      return status;
    for (const std::unique_ptr<Operation> &operation : operations)
      if (Status status = static_cast<StreamOperation &>(*operation).enqueue(stream); !status)
        return status;
    return meeting.meet(stream.handle, label);
  }

  const OperationLabel label;
  std::vector<std::unique_ptr<Operation>> operations;

private:
  StreamMeeting &meeting;
};

class LocalGroup final : public comm::StreamGroup {
public:
  LocalGroup(Shared &shared, PeerAccess &access, comm::Group &hosts) : shared(shared), access(access), hosts(hosts) {}
  Status open() {
    auto made = access.meeting(hosts);
    if (!made)
      return made.error();
    meeting = std::move(*made);
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

private:
  using Offers = std::vector<std::vector<Offer>>; ///< by member

  Status tell(const void *address, PeerAddress &told) {
    Result<PeerAddress> made = access.tell(address);
    if (made)
      told = *made;
    return made ? Status() : Status(made.error());
  }
  /// Where this rank finds what `member` told.
  Result<std::byte *> find(const PeerAddress &told, size_t member) { return access.find(told, hosts.members()[member]); }

  /// What all members bring, for `make` to put into the call what this rank does.
  Prepared prepare(const std::vector<Offer> &own, const OperationLabel &label,
                   const std::function<Status(LocalCall &, const Offers &)> &make) {
    auto offers = comm::gatherLists(hosts, own, label);
    if (!offers)
      return offers.error();
    auto call = std::make_unique<LocalCall>(*meeting, label);
    if (Status status = make(*call, *offers); !status)
      return status.error();
    return std::unique_ptr<comm::StreamCall>(std::move(call));
  }
  static Error different(const OperationLabel &label) {
    return {ExitCode::PeerFailed, fmt::format("ranks do different things in '{}'", label.name),
            "run the same plan and the same build on all ranks"};
  }

  /// Elements [first, first + count) of all sources to the same places of all targets.
  Status reduce(LocalCall &call, const std::vector<const std::byte *> &sources, const std::vector<std::byte *> &targets, int64_t first,
                int64_t count, ElementType type, ReduceKind kind);
  Status copy(LocalCall &call, const std::byte *source, void *target, int64_t count, ElementType type);

  Shared &shared;
  PeerAccess &access;
  comm::Group &hosts;
  std::unique_ptr<StreamMeeting> meeting;
};

Status LocalGroup::reduce(LocalCall &call, const std::vector<const std::byte *> &sources, const std::vector<std::byte *> &targets,
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
  for (const std::byte *source : sources)
    descriptor.push_back(reinterpret_cast<int64_t>(source));
  for (std::byte *target : targets)
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

Status LocalGroup::copy(LocalCall &call, const std::byte *source, void *target, int64_t count, ElementType type) {
  if (count == 0)
    return {};
  comm::Region whole{0, {count}, {1}};
  auto made = prepareCopy(shared, {const_cast<std::byte *>(source), static_cast<std::byte *>(target), whole, whole, comm::elementSize(type)}, 0);
  if (!made)
    return made.error();
  call.operations.push_back(std::move(*made));
  return {};
}

comm::StreamGroup::Prepared LocalGroup::prepareAllReduce(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                                         const OperationLabel &label) {
  std::vector<Offer> own(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    own[i].count = parts[i].count;
    for (auto [address, told] : {std::pair{parts[i].source, &own[i].source}, {static_cast<const void *>(parts[i].target), &own[i].target}})
      if (Status status = tell(address, *told); !status)
        return status.error();
  }
  return prepare(own, label, [&](LocalCall &call, const Offers &offers) -> Status {
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<const std::byte *> sources;
      std::vector<std::byte *> targets;
      for (size_t member = 0; member < offers.size(); ++member) {
        if (offers[member].size() != parts.size() || offers[member][i].count != parts[i].count)
          return different(label);
        Result<std::byte *> source = find(offers[member][i].source, member), target = find(offers[member][i].target, member);
        if (!source || !target)
          return source ? target.error() : source.error();
        sources.push_back(*source), targets.push_back(*target);
      }
      // This rank owns one piece of the result and writes it to all members.
      int64_t count = parts[i].count, begin = rank() * count / size(), end = (rank() + 1) * count / size();
      if (Status status = reduce(call, sources, targets, begin, end - begin, type, kind); !status)
        return status;
    }
    return {};
  });
}

comm::StreamGroup::Prepared LocalGroup::prepareReduceScatter(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                                             const OperationLabel &label) {
  std::vector<Offer> own(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    own[i].count = parts[i].count;
    if (Status status = tell(parts[i].source, own[i].source); !status)
      return status.error();
  }
  return prepare(own, label, [&](LocalCall &call, const Offers &offers) -> Status {
    for (size_t i = 0; i < parts.size(); ++i) {
      int64_t block = parts[i].count * static_cast<int64_t>(comm::elementSize(type)) * rank();
      std::vector<const std::byte *> sources;
      for (size_t member = 0; member < offers.size(); ++member) {
        if (offers[member].size() != parts.size() || offers[member][i].count != parts[i].count)
          return different(label);
        Result<std::byte *> source = find(offers[member][i].source, member);
        if (!source)
          return source.error();
        sources.push_back(*source + block);
      }
      if (Status status = reduce(call, sources, {static_cast<std::byte *>(parts[i].target)}, 0, parts[i].count, type, kind); !status)
        return status;
    }
    return {};
  });
}

comm::StreamGroup::Prepared LocalGroup::prepareAllGather(const void *source, void *target, int64_t count, ElementType type,
                                                         const OperationLabel &label) {
  std::vector<Offer> own(1);
  own[0].count = count;
  if (Status status = tell(source, own[0].source); !status)
    return status.error();
  return prepare(own, label, [&](LocalCall &call, const Offers &offers) -> Status {
    size_t block = static_cast<size_t>(count) * comm::elementSize(type);
    auto to = static_cast<std::byte *>(target);
    for (size_t member = 0; member < offers.size(); ++member) {
      if (offers[member].size() != 1 || offers[member][0].count != count)
        return different(label);
      Result<std::byte *> from = find(offers[member][0].source, member);
      if (!from)
        return from.error();
      if (Status status = copy(call, *from, to + member * block, count, type); !status)
        return status;
    }
    return {};
  });
}

comm::StreamGroup::Prepared LocalGroup::prepareExchange(std::vector<Message> sends, std::vector<Message> receives,
                                                        ElementType type, const OperationLabel &label) {
  std::vector<Offer> own(sends.size());
  for (size_t i = 0; i < sends.size(); ++i) {
    own[i].count = sends[i].count, own[i].peer = sends[i].peer;
    if (Status status = tell(sends[i].data, own[i].source); !status)
      return status.error();
  }
  return prepare(own, label, [&](LocalCall &call, const Offers &offers) -> Status {
    std::vector<size_t> next(offers.size(), 0); // message of each peer
    for (const Message &message : receives) {
      auto from = static_cast<size_t>(message.peer);
      const std::vector<Offer> &sent = offers[from];
      size_t &at = next[from];
      while (at < sent.size() && sent[at].peer != rank())
        ++at;
      if (at == sent.size() || sent[at].count != message.count)
        return different(label);
      Result<std::byte *> source = find(sent[at++].source, from);
      if (!source)
        return source.error();
      if (Status status = copy(call, *source, message.data, message.count, type); !status)
        return status;
    }
    return {};
  });
}

class LocalCommunicator final : public comm::StreamCommunicator {
public:
  LocalCommunicator(Shared &shared, comm::World &world) : shared(shared), world(world) {}
  ~LocalCommunicator() override { abort(); }

  Status open(bool isOneProcess) {
    std::vector<int64_t> everyone(static_cast<size_t>(world.size()));
    std::iota(everyone.begin(), everyone.end(), int64_t{0});
    Result<comm::Group *> all = world.group(everyone);
    if (!all)
      return all.error();
    auto opened = openPeerAccess(shared, **all, isOneProcess);
    if (!opened)
      return opened.error();
    access = std::move(*opened);
    return {};
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
    auto made = std::make_unique<LocalGroup>(shared, *access, **hosts);
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
  void abort() override {
    if (!access)
      return;
    synchronize();
    isFree = access->leave();
  }
  Status close() override {
    synchronize();
    return access->close();
  }
  bool leavesMemory() const override { return !isFree; }

private:
  void synchronize() {
    for (auto &[number, stream] : shared.streams)
      if (stream.handle)
        shared.driver.cuStreamSynchronize(stream.handle); // an error has been told, or will be
  }

  Shared &shared;
  comm::World &world;
  std::unique_ptr<PeerAccess> access; ///< null: not opened
  bool isFree = true;                 ///< no peer uses memory of this rank
  std::map<comm::Partition, std::unique_ptr<LocalGroup>> groups;
};

} // namespace

Result<std::unique_ptr<comm::StreamCommunicator>> connectLocally(Shared &shared, comm::World &world, bool isOneProcess) {
  auto communicator = std::make_unique<LocalCommunicator>(shared, world);
  if (Status status = communicator->open(isOneProcess); !status)
    return status.error();
  return std::unique_ptr<comm::StreamCommunicator>(std::move(communicator));
}

} // namespace msc::device::cuda
