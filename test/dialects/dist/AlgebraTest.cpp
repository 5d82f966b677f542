#include "AllShardings.h"

#include "dialects/dist/Lacking.h"
#include "test/Campaign.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace msc;
using namespace msc::dist;

namespace {

TEST(SamePlacement, AgreesWithBoxesOnALargeEvenShape) {
  // A shape whose sizes are multiples of every piece count, so that equal boxes mean equal placement.
  std::vector<int64_t> shape = {24, 48};
  for (int64_t devices : {4, 6, 8}) {
    auto all = test::allShardings(devices, 2, false);
    for (const Sharding &a : all)
      for (const Sharding &b : all) {
        bool equal = true;
        for (int64_t r = 0; r < devices && equal; ++r)
          equal = a.localBox(shape, r) == b.localBox(shape, r);
        ASSERT_EQ(samePlacement(a, b), equal) << a.str() << " " << b.str();
      }
  }
}

/// Rank by rank: the definition.
int64_t receivedByDefinition(const Sharding &from, const Sharding &to, const std::vector<int64_t> &shape) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < from.devices(); ++rank) {
    Box wanted = to.localBox(shape, rank);
    most = std::max(most, elementCount(wanted) - elementCount(intersect(wanted, from.localBox(shape, rank))));
  }
  return most;
}

TEST(ReceivedElements, EqualsTheLoopOverAllRanks) {
  const auto rounds = static_cast<int64_t>(test::campaignCases(4000));
  int64_t uneven = 0, unrefined = 0, empty = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    std::mt19937_64 random(static_cast<uint64_t>(round));
    std::vector<int64_t> matrix;
    for (size_t axes = 1 + random() % 6; matrix.size() < axes;)
      matrix.push_back(2 + static_cast<int64_t>(random() % (axes < 4 ? 6 : 2)));
    std::vector<int64_t> other = matrix;
    if (random() % 4 == 0)
      std::shuffle(other.begin(), other.end(), random);
    std::vector<int64_t> shape(1 + random() % 4);
    for (int64_t &size : shape)
      size = 1 + static_cast<int64_t>(random() % 60);
    auto randomSharding = [&](const std::vector<int64_t> &axes) {
      Sharding sharding{axes, std::vector<std::vector<int32_t>>(shape.size()), {}};
      std::vector<int32_t> order(axes.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (int32_t axis : order)
        if (size_t dim = random() % (shape.size() + 1); dim < shape.size())
          sharding.dims[dim].push_back(axis);
      return sharding;
    };
    Sharding from = randomSharding(matrix), to = randomSharding(other);
    uneven += !from.isEven(shape) || !to.isEven(shape);
    unrefined += !overCommonMatrix(from, to);
    empty += elementCount(to.localBox(shape, 0)) == 0;
    int64_t expected = receivedByDefinition(from, to, shape);
    ASSERT_EQ(receivedElements(from, to, shape), expected) << from.str() << " -> " << to.str() << " round " << round;
    ASSERT_EQ(slicesLocally(from, to, shape), expected == 0);
    if (auto common = overCommonMatrix(from, to)) {
      Lacking lacking(common->first.axes, shape);
      int64_t least = lacking.atLeast(listsOf(common->first), listsOf(common->second));
      ASSERT_LE(least, expected) << from.str() << " -> " << to.str();
      bool even = from.isEven(shape) && to.isEven(shape);
      ASSERT_TRUE(!even || least == expected) << from.str() << " -> " << to.str();
    }
  }
  EXPECT_GT(uneven * 2, rounds);
  EXPECT_GT(unrefined * 50, rounds);
  EXPECT_GT(empty * 50, rounds);
}

TEST(ReceivedElements, CountsWhatIsMissing) {
  std::vector<int64_t> shape = {16, 32};
  Sharding rows{{8}, {{0}, {}}, {}}, grid{{2, 4}, {{0}, {1}}, {}}, whole = Sharding::replicated(8, 2);
  EXPECT_EQ(receivedElements(rows, rows, shape), 0);
  EXPECT_EQ(receivedElements(rows, grid, shape), 48); // 8 x 8 minus the 2 x 8 that lie in the own rows
  EXPECT_EQ(receivedElements(rows, whole, shape), 448);
  EXPECT_TRUE(slicesLocally(whole, grid, shape));
  EXPECT_FALSE(slicesLocally(grid, rows, shape));
  EXPECT_EQ(receivedElements(Sharding{{3}, {{0}}, {}}, Sharding::replicated(3, 1), {7}), 5);
}

