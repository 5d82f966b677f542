#include "runtime/comm/Communicator.h"

#include "runtime/comm/Region.h"

namespace msc::comm {

Status Group::allReduceMany(std::span<const ReducePart> parts, ElementType type, ReduceKind kind,
                            const OperationLabel &label) {
  size_t size = elementSize(type), total = 0;
  for (const ReducePart &part : parts)
    total += static_cast<size_t>(part.count);
  if (packed.size() < total * size)
    packed.resize(total * size);
  char *at = packed.data();
  for (const ReducePart &part : parts) {
    size_t bytes = static_cast<size_t>(part.count) * size;
    copyBytes(at, part.source, bytes);
    at += bytes;
  }
  if (Status status = allReduce(packed.data(), packed.data(), static_cast<int64_t>(total), type, kind, label); !status)
    return status;
  at = packed.data();
  for (const ReducePart &part : parts) {
    size_t bytes = static_cast<size_t>(part.count) * size;
    copyBytes(part.target, at, bytes);
    at += bytes;
  }
  return {};
}

Status Group::reduceScatterMany(std::span<const ScatterPart> parts, ElementType type, ReduceKind kind,
                                const OperationLabel &label) {
  for (const ScatterPart &part : parts)
    if (Status status = reduceScatter(part.source, part.target, part.pieces, type, kind, label); !status)
      return status;
  return {};
}

} // namespace msc::comm
