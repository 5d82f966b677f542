// How a parameter of several users is stored: a function of their strategies.
#include "passes/sharding/Storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace msc;
using namespace msc::passes;

namespace {

Sharding rows(int64_t devices) { return {{devices}, {{0}, {}}, {}}; }
Sharding columns(int64_t devices) { return {{devices}, {{}, {0}}, {}}; }

TEST(Storage, IsWhatNeedsTheFewestBytes) {
  const Sharding whole = Sharding::replicated(8, 2);
  const Sharding twoRows{{2, 4}, {{0}, {}}, {}};
  EXPECT_EQ(storageOf(std::vector{whole, columns(8), twoRows}, {64, 64}), columns(8));
  EXPECT_EQ(storageOf(std::vector{whole, twoRows}, {64, 64}), twoRows);
  EXPECT_EQ(storageOf(std::vector{whole}, {64, 64}), whole);
  // 9 rows in 8 pieces are 2 on some ranks; 16 columns are 2 on all: 32 against 18 elements.
  EXPECT_EQ(storageOf(std::vector{rows(8), columns(8)}, {9, 16}), columns(8));
}

TEST(Storage, TakesRowsBeforeColumnsOfEqualSize) {
  EXPECT_EQ(storageOf(std::vector{columns(8), rows(8)}, {64, 64}), rows(8));
  const Sharding fourByTwo{{4, 2}, {{0}, {1}}, {}}, twoByFour{{2, 4}, {{0}, {1}}, {}};
  EXPECT_EQ(storageOf(std::vector{twoByFour, fourByTwo, columns(8)}, {64, 64}), fourByTwo);
}

TEST(Storage, DoesNotDependOnTheOrderOfUsers) {
  std::mt19937_64 draw(1);
  std::vector<Sharding> all;
  for (const std::vector<int64_t> &axes : {std::vector<int64_t>{8}, {2, 4}, {4, 2}, {2, 2, 2}})
    for (int code = 0; code < 27; ++code) { // each axis cuts rows, cuts columns, or repeats
      Sharding sharding{axes, {{}, {}}, {}};
      for (int32_t axis = 0, rest = code; axis < static_cast<int32_t>(axes.size()); ++axis, rest /= 3)
        if (rest % 3 < 2)
          sharding.dims[rest % 3].push_back(axis);
      all.push_back(sharding.canonical());
    }
  for (int i = 0; i < 2000; ++i) {
    const Shape shape{static_cast<int64_t>(1 + draw() % 20), static_cast<int64_t>(1 + draw() % 20)};
    std::vector<Sharding> wanted;
    for (uint64_t count = 1 + draw() % 6; wanted.size() < count;)
      wanted.push_back(all[draw() % all.size()]);
    const Sharding stored = storageOf(wanted, shape);
    std::shuffle(wanted.begin(), wanted.end(), draw);
    ASSERT_EQ(storageOf(wanted, shape), stored);
    for (const Sharding &other : wanted) {
      ASSERT_FALSE(isStoredRather(other, stored, shape));
      ASSERT_EQ(isStoredRather(stored, other, shape), stored != other);
    }
  }
}

} // namespace
