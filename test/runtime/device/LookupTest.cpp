// Look-ups and sums by number on parts of a table: what the ranks find adds up to what one rank finds.
#include "test/runtime/device/RunCall.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace msc;
using namespace msc::device;

namespace {

plan::DataType typeOf(float) { return plan::F32; }
plan::DataType typeOf(double) { return plan::F64; }
plan::DataType typeOf(int32_t) { return plan::I32; }
plan::DataType typeOf(int64_t) { return plan::I64; }

/// A tensor of which a rank holds `box`; empty: all of it.
template <typename T> CallTensor tensor(std::vector<T> &data, std::vector<int64_t> shape, Box box = {}) {
  if (box.empty())
    for (int64_t size : shape)
      box.push_back({0, size});
  data.resize(static_cast<size_t>(elementCount(box)));
  return {typeOf(T()), std::move(shape), std::move(box), reinterpret_cast<std::byte *>(data.data())};
}

template <typename T> std::vector<T> numbers(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T(1));
  return values;
}

TEST(Lookups, PartsOfATableAddUpToTheWhole) {
  // A table of 2 x 7 x 3 along dimension 1, whole and over three ranks by rows.
  std::vector<double> table = numbers<double>(42), whole, sum(2 * 5 * 3);
  std::vector<int64_t> indices{6, 0, 3, 3, 2};
  auto lookUp = [&](std::vector<double> &part, Range rows, std::vector<double> &found) {
    CallSpec spec{"Gather", {tensor(part, {2, 7, 3}, {{0, 2}, rows, {0, 3}}), tensor(indices, {5})}, {tensor(found, {2, 5, 3})}};
    spec.attributes.set("axis", {-2});
    spec.tasks = 4;
    ASSERT_TRUE(runCall(spec));
  };
  lookUp(table, {0, 7}, whole);
  for (int64_t i = 0; i < 30; ++i)
    EXPECT_EQ(whole[i], 1 + (i / 15) * 21 + indices[i / 3 % 5] * 3 + i % 3) << i;
  for (int64_t rank = 0; rank < 3; ++rank) {
    Range rows = pieceOf(7, rank, 3);
    std::vector<double> part, found;
    for (int64_t outer = 0; outer < 2; ++outer)
      part.insert(part.end(), table.begin() + outer * 21 + rows.begin * 3, table.begin() + outer * 21 + rows.end * 3);
    lookUp(part, rows, found);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += found[i];
  }
  EXPECT_EQ(sum, whole);
}

TEST(Lookups, SumsOfRowsAreThoseOfThePart) {
  std::vector<float> rows = numbers<float>(12), sums;
  std::vector<int32_t> ids{1, -1, 4, 1, 9, 3};
  CallSpec spec{"UnsortedSegmentSum", {tensor(rows, {6, 2}), tensor(ids, {6})}, {tensor(sums, {5, 2})}};
  spec.tasks = 3;
  ASSERT_TRUE(runCall(spec));
  EXPECT_EQ(sums, (std::vector<float>{0, 0, 1 + 7, 2 + 8, 0, 0, 11, 12, 5, 6}));
  spec.results = {tensor(sums, {5, 2}, {{3, 5}, {0, 2}})};
  ASSERT_TRUE(runCall(spec));
  EXPECT_EQ(sums, (std::vector<float>{11, 12, 5, 6}));
  spec.kernel = "GatherGrad";
  spec.operands = {tensor(ids, {6}), tensor(rows, {6, 2})};
  spec.attributes.set("offset", {-1}); // -1 is row 0
  spec.results = {tensor(sums, {5, 2})};
  ASSERT_TRUE(runCall(spec));
  EXPECT_EQ(sums, (std::vector<float>{3, 4, 0, 0, 1 + 7, 2 + 8, 0, 0, 11, 12}));
}

