// How ranks on one GPU reach each other's memory and wait for each other's work: as threads of one process, or as processes by CUDA IPC.
#pragma once

#include "runtime/device/cuda/Operations.h"

#include <array>

namespace msc::device::cuda {

/// An address of a rank's device memory, as its peers are told. For processes: an allocation, and bytes from its beginning; for threads the address itself.
struct PeerAddress {
  std::array<char, sizeof(CUipcMemHandle)> allocation = {};
  uint64_t offset = 0;
};

/// The members of a group wait for each other.
class StreamMeeting {
public:
  virtual ~StreamMeeting() = default;
  /// What all members had put on their streams before is over for what this rank puts on `stream` next. All members call it, as often; their hosts meet.
  virtual Status meet(CUstream stream, const comm::OperationLabel &label) = 0;
};

/// One rank's access to the memory of all ranks of the run. Used by that rank's thread.
class PeerAccess {
public:
  virtual ~PeerAccess() = default;
  /// For peers: where `address` lies.
  virtual Result<PeerAddress> tell(const void *address) = 0;
  /// Where this rank finds what `rank` told, itself included.
  virtual Result<std::byte *> find(const PeerAddress &told, int64_t rank) = 0;
  virtual Result<std::unique_ptr<StreamMeeting>> meeting(comm::Group &hosts) = 0;
  /// Everybody agrees that the run ends, after waiting for all own work: behind this, nobody uses memory of the others.
  virtual Status close() = 0;
  /// The same without agreement. False: peers may still use memory of this rank. Idempotent.
  virtual bool leave() = 0;
};

/// `all`: all ranks, on the GPU of `shared`; `isOneProcess`: they are threads.
Result<std::unique_ptr<PeerAccess>> openPeerAccess(Shared &shared, comm::Group &all, bool isOneProcess);

} // namespace msc::device::cuda
