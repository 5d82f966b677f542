#include "runtime/plan/Sharding.h"

#include <gtest/gtest.h>

using namespace msc;

namespace {

TEST(PieceOf, CoversEveryElementOnce) {
  for (int64_t size = 0; size < 30; ++size)
    for (int64_t pieces = 1; pieces < 12; ++pieces) {
      int64_t next = 0, largest = 0;
      for (int64_t p = 0; p < pieces; ++p) {
        Range range = pieceOf(size, p, pieces);
        ASSERT_EQ(range.begin, next);
        ASSERT_GE(range.size(), size / pieces);
        largest = std::max(largest, range.size());
        next = range.end;
      }
      ASSERT_EQ(next, size);
      ASSERT_EQ(largest, (size + pieces - 1) / pieces);
    }
}

TEST(PieceOf, BoundariesOfACoarserCutAreBoundariesOfARefinement) {
  for (int64_t size = 0; size < 40; ++size)
    for (int64_t coarse : {2, 3, 4})
      for (int64_t factor : {2, 3})
        for (int64_t p = 0; p < coarse; ++p)
          ASSERT_EQ(pieceOf(size, p, coarse).begin, pieceOf(size, p * factor, coarse * factor).begin);
}

TEST(PieceOf, DoesNotOverflow) {
  int64_t huge = int64_t(1) << 61;
  EXPECT_EQ(pieceOf(huge, 6, 8).begin, huge / 8 * 6);
}

TEST(Sharding, BoxesOfTheQuickstart) {
  Sharding x{{2, 4}, {{0}, {1}}, {}};
  EXPECT_EQ(x.localBox({16, 32}, 0), (Box{{0, 8}, {0, 8}}));
  EXPECT_EQ(x.localBox({16, 32}, 6), (Box{{8, 16}, {16, 24}}));
  EXPECT_EQ(x.capacity({16, 30}), (std::vector<int64_t>{8, 8}));
  EXPECT_FALSE(x.isEven({16, 30}));
}

TEST(Sharding, CanonicalFormMergesAxesOfOneUse) {
  EXPECT_EQ((Sharding{{2, 1, 4}, {{0, 2}, {1}}, {}}).canonical(), (Sharding{{8}, {{0}, {}}, {}}));
  EXPECT_EQ((Sharding{{2, 4}, {{1, 0}}, {}}).canonical(), (Sharding{{2, 4}, {{1, 0}}, {}}));
  EXPECT_EQ((Sharding{{2, 2, 2}, {{}, {2}}, {}}).canonical(), (Sharding{{4, 2}, {{}, {1}}, {}}));
  EXPECT_EQ((Sharding{{2, 2}, {{}}, {{0, ReduceKind::Sum}, {1, ReduceKind::Sum}}}).canonical(),
            (Sharding{{4}, {{}}, {{0, ReduceKind::Sum}}}));
}

TEST(Sharding, CheckFindsEveryFlaw) {
  EXPECT_EQ((Sharding{{2, 4}, {{0}, {1}}, {}}).check(8, 2), "");
  EXPECT_EQ((Sharding{{2, 4}, {{0}, {1}}, {}}).check(8, 3), "it names 2 dimensions, the tensor has 3");
  EXPECT_EQ((Sharding{{2, 4}, {{0}, {2}}, {}}).check(8, 2), "axis 2 does not exist");
  EXPECT_EQ((Sharding{{2, 4}, {{0}, {}}, {{0, ReduceKind::Sum}}}).check(8, 2), "axis 0 is used twice");
  EXPECT_EQ((Sharding{{0, 8}, {{}}, {}}).check(8, 1), "an axis has size 0");
}

TEST(Sharding, OwnerIsTheLowestRankWithTheSameShard) {
  Sharding s{{2, 2, 2}, {{0}, {2}}, {}};
  EXPECT_EQ(s.ownerOf(7), 5);
  EXPECT_EQ(s.ownerOf(2), 0);
  EXPECT_EQ((Sharding{{2, 4}, {{0}}, {{1, ReduceKind::Sum}}}).ownerOf(6), 6);
}

TEST(Sharding, TextNamesMatrixDimensionsAndPartialAxes) {
  EXPECT_EQ((Sharding{{2, 4}, {{0, 1}, {}}, {}}).str(), "(2, 4) [0.1, -]");
  EXPECT_EQ((Sharding{{2, 4}, {{0}}, {{1, ReduceKind::Max}}}).str(), "(2, 4) [0] partial(max: 1)");
}

TEST(Groups, AxesAndNamesMatchMindSpore) {
  EXPECT_EQ(groupOf({2, 4}, {1}, 6), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(groupOf({2, 4}, {0}, 6), (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(groupName({0, 1, 2, 3}, 8), "4-6301172352641561019");
  EXPECT_EQ(groupName({0, 4}, 8), "2-16453000547691086251");
  EXPECT_EQ(groupName({0, 8}, 16), "2-16557109384257890687");
  EXPECT_EQ(groupName({0, 2, 4, 6}, 8), "4-5226697808808137312");
  EXPECT_EQ(groupName({1, 5}, 8), "2-12944936785892925600");
  EXPECT_EQ(groupName({0, 1, 2, 3, 4, 5, 6, 7}, 8), "nccl_world_group");
}

} // namespace
