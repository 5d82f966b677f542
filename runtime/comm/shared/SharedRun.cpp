#include "runtime/comm/shared/SharedRun.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <new>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace msc::comm {

static uint64_t aligned(uint64_t bytes) { return (bytes + 63) & ~uint64_t{63}; }

void futexWait(std::atomic<uint32_t> &word, uint32_t value, std::chrono::milliseconds limit) {
  timespec span{static_cast<time_t>(limit.count() / 1000), static_cast<long>(limit.count() % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &span, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

size_t SharedRun::bytesFor(size_t ranks) {
  // Room for about 250 groups of all ranks, and for many more small ones.
  size_t perSlot = sizeof(MemberSlot) + sizeof(int64_t);
  return aligned(sizeof(Header)) + ranks * sizeof(RankState) + (ranks + 1) * 256 * perSlot + (size_t{1} << 16);
}

void SharedRun::initialise(void *memory, size_t ranks) {
  Header *header = new (memory) Header;
  header->used = aligned(sizeof(Header));
  header->capacity = bytesFor(ranks);
  for (size_t i = 0; i < ranks; ++i) {
    new (static_cast<char *>(memory) + header->used) RankState;
    header->used += sizeof(RankState);
  }
}

SharedRun::SharedRun(void *memory, std::vector<int64_t> ranks, int64_t rank)
    : memory(memory), allRanks(std::move(ranks)), ownRank(rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    ranksExceedCores = static_cast<int64_t>(allRanks.size()) > CPU_COUNT(&set);
}

bool SharedRun::shares(int64_t rank) const { return std::binary_search(allRanks.begin(), allRanks.end(), rank); }

RankState &SharedRun::state(int64_t rank) {
  size_t index = std::lower_bound(allRanks.begin(), allRanks.end(), rank) - allRanks.begin();
  return *at<RankState>(aligned(sizeof(Header)) + index * sizeof(RankState));
}

Result<RendezvousMemory *> SharedRun::group(const std::vector<int64_t> &members) {
  Header &h = header();
  uint32_t open = 0;
  while (!h.lock.compare_exchange_weak(open, 1, std::memory_order_acquire)) {
    open = 0;
    if (std::optional<Error> first = failure())
      return *first;
    sched_yield();
  }
  Result<RendezvousMemory *> result = makeGroup(members);
  h.lock.store(0, std::memory_order_release);
  return result;
}

Result<RendezvousMemory *> SharedRun::makeGroup(const std::vector<int64_t> &members) {
  Header &h = header();
  for (uint64_t offset = h.firstGroup.load(std::memory_order_acquire); offset;) {
    auto *group = at<RendezvousMemory>(offset);
    const auto *ranks = at<int64_t>(group->ranks);
    if (std::equal(members.begin(), members.end(), ranks, ranks + group->size))
      return group;
    offset = group->next;
  }
  uint64_t ranksAt = h.used + sizeof(RendezvousMemory) + members.size() * sizeof(MemberSlot);
  uint64_t end = aligned(ranksAt + members.size() * sizeof(int64_t));
  if (end > h.capacity)
    return Error{ExitCode::NoResource,
                 "the run needs more groups of ranks than fit in " + std::to_string(h.capacity) +
                     " bytes of shared memory",
                 ""};
  auto *group = new (at<char>(h.used)) RendezvousMemory;
  for (size_t i = 0; i < members.size(); ++i)
    new (group->slots() + i) MemberSlot;
  std::copy(members.begin(), members.end(), at<int64_t>(ranksAt));
  group->size = static_cast<uint32_t>(members.size());
  group->ranks = ranksAt;
  group->next = h.firstGroup.load(std::memory_order_relaxed);
  uint64_t offset = h.used;
  h.used = end;
  h.firstGroup.store(offset, std::memory_order_release);
  return group;
}

template <size_t N> static void copyText(char (&to)[N], const std::string &text) {
  size_t count = std::min(text.size(), N - 1);
  memcpy(to, text.data(), count);
  to[count] = 0;
}

bool SharedRun::fail(int64_t rank, const Error &error, Reporter reporter) {
  FailureRecord &record = header().failure;
  uint32_t none = 0;
  if (!record.state.compare_exchange_strong(none, 1, std::memory_order_seq_cst))
    return false;
  recorded.store(true);
  record.code = static_cast<int32_t>(error.code);
  record.rank = rank;
  copyText(record.message, error.message);
  copyText(record.help, error.help);
  record.reported.store(reporter == Reporter::Elsewhere);
  record.state.store(2, std::memory_order_seq_cst);
  // The failure is visible before the words change: whoever wakes, or is about to sleep, sees it.
  for (uint64_t offset = header().firstGroup.load(std::memory_order_acquire); offset;) {
    auto *group = at<RendezvousMemory>(offset);
    group->generation.fetch_xor(0x80000000u, std::memory_order_seq_cst);
    futexWakeAll(group->generation);
    offset = group->next;
  }
  return true;
}

bool SharedRun::takeReport() {
  if (!hasFailed())
    return false;
  (void)firstCause(); // waits until the record is complete
  return recorded.load() && header().failure.reported.exchange(1) == 0;
}

std::pair<int64_t, Error> SharedRun::firstCause() const {
  const FailureRecord &record = header().failure;
  for (int i = 0; i < 10000 && record.state.load(std::memory_order_acquire) == 1; ++i)
    sched_yield();
  if (record.state.load(std::memory_order_acquire) != 2)
    return {-1, {ExitCode::PeerFailed, "a rank died while it reported a failure", ""}};
  return {record.rank, {static_cast<ExitCode>(record.code), record.message, record.help}};
}

std::optional<Error> SharedRun::failure() const {
  if (!hasFailed())
    return std::nullopt;
  auto [rank, error] = firstCause();
  if (rank >= 0 && rank != ownRank)
    error.message = "rank " + std::to_string(rank) + " failed: " + error.message;
  return error;
}

void SharedRun::enter(const OperationRecord &record) {
  RankState &own = state(ownRank);
  uint64_t words[sizeof(OperationRecord) / 8];
  memcpy(words, &record, sizeof(record));
  for (size_t i = 0; i < std::size(words); ++i)
    own.record[i].store(words[i], std::memory_order_relaxed);
  own.inside.store(1, std::memory_order_relaxed);
}

void SharedRun::enterStep(uint64_t epoch, uint64_t step) {
  state(ownRank).epoch.store(epoch, std::memory_order_relaxed);
  state(ownRank).step.store(step, std::memory_order_relaxed);
}

std::string SharedRun::doing(int64_t rank) {
  RankState &other = state(rank);
  uint64_t words[sizeof(OperationRecord) / 8];
  for (size_t i = 0; i < std::size(words); ++i)
    words[i] = other.record[i].load(std::memory_order_relaxed);
  OperationRecord record;
  memcpy(static_cast<void *>(&record), words, sizeof(record));
  if (record.sequence == 0)
    return "starting";
  std::string text = (other.inside.load(std::memory_order_relaxed) ? "in " : "busy since ") + record.str();
  if (std::string step = currentStep(rank); !step.empty())
    text += ", " + step;
  return text;
}

std::string SharedRun::currentStep(int64_t rank) {
  RankState &other = state(rank);
  uint64_t step = other.step.load(std::memory_order_relaxed);
  return step == 0 ? "" : "epoch " + std::to_string(other.epoch.load(std::memory_order_relaxed)) + " step " + std::to_string(step);
}

std::string SharedRun::whereabouts(int64_t rank) {
  std::string who = "rank " + std::to_string(rank);
  return state(rank).presence.load() == Presence::Expected ? who + " has not started" : who + " is " + doing(rank);
}

std::chrono::milliseconds WaitingTime::sinceStart() {
  Clock::time_point now = Clock::now();
  waited += std::min<Clock::duration>(now - last, std::chrono::seconds(1));
  last = now;
  return std::chrono::duration_cast<std::chrono::milliseconds>(waited);
}

} // namespace msc::comm
