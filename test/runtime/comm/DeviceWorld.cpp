#include "test/runtime/comm/DeviceWorld.h"

#include "runtime/comm/StreamCommunicator.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

namespace msc::comm::test {

namespace {

constexpr size_t arenaBytes = size_t{48} << 20;

/// Elements up to the last one of a region.
int64_t extentOf(const Region &region) {
  if (region.count() == 0)
    return 0;
  int64_t last = region.offset;
  for (size_t dim = 0; dim < region.sizes.size(); ++dim)
    last += (region.sizes[dim] - 1) * region.strides[dim];
  return last + 1;
}

/// The device of a rank, and what lies in its arena for one operation.
class Workbench {
public:
  explicit Workbench(std::unique_ptr<device::Device> made) : device(std::move(made)) {}

  Status open() {
    Result<std::byte *> memory = device->allocateArena(arenaBytes);
    if (!memory)
      return memory.error();
    arena = *memory;
    return {};
  }

  void clear() { used = 0, sent.clear(), received.clear(); }
  /// Memory that begins as `data` does.
  std::byte *bring(const void *data, size_t bytes) {
    std::byte *place = arena + used;
    used += (bytes + 255) / 256 * 256;
    if (used > arenaBytes)
      return arena; // run() says so
    const auto *begin = static_cast<const std::byte *>(data);
    sent.push_back({place, std::vector<std::byte>(begin, begin + bytes)});
    return place;
  }
  /// What lies there when the operation is over goes to `target`.
  void fetch(const std::byte *place, void *target, size_t bytes) { received.push_back({place, target, bytes}); }

  /// As one of many steps: first on its own, then as a graph, where collectives are part of one, and again as that graph.
  Status run(const device::CollectiveSpec &spec) {
    if (used > arenaBytes)
      return Error{ExitCode::Failed, "an operation on " + std::to_string(used) + " bytes; the arena has " + std::to_string(arenaBytes), ""};
    auto operation = device->prepareCollective(spec);
    if (!operation)
      return operation.error();
    if (Status status = device->finishPreparation(); !status)
      return status;
    const bool isPart = device->collectiveForm() == device::CollectiveForm::InSequence;
    std::unique_ptr<device::Sequence> sequence;
    if (isPart) {
      device::SequenceEntry entry{.operation = operation->get(), .isCollective = true};
      sequence = device->makeSequence({entry});
    }
    for (int round = 0; round < (isPart ? 3 : 1); ++round) {
      for (const auto &[place, bytes] : sent)
        if (Status status = device->upload(place, bytes.data(), bytes.size()); !status)
          return status;
      size_t failed = 0;
      if (Status status = isPart ? sequence->run(failed) : (*operation)->run(); !status)
        return status;
      if (Status status = device->synchronize(); !status)
        return status;
    }
    for (const auto &[place, target, bytes] : received)
      if (Status status = device->download(target, place, bytes); !status)
        return status;
    return {};
  }

  const std::unique_ptr<device::Device> device;

private:
  struct Fetched {
    const std::byte *place;
    void *target;
    size_t bytes;
  };
  std::byte *arena = nullptr;
  size_t used = 0;
  std::vector<std::pair<std::byte *, std::vector<std::byte>>> sent;
  std::vector<Fetched> received;
};

class DeviceGroup final : public Group {
public:
  DeviceGroup(Group &hosts, Partition partition, Workbench &bench) : hosts(hosts), partition(std::move(partition)), bench(bench) {}

  int rank() const override { return hosts.rank(); }
  int size() const override { return hosts.size(); }
  const std::vector<int64_t> &members() const override { return hosts.members(); }
  Status barrier(const OperationLabel &label) override { return hosts.barrier(label); }
  Status broadcast(void *data, size_t bytes, int root, const OperationLabel &label) override {
    return hosts.broadcast(data, bytes, root, label);
  }

  Status allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                   const OperationLabel &label) override {
    const ReducePart part{source, target, count};
    return allReduceMany({&part, 1}, type, kind, label);
  }

  Status allReduceMany(std::span<const ReducePart> parts, ElementType type, ReduceKind kind, const OperationLabel &label) override {
    device::CollectiveSpec spec = begin(device::CollectiveSpec::Kind::AllReduce, type, label);
    spec.reduction = kind;
    for (const ReducePart &part : parts) {
      const size_t bytes = static_cast<size_t>(part.count) * elementSize(type);
      std::byte *source = bench.bring(part.source, bytes);
      std::byte *target = part.target == part.source ? source : bench.bring(part.target, bytes);
      bench.fetch(target, part.target, bytes);
      spec.reduces.push_back({source, target, part.count});
    }
    return bench.run(spec);
  }

  Status reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type, ReduceKind kind,
                       const OperationLabel &label) override {
    const ScatterPart part{source, target, pieces};
    return reduceScatterMany({&part, 1}, type, kind, label);
  }

