#include "runtime/plan/RankClasses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace msc;

namespace {

TEST(RankClasses, OneRankForEachPieceThatIsCut) {
  Sharding rows{{64, 4, 64}, {{1}, {}}, {}};
  RankClasses classes(16384);
  classes.addPieces(rows);
  EXPECT_EQ(classes.ranks(), (std::vector<int64_t>{0, 64, 128, 192}));
}

TEST(RankClasses, EvenCutsHaveOneSize) {
  Sharding sharding{{2, 4}, {{0}, {1}}, {}};
  RankClasses even(8), uneven(8);
  even.addSizes(sharding, {16, 32});
  uneven.addSizes(sharding, {16, 33});
  EXPECT_EQ(even.ranks(), (std::vector<int64_t>{0}));
  EXPECT_EQ(uneven.ranks(), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(RankClasses, FactorisationsWithoutRefinementShareWhatIsCommon) {
  RankClasses classes(12000);
  classes.addPieces({{2, 6000}, {{0}}, {}});
  classes.addPieces({{3, 4000}, {{0}}, {}});
  EXPECT_EQ(classes.ranks(), (std::vector<int64_t>{0, 2000, 4000, 6000, 8000, 10000}));
}

/// Any two ranks of one class hold the same pieces, and the lowest rank of the class is the one that is named.
TEST(RankClasses, EveryRankIsAlikeOneThatIsNamed) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> matrix;
    for (size_t axes = 1 + random() % 5; matrix.size() < axes;)
      matrix.push_back(2 + static_cast<int64_t>(random() % 3));
    std::vector<Sharding> shardings;
    for (int i = 0; i < 2; ++i) {
      std::shuffle(matrix.begin(), matrix.end(), random);
      Sharding sharding{matrix, {{}, {}}, {}};
      for (size_t axis = 0; axis < matrix.size(); ++axis)
        if (size_t dim = random() % 4; dim < 2)
          sharding.dims[dim].push_back(static_cast<int32_t>(axis));
      shardings.push_back(std::move(sharding));
    }
    int64_t devices = shardings[0].devices();
    RankClasses classes(devices);
    for (const Sharding &sharding : shardings)
      classes.addPieces(sharding);
    std::vector<int64_t> ranks = classes.ranks();
    ASSERT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
    ASSERT_EQ(devices % static_cast<int64_t>(ranks.size()), 0);
    std::map<std::vector<int64_t>, int64_t> all, named;
    auto piecesOf = [&](int64_t rank) {
      std::vector<int64_t> pieces;
      for (const Sharding &sharding : shardings)
        for (size_t dim = 0; dim < 2; ++dim)
          pieces.push_back(sharding.pieceIndex(dim, rank));
      return pieces;
    };
    int64_t copies = devices / static_cast<int64_t>(ranks.size());
    for (int64_t rank = 0; rank < devices; ++rank)
      ++all[piecesOf(rank)];
    for (int64_t rank : ranks)
      named[piecesOf(rank)] += copies;
    ASSERT_EQ(all, named) << shardings[0].str() << " " << shardings[1].str();
  }
}

} // namespace
