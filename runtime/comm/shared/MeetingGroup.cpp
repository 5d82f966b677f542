#include "runtime/comm/shared/MeetingGroup.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/Region.h"

namespace msc::comm {

Status MeetingGroup::allReduceInline(const void *source, void *target, int64_t count, ElementType type,
                                     ReduceKind kind, const OperationLabel &label) {
  Publication &own = meeting.prepare(Operation::AllReduce, count, type, kind, label);
  copyBytes(own.data, source, count * elementSize(type));
  if (Status met = meeting.meet(false); !met)
    return met;
  sourceList.clear();
  for (int m = 0; m < size(); ++m)
    sourceList.push_back(meeting.peer(m).data);
  reduceOrdered(sourceList, {&target, 1}, 0, count, type, kind, false);
  meeting.finish();
  return Status::ok();
}

Status MeetingGroup::barrier(const OperationLabel &label) {
  meeting.prepare(Operation::Barrier, 0, ElementType::F32, ReduceKind::Sum, label);
  Status met = meeting.meet(false);
  meeting.finish();
  return met;
}

} // namespace msc::comm
