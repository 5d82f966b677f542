#include "runtime/device/cuda/CollectiveBuilder.h"

#include "runtime/comm/Region.h"

#include <algorithm>
#include <iterator>

namespace msc::device::cuda {
namespace {

using comm::ExchangePlan;
using comm::Message;
using comm::Region;
using comm::Transfer;

/// A call of a communicator on the stream of the step.
class Communication final : public StreamOperation {
public:
  Communication(Shared &shared, std::unique_ptr<comm::StreamCall> call)
      : StreamOperation(shared.streams[0]), call(std::move(call)) {}
  Status enqueue(const Stream &stream) override { return call->enqueue(stream.handle); }

private:
  std::unique_ptr<comm::StreamCall> call;
};

/// Elements of `like`, one after the other, from `offset` on.
Region denseRegion(const Region &like, int64_t offset) {
  Region dense{offset, like.sizes, like.sizes};
  int64_t stride = 1;
  for (size_t i = dense.sizes.size(); i-- > 0; stride *= dense.sizes[i])
    dense.strides[i] = stride;
  return dense;
}

class Builder {
public:
  Builder(Shared &shared, comm::StreamGroup *group, const CollectiveSpec &spec, const PrepareCopy &prepareCopy)
      : shared(shared), group(group), spec(spec), prepareCopy(prepareCopy), size(comm::elementSize(spec.type)) {}

  Prepared build() {
    Status status = spec.kind == CollectiveSpec::Kind::AllReduce       ? allReduce()
                    : spec.kind == CollectiveSpec::Kind::ReduceScatter ? reduceScatter()
                                                                       : exchange();
    if (!status)
      return status.error();
    std::move(behind.begin(), behind.end(), std::back_inserter(operations));
    return std::unique_ptr<Operation>(new Several(shared, std::move(operations)));
  }

private:
  /// What must be equal on all members, as a number.
  class Fingerprint {
  public:
    void add(int64_t value) { hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3; }
    int64_t value() const { return static_cast<int64_t>(hash >> 2); }

  private:
    uint64_t hash = 0xcbf29ce484222325;
  };

  /// All members do the same; `able` stays true where it is true for all.
  Status agree(Fingerprint own, bool &able) {
    own.add(static_cast<int64_t>(spec.kind));
    own.add(static_cast<int64_t>(spec.type));
    own.add(static_cast<int64_t>(spec.reduction));
    int64_t values[] = {able, own.value(), -own.value()};
    if (Status met = spec.hosts->allReduce(values, values, 3, comm::ElementType::I64, ReduceKind::Min, spec.label); !met)
      return met;
    able = values[0] != 0;
    if (values[1] == -values[2])
      return {};
    return Error{ExitCode::PeerFailed, fmt::format("ranks do different things in '{}'", spec.label.name),
                 "run the same plan and the same build on all ranks"};
  }

  Status copy(std::vector<std::unique_ptr<Operation>> &list, const std::byte *source, Region from, std::byte *target, Region to) {
    if (from.count() == 0)
      return {};
    Prepared made = prepareCopy({const_cast<std::byte *>(source), target, std::move(from), std::move(to), size});
    if (!made)
      return made.error();
    list.push_back(std::move(*made));
    return {};
  }

  Result<std::byte *> scratch(int64_t count) {
    Result<CUdeviceptr> memory = shared.scratch(static_cast<size_t>(count) * size);
    if (!memory)
      return memory.error();
    return reinterpret_cast<std::byte *>(*memory);
  }

  Status keep(comm::StreamGroup::Prepared call) {
    if (!call)
      return call.error();
    operations.push_back(std::make_unique<Communication>(shared, std::move(*call)));
    return {};
  }

  Status allReduce() {
    std::vector<comm::ReducePart> parts;
    Fingerprint counts;
    for (const comm::ReducePart &part : spec.reduces) {
      counts.add(part.count);
      Region whole{0, {part.count}, {1}};
      if (part.count != 0 && group)
        parts.push_back(part);
      else if (part.source != part.target)
        if (Status status = copy(operations, static_cast<const std::byte *>(part.source), whole,
                                 static_cast<std::byte *>(part.target), whole);
            !status)
          return status;
    }
    bool able = true;
    if (!group)
      return {};
    if (Status same = agree(counts, able); !same)
      return same;
    return parts.empty() ? Status() : keep(group->prepareAllReduce(std::move(parts), spec.type, spec.reduction, spec.label));
  }

  Status reduceScatter() {
    std::vector<comm::ReducePart> parts;
    Fingerprint counts;
    for (const comm::ScatterPart &part : spec.scatters) {
      for (const Region &piece : part.pieces)
        counts.add(piece.count());
      if (Status status = scatter(part, parts); !status)
        return status;
    }
    bool able = true;
    if (!group)
      return {};
    if (Status same = agree(counts, able); !same)
      return same;
    return parts.empty() ? Status() : keep(group->prepareReduceScatter(std::move(parts), spec.type, spec.reduction, spec.label));
  }

