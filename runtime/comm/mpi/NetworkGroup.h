// Collectives of processes on several hosts: MPI moves the pieces, the owner of a piece adds them in rank order.
#pragma once

#include "runtime/comm/mpi/Connection.h"

namespace msc::comm {

class NetworkGroup final : public Group {
public:
  NetworkGroup(SharedRun &run, Connection &connection, std::vector<int64_t> members);

  int rank() const override { return own; }
  int size() const override { return static_cast<int>(ranks.size()); }
  const std::vector<int64_t> &members() const override { return ranks; }
  Status allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                   const OperationLabel &label) override;
  Status reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                       ReduceKind kind, const OperationLabel &label) override;
  Status exchange(const void *source, void *target, const ExchangePlan &plan, const OperationLabel &label) override;
  Status barrier(const OperationLabel &label) override;
  Status broadcast(void *data, size_t bytes, int root, const OperationLabel &label) override;

private:
  /// What every operation starts with, from each member to each other.
  struct Hello {
    OperationRecord record;
    char data[kInlineBytes];
  };
  /// Sends record and payload to all members and checks theirs. `payload` bytes of outgoing[m].data are filled by the caller.
  Status hello(const OperationRecord &record, size_t payload);
  OperationRecord next(Operation operation, int64_t count, ElementType type, ReduceKind kind,
                       const OperationLabel &label, int root = 0);
  Status finish(Status status);
  Error failWith(const Error &error);
  /// Memory that is kept between operations.
  char *scratch(std::vector<char> &memory, int64_t bytes);
  Status moveExchange(const void *source, void *target, const ExchangePlan &plan, const OperationRecord &record);

  SharedRun &run;
  Connection &connection;
  std::vector<int64_t> ranks;
  int own = 0;
  uint64_t operations = 0;
  std::vector<Hello> outgoing, incoming;
  std::vector<char> sendMemory, receiveMemory;
};

} // namespace msc::comm
