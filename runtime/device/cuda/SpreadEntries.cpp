#include "runtime/device/cuda/SpreadEntries.h"

#include <algorithm>
#include <map>
#include <set>

namespace msc::device::cuda {
namespace {

/// Who wrote, and has read since, each part of the memory.
class MemoryUsers {
public:
  MemoryUsers() { parts[nullptr]; }

  /// Earlier entries that `entry`, which uses memory now, has to come after.
  std::set<uint32_t> use(uint32_t number, const SequenceEntry &entry) {
    std::set<uint32_t> before;
    for (const MemoryRange &range : entry.reads)
      forEach(range, [&](Users &users) {
        if (users.writer >= 0)
          before.insert(static_cast<uint32_t>(users.writer));
        users.readers.push_back(number);
      });
    for (const MemoryRange &range : entry.writes)
      forEach(range, [&](Users &users) {
        if (users.writer >= 0)
          before.insert(static_cast<uint32_t>(users.writer));
        before.insert(users.readers.begin(), users.readers.end());
        users = {number, {}};
      });
    before.erase(number);
    return before;
  }

private:
  struct Users {
    int64_t writer = -1; ///< none
    std::vector<uint32_t> readers;
  };

  /// The part that begins at `address`.
  std::map<const std::byte *, Users>::iterator cutAt(const std::byte *address) {
    auto next = parts.upper_bound(address), at = std::prev(next);
    return at->first == address ? at : parts.emplace_hint(next, address, at->second);
  }
  template <typename Visit> void forEach(const MemoryRange &range, Visit visit) {
    auto end = cutAt(range.end);
    for (auto at = cutAt(range.begin); at != end; ++at)
      visit(at->second);
  }

  std::map<const std::byte *, Users> parts; ///< by where they begin; each ends where the next one begins
};

class Spreader {
public:
  Spreader(std::vector<SequenceEntry> &entries, unsigned sides) : entries(entries), sides(sides) {
    streams = {0};
    for (uint32_t side = 0; side < sides; ++side)
      streams.push_back(firstSideStream + side);
    for (const SequenceEntry &entry : entries)
      if (entry.stream != 0 && slotOf(entry.stream) == streams.size())
        streams.push_back(entry.stream);
    tails.assign(streams.size(), -1);
  }

  void run(const std::function<bool(const Operation &)> &stays) {
    MemoryUsers users;
    for (uint32_t number = 0; number < entries.size(); ++number) {
      SequenceEntry &entry = entries[number];
      std::set<uint32_t> before = users.use(number, entry);
      before.insert(entry.after.begin(), entry.after.end());
      if (entry.isCollective)
        for (size_t slot = 0; slot <= sides; ++slot)
          if (tails[slot] >= 0)
            before.insert(static_cast<uint32_t>(tails[slot]));
      bool mayMove = entry.stream == 0 && !entry.isCollective && !stays(*entry.operation);
      place(number, before, mayMove ? choose(before) : slotOf(entry.stream));
    }
  }

private:
  /// For each stream its last entry that is known to be over; -1: none.
  using Clock = std::vector<int64_t>;

  size_t slotOf(uint32_t stream) const { return static_cast<size_t>(std::find(streams.begin(), streams.end(), stream) - streams.begin()); }

  static void join(Clock &clock, const Clock &other) {
    std::transform(clock.begin(), clock.end(), other.begin(), clock.begin(), [](int64_t a, int64_t b) { return std::max(a, b); });
  }

  /// The stream that ends with what the entry waits for; or one all of which it waits for; or the side stream that was left alone for longest.
  size_t choose(const std::set<uint32_t> &before) const {
    Clock known(streams.size(), -1);
    for (auto last = before.rbegin(); last != before.rend(); ++last) {
      if (size_t slot = slots[*last]; slot <= sides && tails[slot] == *last)
        return slot;
      join(known, clocks[*last]);
    }
    for (size_t slot = 0; slot <= sides; ++slot)
      if (tails[slot] <= known[slot])
        return slot;
    return static_cast<size_t>(std::min_element(tails.begin() + 1, tails.begin() + 1 + sides) - tails.begin());
  }

  void place(uint32_t number, const std::set<uint32_t> &before, size_t slot) {
    SequenceEntry &entry = entries[number];
    Clock clock = tails[slot] >= 0 ? clocks[static_cast<size_t>(tails[slot])] : Clock(streams.size(), -1);
    entry.stream = streams[slot];
    entry.after.clear();
    for (auto last = before.rbegin(); last != before.rend(); ++last)
      if (clock[slots[*last]] < *last) {
        entry.after.push_back(*last);
        join(clock, clocks[*last]);
      }
    clock[slot] = number;
    tails[slot] = number;
    slots.push_back(slot);
    clocks.push_back(std::move(clock));
  }

  std::vector<SequenceEntry> &entries;
  const size_t sides;
  std::vector<uint32_t> streams; ///< stream 0, its sides, and others of the plan
  std::vector<int64_t> tails;    ///< the last entry of each
  std::vector<size_t> slots;     ///< of each entry
  std::vector<Clock> clocks;     ///< when each entry is over
};

} // namespace

void spreadEntries(std::vector<SequenceEntry> &entries, unsigned sides, const std::function<bool(const Operation &)> &stays) {
  if (sides > 0)
    Spreader(entries, sides).run(stays);
}

} // namespace msc::device::cuda
