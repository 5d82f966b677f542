// The meeting of the members of one group: everybody shows what it does and waits until all others do the same.
#pragma once

#include "runtime/comm/shared/SharedRun.h"

namespace msc::comm {

/// One member's side of a RendezvousMemory.
///
/// An operation is either `meet` alone (payload in Publication::data), or `meet`, work on peers' memory, `part`. In
/// between, `sync` is one more barrier.
class Rendezvous {
public:
  Rendezvous(SharedRun &run, RendezvousMemory &memory, std::vector<int64_t> members);

  int position() const { return own; }
  int size() const { return static_cast<int>(ranks.size()); }
  const std::vector<int64_t> &members() const { return ranks; }
  SharedRun &run() { return shared; }

  /// The next operation's record, with its number filled in; and where to put pointers and payload.
  Publication &prepare(Operation operation, int64_t count, ElementType type, ReduceKind kind,
                       const OperationLabel &label, int root = 0);
  /// Waits for all members and checks that they agree with the prepared record. With `reads`, peers keep their buffers
  /// alive until `part`.
  Status meet(bool reads);
  /// What a member published for the current operation.
  const Publication &peer(int member) const { return slots[member].publications[turn]; }
  /// Waits until all members have come so far.
  Status sync();
  /// Ends the reading that `meet(true)` began: returns when no member needs this rank's memory any more.
  Status part();
  /// Ends an operation that met without reading.
  void finish() { shared.exit(); }
  /// Fails the run with `error` and returns what this rank reports.
  Error failWith(const Error &error);

private:
  Status waitFor(uint32_t generation);
  Status waitSlowly(uint32_t generation);
  std::optional<Error> released(uint32_t generation, bool &done);
  void reportStall(std::chrono::milliseconds waited);
  std::vector<int64_t> missing() const;
  std::string stallText(std::chrono::milliseconds waited);
  Error leaveFailed();

  SharedRun &shared;
  RendezvousMemory &memory;
  MemberSlot *slots;
  std::vector<int64_t> ranks;
  int own = 0;
  int turn = 0;
  uint64_t operations = 0;
  uint64_t arrivals = 0;
};

} // namespace msc::comm
