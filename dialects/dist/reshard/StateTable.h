// What a search knows of the states that it has met: a hash table in two arrays.
#pragma once

#include "dialects/dist/reshard/State.h"

#include <limits>
#include <vector>

namespace msc::dist {

/// Entries are found by state and named by number; they are never taken out.
class StateTable {
public:
  struct Entry {
    State state;
    double us = std::numeric_limits<double>::infinity(); ///< the least known from the start
    double bound = -1;                                   ///< the least to the goal; negative: not asked yet
    int64_t elements = -1;                               ///< of the largest shard; negative: not asked yet
  };

  StateTable() : slots(256, empty) {}

  /// The entry of the state, a new one where there is none. The reference lives until the next call.
  Entry &operator[](const State &state) {
    uint32_t *slot = find(state);
    if (*slot != empty)
      return entries[*slot];
    if (2 * (entries.size() + 1) > slots.size()) {
      grow();
      slot = find(state);
    }
    *slot = static_cast<uint32_t>(entries.size());
    return entries.emplace_back(Entry{state});
  }

private:
  static constexpr uint32_t empty = UINT32_MAX;

  uint32_t *find(const State &state) {
    size_t mask = slots.size() - 1;
    for (size_t at = hashOf(state) & mask;; at = (at + 1) & mask)
      if (slots[at] == empty || entries[slots[at]].state == state)
        return &slots[at];
  }

  void grow() {
    slots.assign(slots.size() * 4, empty);
    for (uint32_t i = 0; i < entries.size(); ++i)
      *find(entries[i].state) = i;
  }

  std::vector<uint32_t> slots; ///< a power of two; numbers of entries, linear probing
  std::vector<Entry> entries;
};

} // namespace msc::dist
