// What groups on shared memory have in common: the members, and the operations whose payload fits into the meeting.
#pragma once

#include "runtime/comm/shared/Rendezvous.h"

namespace msc::comm {

class MeetingGroup : public Group {
public:
  MeetingGroup(SharedRun &run, RendezvousMemory &memory, std::vector<int64_t> members)
      : meeting(run, memory, std::move(members)) {}

  int rank() const override { return meeting.position(); }
  int size() const override { return meeting.size(); }
  const std::vector<int64_t> &members() const override { return meeting.members(); }
  Status barrier(const OperationLabel &label) override;

protected:
  /// True if it pays that every member reduces all terms itself: the work grows with the members.
  bool fitsInline(int64_t bytes) const {
    return bytes <= static_cast<int64_t>(kInlineBytes) && bytes * size() <= int64_t{8} * static_cast<int64_t>(kInlineBytes);
  }
  /// For what fits: every member publishes its source and reduces all of them itself.
  Status allReduceInline(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                         const OperationLabel &label);

  Rendezvous meeting;
  std::vector<const void *> sourceList; ///< reused between operations
};

} // namespace msc::comm
