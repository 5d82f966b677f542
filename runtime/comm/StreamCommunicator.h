// Collectives in the memory of devices, put on their streams like kernels. Implementations: nccl (a plugin), and cuda_local,
// which the CUDA backend has for ranks on one GPU.
//
// A World connects the same ranks on their hosts: it starts these communicators, and carries what ends them.
#pragma once

#include "runtime/comm/Communicator.h"

namespace msc::comm {

/// A stream as the driver of the device calls it: CUstream.
using StreamHandle = void *;

/// How all ranks of a run fall into groups: for every rank the lowest rank of its group.
using Partition = std::vector<int64_t>;

/// One operation with final addresses.
class StreamCall {
public:
  virtual ~StreamCall() = default;
  /// Puts the operation on a stream, and does not wait for it. All members enqueue the calls of all their groups in the same
  /// order, which is that of the plan.
  virtual Status enqueue(StreamHandle stream) = 0;
};

/// Dense elements that go to the member at position `peer`, or come from it.
struct Message {
  int32_t peer = 0;
  std::byte *data = nullptr;
  int64_t count = 0;
};

/// Some ranks in ascending order, seen from one of them. Addresses are of device memory. The calls are prepared by all members in
/// the same order; `label` names them in messages.
class StreamGroup {
public:
  using Prepared = Result<std::unique_ptr<StreamCall>>;
  virtual ~StreamGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Of several tensors; all members name the same counts. (ncclAllReduce)
  virtual Prepared prepareAllReduce(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                    const OperationLabel &label) = 0;
  /// Of several tensors: sources have size() blocks of `count` elements, targets one. (ncclReduceScatter)
  virtual Prepared prepareReduceScatter(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                        const OperationLabel &label) = 0;
  /// The target has size() blocks of `count` elements. (ncclAllGather)
  virtual Prepared prepareAllGather(const void *source, void *target, int64_t count, ElementType type,
                                    const OperationLabel &label) = 0;
  /// All messages at once: what a sends to b, b lists as received from a, in the same order. None goes to the rank itself.
  /// (ncclSend and ncclRecv in a group)
  virtual Prepared prepareExchange(std::vector<Message> sends, std::vector<Message> receives, ElementType type,
                                   const OperationLabel &label) = 0;
};

/// What one rank has of such a communicator. Used by that rank's thread. Its end gives up what is in flight, unless close() was
/// called.
class StreamCommunicator {
public:
  virtual ~StreamCommunicator() = default;
  /// The own group of a partition. All ranks of the run call it with the same partitions in the same order. Owned by the
  /// communicator; null where the rank is alone.
  virtual Result<StreamGroup *> group(const Partition &partition) = 0;
  /// Calls may be captured into a graph; else enqueue() meets the peers and graphs end before it.
  virtual bool isCapturable() const = 0;
  /// Memory of the current device that peers can reach best; null: any will do. Lives as long as the communicator.
  virtual Result<void *> allocate(size_t bytes) = 0;
  /// Says that the rank waits for its device, or does so no longer: with a time limit, waiting must not take longer.
  virtual void setWaiting(bool waiting) = 0;
  /// The first failure of any rank or of the communication. To be asked when a wait has ended: after a failure work on streams
  /// ends without a result.
  virtual Status check() = 0;
  /// Gives up what is in flight; streams can be waited for then.
  virtual void abort() = 0;
  /// Ends the communication in agreement with all ranks: everything was waited for, no graph holds calls any more.
  virtual Status close() = 0;
  /// After abort(): peers may still read and write memory of this device, which nobody may free then; the end of the process does.
  virtual bool leavesMemory() const { return false; }
};

/// Where StreamCommunicators come from; shared by the ranks of a process.
class StreamTransport {
public:
  virtual ~StreamTransport() = default;
  /// "NCCL 2.28.9".
  virtual const std::string &name() const = 0;
  /// Connects all ranks of `world`, which outlives the result; each has made its device that of the calling thread.
  virtual Result<std::unique_ptr<StreamCommunicator>> connect(World &world) = 0;
};

} // namespace msc::comm
