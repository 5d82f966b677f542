// Which work is ordered with which, by vector clocks, and whether conflicting accesses of memory are.
#pragma once

#include "test/runtime/device/cuda/RecordingDriver.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

namespace msc::test {

/// Per stream, how much of its work has finished before.
class Clock {
public:
  void merge(const Clock &other) {
    for (const auto &[stream, count] : other.counts)
      counts[stream] = std::max(counts[stream], count);
  }
  uint64_t tick(int stream) { return ++counts[stream]; }
  uint64_t at(int stream) const {
    auto found = counts.find(stream);
    return found == counts.end() ? 0 : found->second;
  }
  bool covers(const Clock &other) const {
    return std::all_of(other.counts.begin(), other.counts.end(),
                       [&](const auto &entry) { return at(entry.first) >= entry.second; });
  }

private:
  std::map<int, uint64_t> counts;
};

/// The accesses so far, as far as later ones may conflict with them.
class AccessHistory {
public:
  /// Work number `clock.at(stream)` of a stream, which comes after everything in `clock`. Returns what conflicts.
  std::string add(int stream, const Clock &clock, const std::vector<Access> &accesses, const std::string &what) {
    std::string conflict;
    for (const Access &access : accesses)
      for (const Record &record : records) {
        bool conflicts =
            record.access.begin < access.end && access.begin < record.access.end && (access.writes || record.access.writes);
        if (conflicts && clock.at(record.stream) < record.number && conflict.empty())
          conflict = fmt::format("{} {} memory that {} {}, and nothing orders them", what, access.writes ? "writes" : "reads",
                                 record.what, record.access.writes ? "writes" : "reads");
      }
    for (const Access &access : accesses) {
      // What this work covers and comes after can conflict with nothing that does not conflict with this work, too.
      std::erase_if(records, [&](const Record &record) {
        bool covered = access.begin <= record.access.begin && record.access.end <= access.end;
        return covered && (access.writes || !record.access.writes) && clock.at(record.stream) >= record.number &&
               (access.writes || record.stream == stream);
      });
    }
    for (const Access &access : accesses)
      records.push_back({access, stream, clock.at(stream), what});
    return conflict;
  }

  /// Work that touches [begin, end) and is not in `clock`; empty: none.
  std::string unfinished(uint64_t begin, uint64_t end, const Clock &clock) const {
    for (const Record &record : records)
      if (record.access.begin < end && begin < record.access.end && clock.at(record.stream) < record.number)
        return record.what;
    return "";
  }
  /// The memory is gone.
  void forget(uint64_t begin, uint64_t end) {
    std::erase_if(records, [&](const Record &record) { return record.access.begin < end && begin < record.access.end; });
  }

private:
  struct Record {
    Access access;
    int stream;
    uint64_t number;
    std::string what;
  };
  std::vector<Record> records;
};

} // namespace msc::test
