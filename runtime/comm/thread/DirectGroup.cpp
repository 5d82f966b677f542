#include "runtime/comm/thread/DirectGroup.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/Region.h"

#include <algorithm>

namespace msc::comm {

std::span<const void *const> DirectGroup::sources() {
  sourceList.clear();
  for (int m = 0; m < size(); ++m)
    sourceList.push_back(meeting.peer(m).source);
  return sourceList;
}

Status DirectGroup::allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                              const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t bytes = count * static_cast<int64_t>(elementSize(type));
  if (fitsInline(bytes))
    return allReduceInline(source, target, count, type, kind, label);
  Publication &own = meeting.prepare(Operation::AllReduce, count, type, kind, label);
  own.source = source;
  own.target = target;
  if (Status met = meeting.meet(true); !met)
    return met;
  targetList.clear();
  for (int m = 0; m < size(); ++m)
    targetList.push_back(meeting.peer(m).target);
  // This rank owns one piece of the result and writes it to all members.
  Range piece = pieceOf(count, rank(), size());
  bool stream = bytes >= kStreamBytes;
  reduceOrdered(sources(), targetList, piece.begin, piece.end, type, kind, stream);
  if (stream)
    streamFence();
  return meeting.part();
}

Status DirectGroup::allReduceMany(std::span<const ReducePart> parts, ElementType type, ReduceKind kind,
                                  const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t count = 0, size = static_cast<int64_t>(elementSize(type));
  for (const ReducePart &part : parts)
    count += part.count;
  if (fitsInline(count * size))
    return Group::allReduceMany(parts, type, kind, label);
  Publication &own = meeting.prepare(Operation::AllReduce, count, type, kind, label);
  own.source = parts.data();
  if (Status met = meeting.meet(true); !met)
    return met;
  // This rank owns one piece of all elements in a row.
  Range piece = pieceOf(count, rank(), this->size());
  bool stream = count * size >= kStreamBytes;
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); start += parts[i++].count) {
    int64_t begin = std::max<int64_t>(piece.begin - start, 0), end = std::min(piece.end - start, parts[i].count);
    if (begin >= end)
      continue;
    sourceList.clear();
    targetList.clear();
    for (int m = 0; m < this->size(); ++m) {
      sourceList.push_back(partOf<ReducePart>(m, i).source);
      targetList.push_back(partOf<ReducePart>(m, i).target);
    }
    reduceOrdered(sourceList, targetList, begin, end, type, kind, stream);
  }
  if (stream)
    streamFence();
  return meeting.part();
}

Status DirectGroup::reduceScatterMany(std::span<const ScatterPart> parts, ElementType type, ReduceKind kind,
                                      const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t count = 0, kept = 0;
  for (const ScatterPart &part : parts) {
    kept += part.pieces[rank()].count();
    for (const Region &piece : part.pieces)
      count += piece.count();
  }
  Publication &own = meeting.prepare(Operation::ReduceScatter, count, type, kind, label);
  own.source = parts.data();
  if (Status met = meeting.meet(true); !met)
    return met;
  bool stream = kept * static_cast<int64_t>(elementSize(type)) >= kStreamBytes;
  for (size_t i = 0; i < parts.size(); ++i) {
    sourceList.clear();
    for (int m = 0; m < size(); ++m)
      sourceList.push_back(partOf<ScatterPart>(m, i).source);
    const Region &piece = parts[i].pieces[rank()];
    reduceRegions(sourceList, piece, 0, piece.count(), parts[i].target, type, kind, stream);
  }
  if (stream)
    streamFence();
  return meeting.part();
}

Status DirectGroup::reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                                  ReduceKind kind, const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t count = 0;
  for (const Region &piece : pieces)
    count += piece.count();
  Publication &own = meeting.prepare(Operation::ReduceScatter, count, type, kind, label);
  own.source = source;
  if (Status met = meeting.meet(true); !met)
    return met;
  const Region &piece = pieces[rank()];
  int64_t kept = piece.count();
  bool stream = kept * static_cast<int64_t>(elementSize(type)) >= kStreamBytes;
  reduceRegions(sources(), piece, 0, kept, target, type, kind, stream);
  if (stream)
    streamFence();
  return meeting.part();
}

Status DirectGroup::checkExchange(const ExchangePlan &plan, const OperationLabel &label) {
  for (int m = 0; m < size(); ++m) {
    int64_t expected = countWith(plan.receives, m), sent = countWith(meeting.peer(m).plan->sends, rank());
    if (expected != sent)
      return meeting.failWith(exchangeMismatchError(members()[rank()], expected, members()[m], sent, label.name));
  }
  return Status::ok();
}

Status DirectGroup::exchange(const void *source, void *target, const ExchangePlan &plan,
                             const OperationLabel &label) {
  Publication &own = meeting.prepare(Operation::Exchange, 0, plan.type, ReduceKind::Sum, label);
  own.source = source;
  own.plan = &plan;
  if (Status met = meeting.meet(true); !met)
    return met;
  if (Status valid = checkExchange(plan, label); !valid)
    return valid;
  size_t bytes = elementSize(plan.type);
  int64_t total = 0;
  for (const Transfer &transfer : plan.receives)
    total += transfer.target.count();
  bool stream = total * static_cast<int64_t>(bytes) >= kStreamBytes;
  // Start with the own neighbour, so that not all members read the same one at a time.
  size_t first = 0;
  while (first < plan.receives.size() && plan.receives[first].peer < rank())
    ++first;
  for (size_t i = 0; i < plan.receives.size(); ++i) {
    const Transfer &transfer = plan.receives[(first + i) % plan.receives.size()];
    copyRegion(target, transfer.target, meeting.peer(transfer.peer).source, transfer.source, bytes, stream);
  }
  if (stream)
    streamFence();
  return meeting.part();
}

Status DirectGroup::broadcast(void *data, size_t bytes, int root, const OperationLabel &label) {
  Publication &own = meeting.prepare(Operation::Broadcast, static_cast<int64_t>(bytes), ElementType::Bool,
                                     ReduceKind::Sum, label, root);
  bool small = bytes <= kInlineBytes;
  if (small && rank() == root)
    copyBytes(own.data, data, bytes);
  own.source = data;
  if (Status met = meeting.meet(!small); !met)
    return met;
  if (rank() != root)
    copyBytes(data, small ? meeting.peer(root).data : meeting.peer(root).source, bytes);
  if (!small)
    return meeting.part();
  meeting.finish();
  return Status::ok();
}

} // namespace msc::comm
