// Collectives of some ranks as calls of NCCL.
#pragma once

#include "runtime/comm/nccl/Communicator.h"

namespace msc::comm::nccl {

class NcclGroup final : public StreamGroup {
public:
  /// `handle` is owned by `communicator`.
  NcclGroup(NcclCommunicator &communicator, Handle handle, int rank, int size)
      : communicator(communicator), handle(handle), own(rank), count(size) {}
  int rank() const override { return own; }
  int size() const override { return count; }
  Prepared prepareAllReduce(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                            const OperationLabel &label) override;
  Prepared prepareReduceScatter(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                            const OperationLabel &label) override;
  Prepared prepareAllGather(const void *source, void *target, int64_t count, ElementType type,
                            const OperationLabel &label) override;
  Prepared prepareExchange(std::vector<Message> sends, std::vector<Message> receives, ElementType type,
                            const OperationLabel &label) override;

private:
  NcclCommunicator &communicator;
  Handle handle;
  int own, count;
};

} // namespace msc::comm::nccl