  Status reduceScatterMany(std::span<const ScatterPart> parts, ElementType type, ReduceKind kind, const OperationLabel &label) override {
    device::CollectiveSpec spec = begin(device::CollectiveSpec::Kind::ReduceScatter, type, label);
    spec.reduction = kind;
    std::vector<ScatterPart> placed;
    for (const ScatterPart &part : parts) {
      int64_t extent = 0;
      for (const Region &piece : part.pieces)
        extent = std::max(extent, extentOf(piece));
      const size_t kept = static_cast<size_t>(part.pieces[static_cast<size_t>(rank())].count()) * elementSize(type);
      std::byte *target = bench.bring(part.target, kept);
      bench.fetch(target, part.target, kept);
      placed.push_back({bench.bring(part.source, static_cast<size_t>(extent) * elementSize(type)), target, part.pieces});
    }
    spec.scatters = placed;
    return bench.run(spec);
  }

  Status exchange(const void *source, void *target, const ExchangePlan &plan, const OperationLabel &label) override {
    device::CollectiveSpec spec = begin(device::CollectiveSpec::Kind::Exchange, plan.type, label);
    int64_t from = 0, to = 0;
    for (const Transfer &transfer : plan.sends)
      from = std::max(from, extentOf(transfer.source));
    for (const Transfer &transfer : plan.receives) {
      to = std::max(to, extentOf(transfer.target));
      if (transfer.peer == rank())
        from = std::max(from, extentOf(transfer.source));
    }
    const size_t bytes = static_cast<size_t>(to) * elementSize(plan.type);
    spec.source = bench.bring(source, static_cast<size_t>(from) * elementSize(plan.type));
    spec.target = bench.bring(target, bytes);
    spec.exchange = &plan;
    bench.fetch(spec.target, target, bytes);
    return bench.run(spec);
  }

private:
  device::CollectiveSpec begin(device::CollectiveSpec::Kind kind, ElementType type, const OperationLabel &label) {
    bench.clear();
    device::CollectiveSpec spec;
    spec.kind = kind, spec.partition = &partition, spec.hosts = &hosts, spec.type = type, spec.label = label;
    return spec;
  }

  Group &hosts;
  const Partition partition;
  Workbench &bench;
};

class DeviceWorld final : public World {
public:
  DeviceWorld(World &hosts, std::unique_ptr<device::Device> device) : hosts(hosts), bench(std::move(device)) {}
  ~DeviceWorld() override {
    Status closed = bench.device->closeGroups();
    EXPECT_TRUE(closed.isOk()) << closed.error().message;
  }

  Status open() { return bench.open(); }

  int64_t rank() const override { return hosts.rank(); }
  int64_t size() const override { return hosts.size(); }
  int64_t localSize() const override { return hosts.localSize(); }
  int64_t localRank() const override { return hosts.localRank(); }
  const char *transport() const override { return hosts.transport(); }
  void abort(const Error &error) override { hosts.abort(error); }
  std::optional<Error> firstFailure() override { return hosts.firstFailure(); }
  bool takeReport() override { return hosts.takeReport(); }
  void enterStep(uint64_t epoch, uint64_t step) override { hosts.enterStep(epoch, step); }
  std::string currentStep() override { return hosts.currentStep(); }
  void setTimeout(std::chrono::milliseconds limit) override { hosts.setTimeout(limit); }
  std::chrono::milliseconds timeout() const override { return hosts.timeout(); }

  /// All ranks ask together, each for its own.
  Result<Group *> group(const std::vector<int64_t> &ranks) override {
    Result<Group *> members = hosts.group(ranks);
    if (!members)
      return members;
    if (auto known = groups.find(ranks); known != groups.end())
      return known->second.get();
    std::vector<int64_t> all(static_cast<size_t>(size()));
    std::iota(all.begin(), all.end(), int64_t{0});
    Result<Group *> everyone = hosts.group(all);
    if (!everyone)
      return everyone;
    Partition lowest(all.size(), 0); // of the group of each rank
    lowest[static_cast<size_t>(rank())] = ranks.front();
    const OperationLabel label{"groups", ""};
    if (Status status = (*everyone)->allReduce(lowest.data(), lowest.data(), size(), ElementType::I64, ReduceKind::Max, label); !status)
      return status.error();
    if (Status status = bench.device->openGroups({lowest}); !status)
      return status.error();
    return groups.emplace(ranks, std::make_unique<DeviceGroup>(**members, lowest, bench)).first->second.get();
  }

private:
  World &hosts;
  Workbench bench;
  std::map<std::vector<int64_t>, std::unique_ptr<Group>> groups;
};

} // namespace

Result<std::unique_ptr<World>> makeDeviceWorld(World &hosts, device::Backend &backend) {
  auto device = backend.create({hosts.rank(), hosts.localRank(), hosts.localSize(), &hosts});
  if (!device)
    return device.error();
  auto world = std::make_unique<DeviceWorld>(hosts, std::move(*device));
  if (Status status = world->open(); !status)
    return status.error();
  return std::unique_ptr<World>(std::move(world));
}

} // namespace msc::comm::test
