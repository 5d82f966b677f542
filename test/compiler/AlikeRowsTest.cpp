#include "compiler/AlikeRows.h"

#include <gtest/gtest.h>

using namespace msc::compiler;

namespace {

std::vector<Row> rowsOf(int from, int to, int pinned = -1) {
  std::vector<Row> rows;
  for (int i = from; i < to; ++i) {
    std::string layer = "layers." + std::to_string(i);
    rows.push_back({layer + ".norm1.mean", i == pinned ? "((8, 1))" : "((2, 4))"});
    rows.push_back({layer + ".fc", "((2, 4), (4, 1))"});
    rows.push_back({layer + ".norm2.mean", "((2, 4))"});
  }
  return rows;
}

std::vector<Row> joined(std::vector<Row> a, const std::vector<Row> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(AlikeRows, ShowsOneLayer) {
  std::vector<Row> before = {{"embed", "((8, 1))"}}, behind = {{"head", "((8, 1))"}};
  std::vector<Row> rows = joined(joined(before, rowsOf(0, 96)), behind);
  std::vector<Row> expected = joined(joined(before, rowsOf(0, 1)), {{"layers 1..95 alike, 3 rows each"}});
  EXPECT_EQ(foldAlikeRows(rows, {0}), joined(expected, behind));
}

TEST(AlikeRows, ShowsWhatDiffers) {
  std::vector<Row> expected = joined(rowsOf(0, 1), {{"layers 1..2 alike, 3 rows each"}});
  expected = joined(joined(expected, rowsOf(3, 4, 3)), rowsOf(4, 5));
  EXPECT_EQ(foldAlikeRows(rowsOf(0, 9, 3), {0}), joined(expected, {{"layers 5..8 alike, 3 rows each"}}));
}

TEST(AlikeRows, GoesBackwardToo) {
  std::vector<Row> rows;
  for (int i = 11; i >= 0; --i)
    rows.push_back({"AllReduce", "gradient of 'layers." + std::to_string(i) + ".w' sums over 4 pieces"});
  EXPECT_EQ(foldAlikeRows(rows, {1}), joined({rows[0]}, {{"layers 10..0 alike, 1 row each"}}));
}

TEST(AlikeRows, LeavesOtherNumbersAlone) {
  std::vector<Row> rows = {{"a", "1 KiB"}, {"a", "2 KiB"}, {"a", "3 KiB"}};
  EXPECT_EQ(foldAlikeRows(rows, {0}), rows);
  rows = {{"conv1", "x"}, {"conv3", "x"}, {"conv3", "x"}, {"conv3", "x"}};
  EXPECT_EQ(foldAlikeRows(rows, {0}), rows);
  EXPECT_EQ(foldAlikeRows({}, {0}), std::vector<Row>{});
}

} // namespace