  /// Blocks are as large as the largest piece; what a shorter one leaves of its block is reduced, too, and nobody reads it.
  Status scatter(const comm::ScatterPart &part, std::vector<comm::ReducePart> &parts) {
    auto source = static_cast<const std::byte *>(part.source);
    auto target = static_cast<std::byte *>(part.target);
    std::span<const Region> pieces = part.pieces;
    const Region &own = pieces[static_cast<size_t>(group ? group->rank() : 0)];
    if (!group)
      return copy(operations, source, own, target, denseRegion(own, 0));
    int64_t most = 0;
    for (const Region &piece : pieces)
      most = std::max(most, piece.count());
    if (most == 0)
      return {};
    bool inPlace = true;
    for (size_t m = 0; m < pieces.size(); ++m)
      inPlace &= pieces[m].count() == most && comm::isContiguous(pieces[m]) &&
                 pieces[m].offset == pieces[0].offset + static_cast<int64_t>(m) * most;
    if (inPlace) {
      source += static_cast<size_t>(pieces[0].offset) * size;
    } else {
      Result<std::byte *> packed = scratch(most * group->size());
      if (!packed)
        return packed.error();
      for (size_t m = 0; m < pieces.size(); ++m)
        if (Status status = copy(operations, source, pieces[m], *packed, denseRegion(pieces[m], static_cast<int64_t>(m) * most));
            !status)
          return status;
      source = *packed;
    }
    if (own.count() == most) {
      parts.push_back({source, target, most});
      return {};
    }
    Result<std::byte *> block = scratch(most);
    if (!block)
      return block.error();
    parts.push_back({source, *block, most});
    Region kept{0, {own.count()}, {1}};
    return copy(behind, *block, kept, target, kept);
  }

  /// This rank sends the same elements to all, and gets as many from each.
  bool isGather(const ExchangePlan &plan) const {
    size_t members = static_cast<size_t>(group->size());
    if (plan.sends.size() != members || plan.receives.size() != members)
      return false;
    const Region &own = plan.sends[0].source;
    for (size_t m = 0; m < members; ++m) {
      const Transfer &sent = plan.sends[m], &got = plan.receives[m];
      bool isSame = sent.source.offset == own.offset && sent.source.sizes == own.sizes && sent.source.strides == own.strides;
      if (sent.peer != static_cast<int32_t>(m) || got.peer != static_cast<int32_t>(m) || !isSame ||
          got.target.count() != own.count())
        return false;
    }
    return own.count() != 0;
  }

  Status gather(const ExchangePlan &plan) {
    const Region &own = plan.sends[0].source, &first = plan.receives[0].target;
    int64_t count = own.count();
    Result<std::byte *> source = packed(own);
    if (!source)
      return source.error();
    bool inPlace = true;
    for (size_t m = 0; m < plan.receives.size(); ++m) {
      const Region &block = plan.receives[m].target;
      inPlace &= comm::isContiguous(block) && block.offset == first.offset + static_cast<int64_t>(m) * count;
    }
    std::byte *target = spec.target + at(first);
    if (!inPlace) {
      Result<std::byte *> blocks = scratch(count * group->size());
      if (!blocks)
        return blocks.error();
      target = *blocks;
      for (size_t m = 0; m < plan.receives.size(); ++m) {
        const Region &block = plan.receives[m].target;
        Region dense = denseRegion(block, static_cast<int64_t>(m) * count);
        if (Status status = copy(behind, target, dense, spec.target, block); !status)
          return status;
      }
    }
    return keep(group->prepareAllGather(*source, target, count, spec.type, spec.label));
  }

  Status exchange() {
    const ExchangePlan &plan = *spec.exchange;
    bool gathers = group && isGather(plan);
    if (group)
      if (Status same = agree({}, gathers); !same)
        return same;
    if (gathers)
      return gather(plan);
    std::vector<Message> sends, receives;
    for (const Transfer &transfer : plan.sends)
      if (Status status = transfer.peer == own() ? Status() : send(transfer, sends); !status)
        return status;
    for (const Transfer &transfer : plan.receives)
      if (Status status = receive(transfer, receives); !status)
        return status;
    // Members that have nothing to send or to get take part as well: some communicators let all of them meet.
    return group ? keep(group->prepareExchange(std::move(sends), std::move(receives), spec.type, spec.label)) : Status();
  }

  int32_t own() const { return group ? group->rank() : 0; }
  size_t at(const Region &region) const { return static_cast<size_t>(region.offset) * size; }

  /// A region of the source as dense memory.
  Result<std::byte *> packed(const Region &region) {
    if (comm::isContiguous(region))
      return spec.source + at(region);
    Result<std::byte *> memory = scratch(region.count());
    if (memory)
      if (Status status = copy(operations, spec.source, region, *memory, denseRegion(region, 0)); !status)
        return status.error();
    return memory;
  }

  Status send(const Transfer &transfer, std::vector<Message> &sends) {
    Result<std::byte *> data = packed(transfer.source);
    if (!data)
      return data.error();
    sends.push_back({transfer.peer, *data, transfer.source.count()});
    return {};
  }

  Status receive(const Transfer &transfer, std::vector<Message> &receives) {
    if (transfer.peer == own())
      return copy(behind, spec.source, transfer.source, spec.target, transfer.target);
    std::byte *data = spec.target + at(transfer.target);
    if (!comm::isContiguous(transfer.target)) {
      Result<std::byte *> packed = scratch(transfer.target.count());
      if (!packed)
        return packed.error();
      data = *packed;
      if (Status status = copy(behind, data, denseRegion(transfer.target, 0), spec.target, transfer.target); !status)
        return status;
    }
    receives.push_back({transfer.peer, data, transfer.target.count()});
    return {};
  }

  Shared &shared;
  comm::StreamGroup *group;
  const CollectiveSpec &spec;
  const PrepareCopy &prepareCopy;
  size_t size;
  std::vector<std::unique_ptr<Operation>> operations, behind;
};

} // namespace

Prepared prepareCollective(Shared &shared, comm::StreamGroup *group, const CollectiveSpec &spec, const PrepareCopy &copy) {
  return Builder(shared, group, spec, copy).build();
}

} // namespace msc::device::cuda
