#include "Builders.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::passes;
using namespace msc::test;
using net::Strategy;

namespace {

Strategy strategyOf(const Problem &problem, const Choices &choices, const std::string &name) {
  for (size_t i = 0; i < choices.size(); ++i)
    if (problem.operators[i].name == name)
      return inStrategy(problem.operators[i].facts.rule, choices[i].pieces);
  return {};
}

std::string originOf(const Problem &problem, const Choices &choices, const std::string &name) {
  for (size_t i = 0; i < choices.size(); ++i)
    if (problem.operators[i].name == name)
      return choices[i].origin;
  return "";
}

Problem quickstart(int64_t devices, std::optional<Strategy> strategy) {
  Problem problem{.devices = devices};
  int32_t x = tensor(problem, "x", {16, 32}, batchCut(devices, 2));
  int32_t label = tensor(problem, "label", {16, 16}, batchCut(devices, 2));
  int32_t w = tensor(problem, "w", {32, 16}), w2 = tensor(problem, "w2", {16, 16});
  int32_t h = add(problem, "matmul", matMul(16, 32, 16), {x, w}, std::move(strategy));
  int32_t a = add(problem, "relu", pointwise("ReLU", {16, 16}, 1), {h});
  int32_t out = add(problem, "matmul2", matMul(16, 16, 16), {a, w2});
  add(problem, "loss", loss({16, 16}, 2), {out, label});
  return problem;
}

TEST(Propagation, Quickstart) {
  Problem problem = quickstart(8, Strategy{{2, 4}, {4, 1}});
  Choices choices = propagate(problem);
  EXPECT_EQ(strategyOf(problem, choices, "matmul"), (Strategy{{2, 4}, {4, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "relu"), (Strategy{{2, 4}}));
  EXPECT_EQ(strategyOf(problem, choices, "matmul2"), (Strategy{{2, 4}, {4, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "loss"), (Strategy{{2, 4}, {2, 4}}));
  EXPECT_EQ(originOf(problem, choices, "matmul"), "user");
  EXPECT_EQ(originOf(problem, choices, "relu"), "propagated from 'matmul'");
  EXPECT_EQ(originOf(problem, choices, "loss"), "propagated from 'matmul2'");
}

TEST(Propagation, NothingConfiguredStartsAtTheInputs) {
  Problem problem = quickstart(8, std::nullopt);
  Choices choices = propagate(problem);
  EXPECT_EQ(strategyOf(problem, choices, "matmul"), (Strategy{{8, 1}, {1, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "relu"), (Strategy{{8, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "matmul2"), (Strategy{{8, 1}, {1, 1}}));
  EXPECT_EQ(originOf(problem, choices, "matmul"), "propagated from 'x'");
  EXPECT_EQ(originOf(problem, choices, "relu"), "propagated from 'matmul'");
}

TEST(Propagation, GoesUpstreamToo) {
  Problem problem{.devices = 8};
  int32_t x = tensor(problem, "x", {16, 32}, batchCut(8, 2)), w = tensor(problem, "w", {32, 16});
  int32_t h = add(problem, "matmul", matMul(16, 32, 16), {x, w});
  add(problem, "relu", pointwise("ReLU", {16, 16}, 1), {h}, Strategy{{2, 4}});
  Choices choices = propagate(problem);
  // m and n as ReLU wants them: nothing to receive, and both piece counts are kept.
  EXPECT_EQ(strategyOf(problem, choices, "matmul"), (Strategy{{2, 1}, {1, 4}}));
  EXPECT_EQ(originOf(problem, choices, "matmul"), "propagated from 'relu'");
}

TEST(Propagation, UnevenComesAfterEven) {
  // 16 x 6 comes cut in 2: (2, 4) would be uneven; of the even ones (4, 2) spends most on the dimension not yet split.
  Problem problem{.devices = 8};
  int32_t x = tensor(problem, "x", {16, 32}), w = tensor(problem, "w", {32, 6});
  int32_t h = add(problem, "matmul", matMul(16, 32, 6), {x, w}, Strategy{{2, 4}, {4, 1}});
  add(problem, "relu", pointwise("ReLU", {16, 6}, 1), {h});
  EXPECT_EQ(strategyOf(problem, propagate(problem), "relu"), (Strategy{{4, 2}}));
}

TEST(Propagation, TakesUnevenWhereNothingElseUsesAllDevices) {
  Problem problem{.devices = 3};
  int32_t x = tensor(problem, "x", {7, 5}, batchCut(3, 2));
  add(problem, "relu", pointwise("ReLU", {7, 5}, 1), {x});
  EXPECT_EQ(strategyOf(problem, propagate(problem), "relu"), (Strategy{{3, 1}}));
}

TEST(Propagation, UsersOfOneTensorAreNotNeighbours) {
  // Both matmuls use x; only the first is configured. The second is reached by the inputs, not by its sibling.
  Problem problem{.devices = 8};
  int32_t x = tensor(problem, "x", {16, 32}, batchCut(8, 2));
  int32_t w = tensor(problem, "w", {32, 16});
  add(problem, "first", matMul(16, 32, 16), {x, w}, Strategy{{1, 8}, {8, 1}});
  add(problem, "second", matMul(16, 32, 16), {x, w});
  Choices choices = propagate(problem);
  EXPECT_EQ(strategyOf(problem, choices, "second"), (Strategy{{8, 1}, {1, 1}}));
  EXPECT_EQ(originOf(problem, choices, "second"), "propagated from 'x'");
}

TEST(Propagation, ConflictIsPricedAndTheCheaperSideWins) {
  // Add has a small cheap side and is asked by two producers in one round. Following the one whose tensor the other can
  // slice from costs nothing: 'whole' leaves a replicated tensor, 'rows' a cut one.
  for (bool swapped : {false, true}) {
    Problem problem{.devices = 8};
    int32_t a = tensor(problem, "a", {64, 64}), b = tensor(problem, "b", {64, 64});
    int32_t rows = add(problem, "rows", pointwise("ReLU", {64, 64}, 1), {a}, Strategy{{8, 1}});
    int32_t columns = add(problem, "whole", pointwise("ReLU", {64, 64}, 1), {b}, Strategy{{1, 1}});
    add(problem, "add", pointwise("Add", {64, 64}, 2),
        swapped ? std::vector<int32_t>{columns, rows} : std::vector<int32_t>{rows, columns});
    Choices choices = propagate(problem);
    EXPECT_EQ(strategyOf(problem, choices, "add"), (Strategy{{8, 1}, {8, 1}})) << swapped;
    EXPECT_EQ(originOf(problem, choices, "add"), "propagated from 'rows'");
  }
}

TEST(Propagation, EqualPricesGoToTheFirstOperand) {
  for (bool swapped : {false, true}) {
    Problem problem{.devices = 8};
    int32_t a = tensor(problem, "a", {64, 64}), b = tensor(problem, "b", {64, 64});
    int32_t rows = add(problem, "rows", pointwise("ReLU", {64, 64}, 1), {a}, Strategy{{8, 1}});
    int32_t columns = add(problem, "columns", pointwise("ReLU", {64, 64}, 1), {b}, Strategy{{1, 8}});
    add(problem, "add", pointwise("Add", {64, 64}, 2),
        swapped ? std::vector<int32_t>{columns, rows} : std::vector<int32_t>{rows, columns});
    EXPECT_EQ(originOf(problem, propagate(problem), "add"),
              swapped ? "propagated from 'columns'" : "propagated from 'rows'");
  }
}

TEST(Propagation, RoundsAreBreadthFirst) {
  // relu2 is two rounds from 'top' and one from 'bottom'; it follows 'bottom'.
  Problem problem{.devices = 4};
  int32_t a = tensor(problem, "a", {16, 16});
  int32_t t = add(problem, "top", pointwise("ReLU", {16, 16}, 1), {a}, Strategy{{4, 1}});
  int32_t r1 = add(problem, "relu1", pointwise("ReLU", {16, 16}, 1), {t});
  int32_t r2 = add(problem, "relu2", pointwise("ReLU", {16, 16}, 1), {r1});
  add(problem, "bottom", pointwise("ReLU", {16, 16}, 1), {r2}, Strategy{{1, 4}});
  Choices choices = propagate(problem);
  EXPECT_EQ(strategyOf(problem, choices, "relu1"), (Strategy{{4, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "relu2"), (Strategy{{1, 4}}));
}

TEST(Propagation, PassesReshapeOnlyWhereBoundariesCoincide) {
  Problem problem{.devices = 4};
  int32_t x = tensor(problem, "x", {6, 4}, batchCut(4, 2));
  add(problem, "reshape", mergingReshape(6, 4), {x});
  // 4 does not divide 6: two pieces are the most that Reshape allows, one of them repeated.
  EXPECT_LE(strategyOf(problem, propagate(problem), "reshape")[0][0], 2);
}

TEST(Modes, StandAloneCutsNothing) {
  Problem problem = quickstart(8, std::nullopt);
  Choices choices = standAlone(problem);
  for (const Choice &choice : choices)
    EXPECT_EQ(devicesUsed(choice.pieces), 1);
  EXPECT_EQ(choices[0].origin, "stand_alone");
}

TEST(Modes, DataParallelCutsTheBatchEverywhere) {
  Problem problem = quickstart(8, std::nullopt);
  Choices choices = dataParallel(problem);
  EXPECT_EQ(strategyOf(problem, choices, "matmul"), (Strategy{{8, 1}, {1, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "relu"), (Strategy{{8, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "loss"), (Strategy{{8, 1}, {8, 1}}));
  EXPECT_EQ(originOf(problem, choices, "relu"), "data_parallel");
}

TEST(Modes, DataParallelTakesUnevenBatches) {
  Problem problem{.devices = 3};
  int32_t x = tensor(problem, "x", {7, 5}, batchCut(3, 2));
  add(problem, "relu", pointwise("ReLU", {7, 5}, 1), {x});
  EXPECT_EQ(strategyOf(problem, dataParallel(problem), "relu"), (Strategy{{3, 1}}));
}

TEST(Modes, DataParallelLeavesRanksWithoutRows) {
  Problem problem{.devices = 8};
  int32_t x = tensor(problem, "x", {5, 7}, batchCut(8, 2));
  add(problem, "relu", pointwise("ReLU", {5, 7}, 1), {x});
  EXPECT_EQ(strategyOf(problem, dataParallel(problem), "relu"), (Strategy{{8, 1}}));
}

TEST(Modes, SemiAutoSplitsTheBatchByTheGreatestCommonDivisor) {
  Problem problem = quickstart(8, Strategy{{2, 4}, {4, 1}});
  Choices choices = semiAuto(problem);
  EXPECT_EQ(strategyOf(problem, choices, "matmul"), (Strategy{{2, 4}, {4, 1}}));
  EXPECT_EQ(strategyOf(problem, choices, "relu"), (Strategy{{8, 1}}));
  EXPECT_EQ(originOf(problem, choices, "relu"), "semi_auto default");
  Problem odd{.devices = 8};
  int32_t x = tensor(odd, "x", {12, 5});
  add(odd, "relu", pointwise("ReLU", {12, 5}, 1), {x});
  EXPECT_EQ(strategyOf(odd, semiAuto(odd), "relu"), (Strategy{{4, 1}}));
}

} // namespace
