#include "runtime/comm/shared/Rendezvous.h"

#include "runtime/Yield.h"
#include "runtime/messages/Catalogue.h"

#include <algorithm>
#include <cstdio>
#include <emmintrin.h>
#include <sched.h>

namespace msc::comm {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Rendezvous::Rendezvous(SharedRun &run, RendezvousMemory &memory, std::vector<int64_t> members)
    : shared(run), memory(memory), slots(memory.slots()), ranks(std::move(members)) {
  own = static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), run.rank()) - ranks.begin());
}

Publication &Rendezvous::prepare(Operation operation, int64_t count, ElementType type, ReduceKind kind,
                                 const OperationLabel &label, int root) {
  turn ^= 1;
  Publication &publication = slots[own].publications[turn];
  publication.record = makeRecord(operation, ++operations, count, type, kind, label, root);
  shared.enter(publication.record);
  return publication;
}

Status Rendezvous::meet(bool reads) {
  if (Status met = sync(); !met)
    return met;
  // Announce the reading before looking for a failure: a failed owner of memory looks in the other order.
  if (reads)
    slots[own].reading.store(1, std::memory_order_seq_cst);
  if (shared.hasFailed())
    return leaveFailed();
  const OperationRecord &first = peer(0).record;
  for (int m = 1; m < size(); ++m)
    if (!first.agreesWith(peer(m).record))
      return failWith(mismatchError(ranks[0], first, ranks[m], peer(m).record));
  return Status::ok();
}

Status Rendezvous::part() {
  slots[own].reading.store(0, std::memory_order_seq_cst);
  Status parted = sync();
  shared.exit();
  return parted;
}

Error Rendezvous::failWith(const Error &error) {
  // All members find the same disagreement: it belongs to no rank.
  shared.fail(-1, error);
  return leaveFailed();
}

Error Rendezvous::leaveFailed() {
  slots[own].reading.store(0, std::memory_order_seq_cst);
  shared.exit();
  // Peers that met before the failure may still read this rank's buffers; they finish soon, unless they are gone.
  for (int m = 0; m < size(); ++m)
    while (slots[m].reading.load(std::memory_order_seq_cst) && shared.state(ranks[m]).process.load() == 0)
      sched_yield();
  return *shared.failure();
}

Status Rendezvous::sync() {
  if (shared.hasFailed())
    return leaveFailed();
  uint32_t generation = memory.generation.load(std::memory_order_acquire);
  slots[own].arrivals.store(++arrivals, std::memory_order_relaxed);
  if (memory.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == memory.size) {
    memory.arrived.store(0, std::memory_order_relaxed);
    memory.generation.fetch_add(1, std::memory_order_seq_cst);
    if (memory.sleepers.load(std::memory_order_seq_cst))
      futexWakeAll(memory.generation);
    return Status::ok();
  }
  return waitFor(generation);
}

std::optional<Error> Rendezvous::released(uint32_t generation, bool &done) {
  done = memory.generation.load(std::memory_order_acquire) != generation;
  if (done && shared.hasFailed())
    return leaveFailed();
  return std::nullopt;
}

Status Rendezvous::waitFor(uint32_t generation) {
  bool done = false;
  auto check = [&]() -> std::optional<Error> { return released(generation, done); };
  if (!shared.ranksExceedCores)
    for (int i = 0; i < 64; ++i) {
      if (std::optional<Error> error = check(); error || done)
        return error ? Status(*error) : Status::ok();
      _mm_pause();
    }
  // About 100 us of yielding, then sleep: the clock costs more than a yield, so it is read now and then.
  Clock::time_point until = Clock::now() + std::chrono::microseconds(100);
  bool isMyTurn = true;
  do {
    for (int i = 0; i < 16 && isMyTurn; ++i) {
      if (std::optional<Error> error = check(); error || done)
        return error ? Status(*error) : Status::ok();
      isMyTurn = yieldBriefly();
    }
  } while (isMyTurn && Clock::now() < until);
  return waitSlowly(generation);
}

Status Rendezvous::waitSlowly(uint32_t generation) {
  WaitingTime time;
  milliseconds nextReport = shared.stallAfter;
  for (;;) {
    memory.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!shared.hasFailed())
      futexWait(memory.generation, generation, milliseconds(50));
    memory.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    bool done = false;
    if (std::optional<Error> error = released(generation, done))
      return *error;
    if (done)
      return Status::ok();
    if (shared.idle)
      shared.idle();
    if (shared.hasFailed())
      return leaveFailed();
    for (int64_t rank : missing())
      if (shared.state(rank).presence.load() == Presence::Left)
        shared.fail(rank, {ExitCode::PeerFailed,
                           "it ended while its peers wait in " + slots[own].publications[turn].record.str(), ""});
    milliseconds waited = time.sinceStart();
    if (shared.timeout.count() && waited >= shared.timeout && !shared.hasFailed())
      shared.fail(-1, {ExitCode::Timeout, stallText(waited), "raise --timeout if the ranks are only slow"});
    if (waited >= nextReport) {
      reportStall(waited);
      nextReport *= 4;
    }
  }
}

std::vector<int64_t> Rendezvous::missing() const {
  std::vector<int64_t> absent;
  for (int m = 0; m < static_cast<int>(ranks.size()); ++m)
    if (slots[m].arrivals.load(std::memory_order_relaxed) < arrivals)
      absent.push_back(ranks[m]);
  return absent;
}

std::string Rendezvous::stallText(milliseconds waited) {
  std::vector<int64_t> absent = missing();
  std::string text = slots[own].publications[turn].record.str() + " of " + std::to_string(ranks.size()) +
                     " ranks made no progress for " + std::to_string(waited.count() / 1000) + "." +
                     std::to_string(waited.count() / 100 % 10) + " s: waiting for " + rankList(absent);
  for (size_t i = 0; i < absent.size() && i < 4; ++i)
    text += "; " + shared.whereabouts(absent[i]);
  return text;
}

void Rendezvous::reportStall(milliseconds waited) {
  // One line per stuck group: the first of those who wait speaks.
  for (int m = 0; m < own; ++m)
    if (slots[m].arrivals.load(std::memory_order_relaxed) >= arrivals)
      return;
  if (!missing().empty())
    fprintf(stderr, "%s\n", messages::translatedLine("msrun: warning: " + stallText(waited)).c_str());
}

} // namespace msc::comm
