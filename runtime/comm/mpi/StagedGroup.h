// Collectives of processes on one host: payload goes through staging memory that all of them map, in portions that stay in
// the caches.
#pragma once

#include "runtime/comm/shared/MeetingGroup.h"

namespace msc::comm {

/// Bytes of one portion; every rank has two, used in turn.
constexpr int64_t kPortionBytes = int64_t{128} << 10;

/// The staging memory of all ranks of a host, one slice per rank: a table of offsets and two portions.
class Staging {
public:
  Staging(void *memory, std::vector<int64_t> ranks) : memory(static_cast<char *>(memory)), ranks(std::move(ranks)) {}
  static size_t bytesFor(size_t ranks) { return ranks * bytesPerRank(ranks); }
  /// Byte offsets of what the rank sends to each member of the current group.
  uint64_t *table(int64_t rank) const { return reinterpret_cast<uint64_t *>(base(rank)); }
  char *portion(int64_t rank, int64_t turn) const {
    return base(rank) + tableBytes(ranks.size()) + (turn & 1) * kPortionBytes;
  }

private:
  static size_t tableBytes(size_t ranks) { return ((ranks + 1) * sizeof(uint64_t) + 63) & ~size_t{63}; }
  static size_t bytesPerRank(size_t ranks) { return tableBytes(ranks) + 2 * kPortionBytes; }
  char *base(int64_t rank) const;
  char *memory;
  std::vector<int64_t> ranks;
};

class StagedGroup final : public MeetingGroup {
public:
  StagedGroup(SharedRun &run, RendezvousMemory &memory, const Staging &staging, std::vector<int64_t> members)
      : MeetingGroup(run, memory, std::move(members)), staging(staging) {}

  Status allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                   const OperationLabel &label) override;
  Status reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                       ReduceKind kind, const OperationLabel &label) override;
  Status exchange(const void *source, void *target, const ExchangePlan &plan, const OperationLabel &label) override;
  Status broadcast(void *data, size_t bytes, int root, const OperationLabel &label) override;

private:
  char *portion(int member, int64_t turn) const { return staging.portion(members()[member], turn); }
  /// The portions of all members, shifted by `offset` bytes.
  std::span<const void *const> portions(int64_t turn, int64_t offset);
  /// The first round meets, later ones only synchronise.
  Status arrive(int64_t round) { return round == 0 ? meeting.meet(false) : meeting.sync(); }
  Status checkTables(const ExchangePlan &plan, const OperationLabel &label);
  uint64_t fillTable(const ExchangePlan &plan);
  void packSends(const void *source, const ExchangePlan &plan, int64_t round);
  void unpackReceives(void *target, const ExchangePlan &plan, int64_t round);

  const Staging &staging;
};

} // namespace msc::comm
