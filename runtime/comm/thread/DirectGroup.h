// Collectives of ranks that can read each other's memory.
#pragma once

#include "runtime/comm/shared/Rendezvous.h"

namespace msc::comm {

class DirectGroup final : public Group {
public:
  DirectGroup(SharedRun &run, RendezvousMemory &memory, std::vector<int64_t> members)
      : meeting(run, memory, std::move(members)) {}

  int rank() const override { return meeting.position(); }
  int size() const override { return meeting.size(); }
  const std::vector<int64_t> &members() const override { return meeting.members(); }
  Status allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                   const OperationLabel &label) override;
  Status reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                       ReduceKind kind, const OperationLabel &label) override;
  Status exchange(const void *source, void *target, const ExchangePlan &plan, const OperationLabel &label) override;
  Status barrier(const OperationLabel &label) override;
  Status broadcast(void *data, size_t bytes, int root, const OperationLabel &label) override;

private:
  Status allReduceInline(Publication &own, void *target, int64_t count, ElementType type, ReduceKind kind);
  Status checkExchange(const ExchangePlan &plan, const OperationLabel &label);
  /// The published sources of all members.
  std::span<const void *const> sources();

  Rendezvous meeting;
  std::vector<const void *> sourceList;
  std::vector<void *> targetList;
};

} // namespace msc::comm
