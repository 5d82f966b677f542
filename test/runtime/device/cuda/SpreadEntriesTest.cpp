#include "runtime/device/cuda/SpreadEntries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

using namespace msc::device;
using cuda::firstSideStream;
using cuda::spreadEntries;

namespace {

class Nothing final : public Operation {
public:
  msc::Status run() override { return {}; }
};

struct Entries {
  std::array<std::byte, 64> memory;
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<SequenceEntry> list;

  using Range = std::pair<size_t, size_t>;
  SequenceEntry &add(const std::vector<Range> &reads, const std::vector<Range> &writes) {
    operations.push_back(std::make_unique<Nothing>());
    SequenceEntry entry;
    entry.operation = operations.back().get();
    for (auto [begin, end] : reads)
      entry.reads.push_back({&memory[0] + begin, &memory[0] + end});
    for (auto [begin, end] : writes)
      entry.writes.push_back({&memory[0] + begin, &memory[0] + end});
    list.push_back(std::move(entry));
    return list.back();
  }
};

/// before[i][j]: entry i has to be over before entry j starts, by streams and `after`.
std::vector<std::vector<bool>> orderOf(const std::vector<SequenceEntry> &entries) {
  std::vector<std::vector<bool>> before(entries.size(), std::vector<bool>(entries.size(), false));
  std::map<uint32_t, size_t> last;
  for (size_t j = 0; j < entries.size(); ++j) {
    auto follow = [&](size_t i) {
      for (size_t k = 0; k <= i; ++k)
        if (k == i || before[k][i])
          before[k][j] = true;
    };
    if (auto at = last.find(entries[j].stream); at != last.end())
      follow(at->second);
    for (uint32_t i : entries[j].after)
      follow(i);
    last[entries[j].stream] = j;
  }
  return before;
}

bool meet(const std::vector<MemoryRange> &a, const std::vector<MemoryRange> &b) {
  return std::any_of(a.begin(), a.end(), [&](const MemoryRange &one) {
    return std::any_of(b.begin(), b.end(), [&](const MemoryRange &other) { return one.begin < other.end && other.begin < one.end; });
  });
}

bool conflict(const SequenceEntry &a, const SequenceEntry &b) {
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

bool never(const Operation &) { return false; }

TEST(SpreadEntries, KeepsTheOrderOfConflicts) {
  std::mt19937 random(7);
  auto upTo = [&](size_t most) { return std::uniform_int_distribution<size_t>(0, most)(random); };
  size_t moved = 0, unordered = 0;
  for (int round = 0; round < 300; ++round) {
    Entries entries;
    auto ranges = [&] {
      std::vector<Entries::Range> some;
      for (size_t n = upTo(2); n > 0; --n)
        if (size_t begin = upTo(62), bytes = 1 + upTo(8); begin + bytes <= 64)
          some.push_back({begin, begin + bytes});
      return some;
    };
    for (size_t i = 0; i < 40; ++i) {
      SequenceEntry &entry = entries.add(ranges(), ranges());
      entry.isCollective = upTo(9) == 0;
      if (entry.isCollective && i > 0 && upTo(1) == 0)
        entry.stream = 1, entry.after = {static_cast<uint32_t>(i - 1)};
    }
    std::set<const Operation *> stay;
    for (const SequenceEntry &entry : entries.list)
      if (upTo(9) == 0)
        stay.insert(entry.operation);
    std::vector<SequenceEntry> spread = entries.list;
    spreadEntries(spread, 1 + static_cast<unsigned>(upTo(3)), [&](const Operation &operation) { return stay.count(&operation) > 0; });
    std::vector<std::vector<bool>> order = orderOf(spread);
    for (size_t j = 0; j < spread.size(); ++j) {
      const SequenceEntry &now = spread[j], &then = entries.list[j];
      ASSERT_EQ(now.operation, then.operation);
      moved += now.stream != then.stream;
      EXPECT_TRUE(now.stream == then.stream || (then.stream == 0 && !then.isCollective && stay.count(then.operation) == 0));
      EXPECT_TRUE(now.stream < 2 || now.stream >= firstSideStream);
      for (uint32_t i : now.after)
        EXPECT_TRUE(i < j && spread[i].stream != now.stream);
      for (uint32_t i : then.after)
        EXPECT_TRUE(order[i][j]);
      for (size_t i = 0; i < j; ++i) {
        unordered += !order[i][j];
        if (conflict(spread[i], spread[j]) || (then.isCollective && entries.list[i].stream == 0))
          EXPECT_TRUE(order[i][j]) << i << " and " << j;
      }
    }
  }
  EXPECT_GT(moved, 1000u);
  EXPECT_GT(unordered, 10000u);
}

// A chain stays on its stream; what hangs on it goes beside it, and waits for no more than it has to.
TEST(SpreadEntries, ChainsStayTogether) {
  Entries entries;
  for (size_t i = 0; i < 12; i += 2) {
    entries.add({{i, i + 1}}, {{i + 2, i + 3}}); // the chain
    entries.add({{i, i + 1}}, {{i + 3, i + 4}}); // reads what the chain has read
  }
  spreadEntries(entries.list, 2, never);
  for (size_t i = 0; i < entries.list.size(); i += 2) {
    EXPECT_EQ(entries.list[i].stream, 0u);
    EXPECT_TRUE(entries.list[i].after.empty());
    EXPECT_GE(entries.list[i + 1].stream, firstSideStream);
    EXPECT_EQ(entries.list[i + 1].after, i == 0 ? std::vector<uint32_t>{} : std::vector<uint32_t>{static_cast<uint32_t>(i - 2)});
  }
}

TEST(SpreadEntries, WithoutSidesNothingChanges) {
  Entries entries;
  entries.add({}, {{0, 1}}), entries.add({}, {{1, 2}});
  spreadEntries(entries.list, 0, never);
  EXPECT_EQ(entries.list[1].stream, 0u);
}

} // namespace
