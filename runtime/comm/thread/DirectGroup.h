// Collectives of ranks that can read each other's memory.
#pragma once

#include "runtime/comm/shared/MeetingGroup.h"

namespace msc::comm {

class DirectGroup final : public MeetingGroup {
public:
  using MeetingGroup::MeetingGroup;
  Status allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                   const OperationLabel &label) override;
  Status allReduceMany(std::span<const ReducePart> parts, ElementType type, ReduceKind kind,
                       const OperationLabel &label) override;
  Status reduceScatterMany(std::span<const ScatterPart> parts, ElementType type, ReduceKind kind,
                           const OperationLabel &label) override;
  Status reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                       ReduceKind kind, const OperationLabel &label) override;
  Status exchange(const void *source, void *target, const ExchangePlan &plan, const OperationLabel &label) override;
  Status broadcast(void *data, size_t bytes, int root, const OperationLabel &label) override;

private:
  Status checkExchange(const ExchangePlan &plan, const OperationLabel &label);
  /// The published sources of all members.
  std::span<const void *const> sources();
  /// Part `index` of the list of parts that a member has published as its source.
  template <typename Part> const Part &partOf(int member, size_t index) const {
    return static_cast<const Part *>(meeting.peer(member).source)[index];
  }

  std::vector<void *> targetList;
};

} // namespace msc::comm
