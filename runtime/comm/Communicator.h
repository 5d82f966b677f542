// What a rank says to its peers. Implementations: thread (ranks are threads of one process), mpi (plugin), and later shm and
// socket; one conformance suite (test/runtime/comm) runs over all of them. What GPUs say to each other: StreamCommunicator.h.
//
// A World connects all ranks of a run. `group` gives the communicator of some of them. All ranks of a group call the same
// operations in the same order; the plan guarantees it and the checker proves it. Every call blocks until this rank's
// part is done, has a deadline, and returns an error that names the peer when one is gone. Not thread safe: one thread
// per rank uses a World and its groups.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/Sharding.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace msc::comm {

enum class ElementType : uint8_t { F32, F64, I32, I64, Bool, F16, BF16 };
size_t elementSize(ElementType type);

/// A box of elements inside a dense row-major buffer: `offset` and `strides` in elements. Dimensions that are contiguous
/// in both source and target are already merged; the innermost stride is usually 1.
struct Region {
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t count() const { return elementCount(sizes); }
};

/// Elements that this rank receives from (or sends to) one member of the group. `peer` is the position in the group;
/// peer == own position is a local copy. On the receiving side `source` is the region in the peer's buffer and `target`
/// the region in the own one; both have equal sizes.
struct Transfer {
  int32_t peer = 0;
  Region source;
  Region target;
};

/// Everything one rank sends and receives in one exchange, made once at load. `receives` and `sends` are ascending by peer;
/// what rank a lists as received from b, b lists as sent to a, in the same order.
struct ExchangePlan {
  std::vector<Transfer> receives;
  std::vector<Transfer> sends;
  ElementType type = ElementType::F32;
};

/// One tensor of an AllReduce over several: `count` elements.
struct ReducePart {
  const void *source = nullptr;
  void *target = nullptr;
  int64_t count = 0;
};

/// One tensor of a ReduceScatter over several: member m keeps the region `pieces[m]` of `source`.
struct ScatterPart {
  const void *source = nullptr;
  void *target = nullptr;
  std::span<const Region> pieces;
};

/// What an operation is called in messages; owned by the caller for the lifetime of the group.
struct OperationLabel {
  std::string name;  ///< instance name of the step
  std::string place; ///< "net.mir:14"
  std::string forOperator = {}; ///< the operator of the user that needs it
};

/// A communicator over some ranks, in ascending order of global rank.
class Group {
public:
  virtual ~Group() = default;
  /// Own position, 0..size-1.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Global ranks of the members.
  virtual const std::vector<int64_t> &members() const = 0;

  /// target[i] = reduction over members of source[i], added left to right in ascending rank order in the element type
  /// itself, so the bits do not depend on transport, timing or ownership. `source` may equal `target`.
  /// (MPI_Allreduce, ncclAllReduce)
  virtual Status allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                           const OperationLabel &label) = 0;

  /// allReduce of several tensors in one operation: the same bits as one after the other. All members name the same counts.
  /// Packs them into memory of its own unless the communicator knows better.
  virtual Status allReduceMany(std::span<const ReducePart> parts, ElementType type, ReduceKind kind,
                               const OperationLabel &label);

  /// target = reduction over members of the region `pieces[rank()]` of their sources, same order as allReduce. `pieces[m]`
  /// is the region of `source` (equal on all members) that member m keeps; targets are dense. (ncclReduceScatter)
  virtual Status reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                               ReduceKind kind, const OperationLabel &label) = 0;

  /// reduceScatter of several tensors, one after the other unless the communicator knows better.
  virtual Status reduceScatterMany(std::span<const ScatterPart> parts, ElementType type, ReduceKind kind,
                                   const OperationLabel &label);

  /// Moves regions between members: AllGather, AlltoAll, CollectivePermute and Exchange are all of this form; local copies
  /// included. Regions of `source` and `target` do not overlap. (MPI_Alltoallv, grouped ncclSend/ncclRecv)
  virtual Status exchange(const void *source, void *target, const ExchangePlan &plan, const OperationLabel &label) = 0;

  /// All members have arrived. (MPI_Barrier)
  virtual Status barrier(const OperationLabel &label) = 0;

  /// Bytes from member `root` to all. Host memory. (MPI_Bcast)
  virtual Status broadcast(void *data, size_t bytes, int root, const OperationLabel &label) = 0;

private:
  std::vector<char> packed; ///< of allReduceMany; grows to the largest call
};

/// All ranks of a run, seen from one of them.
class World {
public:
  virtual ~World() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// Ranks on this host, and the own position among them.
  virtual int64_t localSize() const = 0;
  virtual int64_t localRank() const = 0;
  /// "threads", "mpi", ...: the word of the first line on stderr.
  virtual const char *transport() const = 0;
  /// The communicator of `ranks` (ascending, this rank among them). All members call it in the same order. Cached: the same
  /// list gives the same group. Never null on success; owned by the World.
  virtual Result<Group *> group(const std::vector<int64_t> &ranks) = 0;
  /// Tells all ranks that this one has failed: they leave their current operation with PeerFailed and this error's code
  /// and message as the first cause. Idempotent, callable from any thread.
  virtual void abort(const Error &error) = 0;
  /// The first failure that any rank has reported, if one has; a peer that has died counts. Callable from any thread.
  virtual std::optional<Error> firstFailure() = 0;
  /// True for one call of one rank of a host: its caller prints firstFailure(). Callable from any thread.
  virtual bool takeReport() = 0;
  /// Says where the training stands, for messages about this rank. Both from 1.
  virtual void enterStep(uint64_t epoch, uint64_t step) = 0;
  /// "epoch 1 step 3": what enterStep() was told last; empty before. Callable from any thread.
  virtual std::string currentStep() { return ""; }
  /// Longest time without progress inside one operation before it fails with Timeout; zero: no limit (a line on stderr
  /// after 5 s all the same).
  virtual void setTimeout(std::chrono::milliseconds limit) = 0;
  virtual std::chrono::milliseconds timeout() const = 0;
};

} // namespace msc::comm