TEST(Lookups, TasksAddInTheOrderOfTheRows) {
  // Against a plain loop, over every width that has a kernel of its own and numbers of tasks that leave slices uneven.
  for (int64_t width : {1, 2, 3, 4, 8, 11})
    for (int64_t tasks : {1, 2, 3, 7, 64})
      for (int64_t outer : {1, 2})
        for (Range part : {Range{0, 37}, Range{5, 18}, Range{36, 37}}) {
          constexpr int64_t size = 37, count = 201;
          std::vector<float> rows(static_cast<size_t>(outer * count * width)), sums;
          std::vector<int32_t> ids(count);
          for (int64_t n = 0; n < count; ++n)
            ids[n] = static_cast<int32_t>(n * n * 7 % 53) - 4; // some number nothing
          for (size_t i = 0; i < rows.size(); ++i)
            rows[i] = 1.0f / static_cast<float>(i + 1);
          CallSpec spec{"GatherGrad", {tensor(ids, {count}), tensor(rows, {outer, count, width})},
                        {tensor(sums, {outer, size, width}, {{0, outer}, part, {0, width}})}};
          spec.attributes.set("axis", {1});
          spec.tasks = tasks;
          ASSERT_TRUE(runCall(spec));
          std::vector<float> expected(sums.size());
          for (int64_t o = 0; o < outer; ++o)
            for (int64_t n = 0; n < count; ++n)
              for (int64_t i = 0; i < width; ++i)
                if (ids[n] >= part.begin && ids[n] < part.end)
                  expected[(o * part.size() + ids[n] - part.begin) * width + i] += rows[(o * count + n) * width + i];
          ASSERT_EQ(sums, expected) << width << " wide, " << tasks << " tasks, rows " << part.begin << " to " << part.end;
        }
}

TEST(Lookups, NumbersOfNothingAreErrorsOrZeros) {
  std::vector<float> table = numbers<float>(6), found;
  std::vector<int64_t> ids{2, 7, INT64_MIN, 0};
  CallSpec spec{"Gather", {tensor(table, {3, 2}), tensor(ids, {4})}, {tensor(found, {4, 2})}};
  spec.tasks = 4;
  EXPECT_EQ(runCall(spec, 3).error().message, "index 7 of 'Gather' is outside [0, 3)"); // the first one, on any number of threads
  spec.kernel = "EmbeddingLookup";
  ASSERT_TRUE(runCall(spec));
  EXPECT_EQ(found, (std::vector<float>{5, 6, 0, 0, 0, 0, 1, 2}));
  spec.attributes.set("offset", {INT64_MIN});
  ASSERT_TRUE(runCall(spec));
  spec.attributes.set("offset", {INT64_MAX});
  ASSERT_TRUE(runCall(spec));
}

TEST(Lookups, AlongADimension) {
  std::vector<double> x = numbers<double>(12), found, sums; // 3 x 4
  std::vector<int64_t> index{-1, 0, 2, -3, 3, 3};           // 3 x 2
  CallSpec spec{"GatherD", {tensor(x, {3, 4}), tensor(index, {3, 2})}, {tensor(found, {3, 2})}};
  spec.attributes.set("dim", {1});
  spec.tasks = 5;
  ASSERT_TRUE(runCall(spec));
  EXPECT_EQ(found, (std::vector<double>{4, 1, 7, 6, 12, 12}));
  spec.operands[0] = tensor(x, {3, 4}, {{0, 3}, {2, 4}}); // columns 2 and 3 of a wider tensor
  x = {3, 4, 7, 8, 11, 12};
  ASSERT_TRUE(runCall(spec));
  EXPECT_EQ(found, (std::vector<double>{4, 0, 7, 0, 12, 12}));
  CallSpec back{"GatherDGrad", {tensor(index, {3, 2}), tensor(found, {3, 2})}, {tensor(sums, {3, 4})}};
  back.attributes.set("dim", {1});
  ASSERT_TRUE(runCall(back));
  EXPECT_EQ(sums, (std::vector<double>{0, 0, 0, 4, 0, 0, 7, 0, 0, 0, 0, 24}));
  index[2] = 4;
  EXPECT_EQ(runCall(spec).error().message, "index 4 of 'GatherD' is outside [-4, 4)");
}