TEST(LeastReceived, CountsTermsAndWhoeverWantsTheWhole) {
  std::vector<int64_t> shape = {16, 32};
  Sharding sum{{2, 4}, {{0}, {}}, {{1, ReduceKind::Sum}}};
  EXPECT_EQ(leastReceived(sum, {{2, 4}, {{0}, {1}}, {}}, shape), 192);    // (g - 1) / g of the shard: a ReduceScatter
  EXPECT_EQ(leastReceived(sum, {{2, 4}, {{0}, {}}, {}}, shape), 384);     // 2 (g - 1) / g: an AllReduce
  EXPECT_EQ(leastReceived(sum, Sharding::replicated(8, 2), shape), 640);  // 512 * (3 + 7) / 8
  EXPECT_EQ(leastReceived(sum, sum, shape), 0);
  Sharding sums{{2, 4}, {{}, {}}, {{0, ReduceKind::Sum}, {1, ReduceKind::Sum}}}, rest = sums;
  rest.partial.erase(rest.partial.begin());
  EXPECT_EQ(leastReceived(sums, rest, shape), 512); // an AllReduce among two
}

TEST(AllReduceElements, MatchTheClosedFormAndCountUnevenPieces) {
  EXPECT_EQ(allReduceElements(128, 4), 192); // 2 (g - 1) / g n
  EXPECT_EQ(allReduceElements(128, 1), 0);
  EXPECT_EQ(allReduceElements(1, 8), 7); // one rank owns the only element and hears seven terms
  for (int64_t members : {2, 3, 5, 8})
    for (int64_t local = 0; local < 40; ++local) {
      int64_t most = 0;
      for (int64_t r = 0; r < members; ++r) {
        int64_t own = pieceOf(local, r, members).size();
        most = std::max(most, own * (members - 1) + local - own);
      }
      ASSERT_EQ(allReduceElements(local, members), most) << local << " among " << members;
    }
}

TEST(CheckLegal, NamesWhatIsWrong) {
  Sharding grid{{2, 4}, {{0}, {1}}, {}};
  EXPECT_EQ(checkLegal(grid, {16, 32}, 8), "");
  EXPECT_EQ(checkLegal(grid, {16, 3}, 8), "dimension 1 has size 3 and cannot be cut into 4 pieces");
  EXPECT_EQ(checkLegal(grid, {16, 32}, 4), "the device matrix does not cover 4 devices");
  EXPECT_EQ(checkLegal(Sharding{{2, 4}, {{0}, {0}}, {}}, {16, 32}, 8), "axis 0 is used twice");
}

TEST(TensorLayout, CountsAxesFromTheRight) {
  // MatMul ((2, 4), (4, 1)) on 8 devices: device matrix [m, k, n].
  TensorLayout x = tensorLayout({{2, 4, 1}, {{0}, {1}}, {}});
  EXPECT_EQ(x.deviceMatrix, (Matrix{2, 4, 1}));
  EXPECT_EQ(x.tensorMap, (std::vector<std::vector<int64_t>>{{2}, {1}}));
  EXPECT_EQ(tensorLayout({{2, 4, 1}, {{0}, {2}}, {}}).tensorMap, (std::vector<std::vector<int64_t>>{{2}, {0}}));
  EXPECT_EQ(tensorLayout({{8}, {{0}, {}}, {}}).tensorMap, (std::vector<std::vector<int64_t>>{{0}, {}}));
  EXPECT_EQ(shardingFromLayout({2, 4}, {1, 0}), (Sharding{{2, 4}, {{0}, {1}}, {}}));
  EXPECT_EQ(shardingFromLayout({8}, {0, -1}), (Sharding{{8}, {{0}, {}}, {}}));
}

} // namespace
