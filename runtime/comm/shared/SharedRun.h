// What the ranks of one host share to find, wait for and fail each other: plain memory that both threads of one process
// and processes with a shared mapping can use. It holds no addresses, only offsets and atomics.
//
//   [ failure record | one RankState per rank | groups: RendezvousMemory, one per list of ranks, made on first use ]
#pragma once

#include "runtime/comm/Operation.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

namespace msc::comm {

/// At most this many bytes of payload travel with the header: one rendezvous instead of two.
constexpr size_t kInlineBytes = 4096;

/// The first failure of the run. `state`: 0 none, 1 being written, 2 readable.
struct FailureRecord {
  std::atomic<uint32_t> state{0};
  /// 1: somebody has printed it, or will.
  std::atomic<uint32_t> reported{0};
  int32_t code = 0;
  int64_t rank = 0;
  char message[1024] = {};
  char help[256] = {};
};

/// Where a rank is in its life.
enum class Presence : uint32_t { Expected, Here, Left, LeftFailed };

struct alignas(64) RankState {
  std::atomic<Presence> presence{Presence::Expected};
  std::atomic<int64_t> process{0};   ///< process id, 0 for threads
  /// What the rank did last, readable by others while it changes: words of an OperationRecord, and whether it is inside.
  std::atomic<uint32_t> inside{0};
  /// Where the training stands, from 1; 0: not in the loop.
  std::atomic<uint64_t> epoch{0}, step{0};
  std::atomic<uint64_t> record[sizeof(OperationRecord) / 8] = {};
};

/// What one member shows the others for one operation. Two per member, used in turn: a slow member may still read the
/// last operation while a fast one publishes the next.
struct alignas(64) Publication {
  OperationRecord record;
  const void *source = nullptr;       ///< threads only
  void *target = nullptr;             ///< threads only
  const ExchangePlan *plan = nullptr; ///< threads only
  uint64_t extra = 0;                 ///< meaning depends on the operation
  alignas(64) char data[kInlineBytes];
};

struct alignas(64) MemberSlot {
  std::atomic<uint64_t> arrivals{0};  ///< rendezvous that this member has reached
  std::atomic<uint32_t> reading{0};   ///< it may be reading memory of its peers
  Publication publications[2];
};

/// One group: a barrier whose last arrival releases all, and the members' slots, which follow in memory.
struct alignas(64) RendezvousMemory {
  std::atomic<uint32_t> generation{0}; ///< changes with every release and every failure
  std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<uint32_t> arrived{0};
  uint32_t size = 0;
  uint64_t next = 0;                   ///< offset of the next group, 0 = last
  uint64_t ranks = 0;                  ///< offset of `size` int64_t
  MemberSlot *slots() { return reinterpret_cast<MemberSlot *>(this + 1); }
};

/// The view that one rank has of the shared memory: one per World, which owns it.
class SharedRun {
public:
  /// Bytes that `ranks` ranks need; untouched pages cost nothing.
  static size_t bytesFor(size_t ranks);
  /// Lays out zeroed memory of bytesFor(ranks.size()) bytes; once per run, before any view exists.
  static void initialise(void *memory, size_t ranks);

  /// `ranks`: the global ranks that share `memory`, ascending; `rank`: this one.
  SharedRun(void *memory, std::vector<int64_t> ranks, int64_t rank);

  int64_t rank() const { return ownRank; }
  const std::vector<int64_t> &ranks() const { return allRanks; }
  bool shares(int64_t rank) const;
  RankState &state(int64_t rank);

  /// The memory of the group of `members`, made on the first call of any of them.
  Result<RendezvousMemory *> group(const std::vector<int64_t> &members);

  /// Who prints a failure: the rank that recorded it, or somebody on another host.
  enum class Reporter { Here, Elsewhere };
  /// Records the first failure and wakes everybody; false if there is one already. `rank`: who failed, or -1 if the message
  /// says it.
  bool fail(int64_t rank, const Error &error, Reporter reporter = Reporter::Here);
  /// True once: for the view that recorded the failure, unless it is reported elsewhere.
  bool takeReport();
  /// True if the recorded failure came in through this view: it then tells those who do not share the memory.
  bool recordedHere() const { return recorded.load(); }
  /// The failure as it was recorded, without the name of the rank.
  std::pair<int64_t, Error> firstCause() const;
  bool hasFailed() const { return header().failure.state.load(std::memory_order_seq_cst) != 0; }
  /// The recorded failure as this rank reports it: the cause itself for the rank that failed, "rank 3 failed: ..." for
  /// its peers; the code is that of the cause.
  std::optional<Error> failure() const;

  /// Says what this rank does, for the stall lines of others.
  void enter(const OperationRecord &record);
  void exit() { state(ownRank).inside.store(0, std::memory_order_relaxed); }
  void enterStep(uint64_t epoch, uint64_t step);
  /// "epoch 1 step 3", or empty: as that rank said last.
  std::string currentStep(int64_t rank);
  /// What a rank does, or did when it died: "in AllReduce 'a' ..., epoch 1 step 4" or "busy since AllReduce 'a' ...".
  std::string doing(int64_t rank);
  /// "rank 2 is in AllReduce 'a' ..." or "rank 2 has not started".
  std::string whereabouts(int64_t rank);

  /// Longest wait without progress; zero: no limit.
  std::chrono::milliseconds timeout{0};
  /// After so long without progress a line goes to stderr.
  std::chrono::milliseconds stallAfter{5000};
  /// Called now and then by a rank that waits, e.g. to look for messages from other hosts.
  std::function<void()> idle;
  /// Spinning and yielding pay off only while every rank has a core.
  bool ranksExceedCores = false;

private:
  struct Header {
    FailureRecord failure;
    alignas(64) std::atomic<uint32_t> lock{0};
    std::atomic<uint64_t> firstGroup{0};
    uint64_t used = 0;
    uint64_t capacity = 0;
  };
  Header &header() const { return *static_cast<Header *>(memory); }
  template <typename T> T *at(uint64_t offset) const {
    return reinterpret_cast<T *>(static_cast<char *>(memory) + offset);
  }
  Result<RendezvousMemory *> makeGroup(const std::vector<int64_t> &members);

  void *memory;
  std::vector<int64_t> allRanks;
  int64_t ownRank;
  std::atomic<bool> recorded{false};
};

/// How long a rank has waited for its peers. While the rank itself did not run (it was stopped, the machine slept), the peers
/// are not late: of the time between two looks, at most a second counts.
class WaitingTime {
public:
  std::chrono::milliseconds sinceStart();

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
  Clock::duration waited{0};
};

/// Sleeps while `word` holds `value`, at most for `limit`; other processes that map the word can wake it.
void futexWait(std::atomic<uint32_t> &word, uint32_t value, std::chrono::milliseconds limit);
void futexWakeAll(std::atomic<uint32_t> &word);

} // namespace msc::comm