TEST(Lookups, RunningSumsAndTheLargest) {
  std::vector<int32_t> x{1, 2, 3, 4, 5, 6}, y;
  CallSpec sums{"CumSumPieces", {tensor(x, {2, 3})}, {tensor(y, {2, 3})}};
  sums.attributes.set("axis", {1});
  sums.attributes.set("pieces", {1});
  ASSERT_TRUE(runCall(sums));
  EXPECT_EQ(y, (std::vector<int32_t>{1, 3, 6, 4, 9, 15}));
  sums.attributes.set("axis", {0});
  sums.attributes.set("exclusive", {1});
  sums.attributes.set("reverse", {1});
  ASSERT_TRUE(runCall(sums));
  EXPECT_EQ(y, (std::vector<int32_t>{4, 5, 6, 0, 0, 0}));
  sums.attributes.set("axis", {1});
  sums.attributes.set("pieces", {2}); // of 1 and 2 elements
  ASSERT_TRUE(runCall(sums));
  EXPECT_EQ(y, (std::vector<int32_t>{0, 3, 0, 0, 6, 0}));
  std::vector<float> z{1, 3, 3, NAN, -1, 2, 2, 2, 2, 2}, values;
  std::vector<int32_t> places;
  CallSpec largest{"TopKPieces", {tensor(z, {2, 5})}, {tensor(values, {2, 3}), tensor(places, {2, 3})}};
  largest.attributes.set("k", {3});
  largest.attributes.set("pieces", {1});
  ASSERT_TRUE(runCall(largest));
  EXPECT_EQ(places, (std::vector<int32_t>{3, 1, 2, 0, 1, 2}));
  EXPECT_TRUE(std::isnan(values[0]) && values[1] == 3);
  // Two ranks have pieces of 2 and 3 elements; the first fills up.
  std::vector<float> candidates(12), own;
  std::vector<int32_t> stands(12), found;
  for (int64_t rank = 0; rank < 2; ++rank) {
    Range piece = pieceOf(5, rank, 2);
    std::vector<float> held;
    for (int64_t row = 0; row < 2; ++row)
      held.insert(held.end(), z.begin() + row * 5 + piece.begin, z.begin() + row * 5 + piece.end);
    Box part{{0, 2}, {rank * 3, rank * 3 + 3}};
    CallSpec ofPiece{"TopKPieces", {tensor(held, {2, 5}, {{0, 2}, piece})}, {tensor(own, {2, 6}, part), tensor(found, {2, 6}, part)}};
    ofPiece.attributes.set("k", {3});
    ofPiece.attributes.set("pieces", {2});
    ASSERT_TRUE(runCall(ofPiece));
    for (int64_t i = 0; i < 6; ++i) {
      candidates[i / 3 * 6 + rank * 3 + i % 3] = own[i];
      stands[i / 3 * 6 + rank * 3 + i % 3] = found[i];
    }
  }
  EXPECT_EQ(stands, (std::vector<int32_t>{1, 0, 5, 3, 2, 4, 0, 1, 5, 2, 3, 4}));
  std::vector<int32_t> merged;
  CallSpec merge{"TopKMerge", {tensor(candidates, {2, 6}), tensor(stands, {2, 6})}, {tensor(values, {2, 3}), tensor(merged, {2, 3})}};
  merge.attributes.set("k", {3});
  ASSERT_TRUE(runCall(merge));
  EXPECT_EQ(merged, places);
  merge.attributes.set("sorted", {0});
  ASSERT_TRUE(runCall(merge));
  EXPECT_EQ(merged, (std::vector<int32_t>{1, 2, 3, 0, 1, 2}));
}

} // namespace
