#include "Builders.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::passes;
using net::Strategy;

namespace {

StrategyError errorOf(const OperatorFacts &facts, const Strategy &strategy, int64_t devices = 8) {
  auto checked = piecesOfStrategy(facts, strategy, devices);
  if (const auto *error = std::get_if<StrategyError>(&checked))
    return *error;
  return {"legal", "", -1};
}

const OperatorFacts product = test::matMul(16, 32, 16);

TEST(StrategyCheck, WrongNumberOfTuples) {
  StrategyError error = errorOf(product, {{2, 4}});
  EXPECT_EQ(error.text, "in_strategy has 1 tuple, 'MatMul' has 2 operands");
  EXPECT_EQ(error.help, "write one tuple per operand, e.g. ((1, 1), (1, 1))");
}

TEST(StrategyCheck, WrongTupleLength) {
  StrategyError error = errorOf(product, {{2, 4}, {4, 1, 1}});
  EXPECT_EQ(error.text, "tuple 1 of in_strategy has 3 values, 'w' has 2 dimensions");
  EXPECT_EQ(error.operand, 1);
}

TEST(StrategyCheck, ValueBelowOne) {
  EXPECT_EQ(errorOf(product, {{0, 4}, {4, 1}}).text, "in_strategy cuts dimension 0 of 'x' into 0 pieces");
  EXPECT_EQ(errorOf(product, {{2, 4}, {4, -2}}).text, "in_strategy cuts dimension 1 of 'w' into -2 pieces");
}

TEST(StrategyCheck, MorePiecesThanElements) {
  StrategyError error = errorOf(test::matMul(3, 32, 16), {{4, 1}, {1, 1}});
  EXPECT_EQ(error.text, "in_strategy cuts dimension 0 of 'x' into 4 pieces, its size is 3");
  EXPECT_EQ(error.help, "use at most 3");
}

TEST(StrategyCheck, ProductDoesNotDivideTheDevices) {
  StrategyError error = errorOf(product, {{3, 1}, {1, 1}});
  EXPECT_EQ(error.text, "in_strategy ((3, 1), (1, 1)) needs 3 devices, which does not divide 8");
  EXPECT_EQ(error.help, "the product of the pieces must be 1, 2, 4 or 8");
  EXPECT_EQ(errorOf(product, {{4, 4}, {4, 1}}).text,
            "in_strategy ((4, 4), (4, 1)) needs 16 devices, which does not divide 8");
}

TEST(StrategyCheck, MismatchedContraction) {
  StrategyError error = errorOf(product, {{2, 4}, {2, 1}});
  EXPECT_EQ(error.text, "in_strategy cuts dimensions of 'MatMul' that belong together into different numbers of pieces "
                        "(dimension 1 of 'x' is cut into 4, dimension 0 of 'w' into 2)");
  EXPECT_EQ(error.operand, 1);
}

TEST(StrategyCheck, FactorThatCannotBeCut) {
  OperatorFacts softmax = test::pointwise("Softmax", {16, 10}, 1);
  softmax.rule.factors[1] = {.name = "b",
                             .size = 10,
                             .kind = net::FactorKind::Replicated,
                             .reason = "every element of a row depends on the whole row"};
  StrategyError error = errorOf(softmax, {{4, 2}});
  EXPECT_EQ(error.text,
            "in_strategy cuts dimension 1 of 'x' into 2, but 'Softmax' needs it whole: every element of a row "
            "depends on the whole row");
  EXPECT_EQ(error.help, "write 1 there; where 'x' arrives cut, every rank then receives up to 20 elements");
}

TEST(StrategyCheck, ReshapeBoundaries) {
  OperatorFacts reshape = test::mergingReshape(6, 5);
  EXPECT_EQ(errorOf(reshape, {{2, 1}}).text, "legal");
  EXPECT_EQ(errorOf(reshape, {{4, 1}}).text,
            "in_strategy cuts dimension 0 of 'x' into 4, but the boundaries of 4 pieces do not fall on multiples of 5 "
            "elements, so they do not coincide on both sides of 'Reshape'");
  EXPECT_NE(errorOf(reshape, {{2, 2}}).text.find("merged into dimension 0"), std::string::npos);
}

TEST(StrategyCheck, FactorsThatMergeIntoOneDimension) {
  // (a, b) -> (a b): the boundaries of the result are those of the operand only for divisors of a.
  OperatorFacts merge{.op = "Reshape", .operandNames = {"x"}, .operandShapes = {{6, 4}}, .resultShapes = {{24}}};
  merge.rule.add({.name = "a", .size = 6});
  merge.rule.add({.name = "b", .size = 4});
  merge.rule.operands = {{{0}, {1}}};
  merge.rule.results = {{{0, 1}}};
  EXPECT_EQ(errorOf(merge, {{3, 1}}, 24).text, "legal");
  EXPECT_EQ(errorOf(merge, {{6, 2}}, 24).text, "legal");
  EXPECT_NE(errorOf(merge, {{4, 1}}, 24).text, "legal");
  EXPECT_NE(errorOf(merge, {{3, 2}}, 24).text, "legal");
  std::swap(merge.rule.operands, merge.rule.results);
  std::swap(merge.operandShapes, merge.resultShapes);
  EXPECT_EQ(std::get<Pieces>(piecesOfStrategy(merge, {{12}}, 24)), (Pieces{6, 2}));
  EXPECT_NE(errorOf(merge, {{8}}, 24).text, "legal");
}

TEST(StrategyCheck, UnevenPiecesAreLegal) {
  EXPECT_EQ(errorOf(test::matMul(13, 7, 5), {{2, 4}, {4, 1}}).text, "legal");
}

TEST(AssignmentFromStrategy, DeviceMatrixIsMindSpores) {
  net::Assignment assignment = assignmentFromStrategy(product, {{2, 4}, {4, 1}}, 8);
  EXPECT_EQ(assignment.matrix, (std::vector<int64_t>{2, 4, 1})); // [m, k, n]
  EXPECT_EQ(operandSharding(product.rule, assignment, 0).str(), "(2, 4, 1) [0, 1]");
  EXPECT_EQ(operandSharding(product.rule, assignment, 1).str(), "(2, 4, 1) [1, 2]");
  EXPECT_EQ(resultSharding(product.rule, assignment, 0).str(), "(2, 4, 1) [0, 2] partial(sum: 1)");
}

TEST(AssignmentFromStrategy, IdleRestRepeatsOnTheRightUnlessAskedLeft) {
  EXPECT_EQ(assignmentFromStrategy(product, {{2, 1}, {1, 1}}, 8).matrix, (std::vector<int64_t>{2, 1, 1, 4}));
  net::Assignment left = assignmentFromStrategy(product, {{2, 1}, {1, 1}}, 8, true);
  EXPECT_EQ(left.matrix, (std::vector<int64_t>{4, 2, 1, 1}));
  EXPECT_EQ(operandSharding(product.rule, left, 0).canonical().str(), "(4, 2) [1, -]");
}

TEST(Candidates, AreAllLegalStrategies) {
  // Ordered ways to give 2^0..2^3 to three factors: C(6, 3) = 20; MindSpore counts 20 for (64, 8) x (8, 32) as well.
  auto all = candidates(test::matMul(64, 8, 32), 8);
  EXPECT_EQ(all.size(), 20u);
  EXPECT_EQ(candidates(test::pointwise("ReLU", {64, 32}, 1), 8).size(), 10u);
  EXPECT_EQ(candidates(test::pointwise("ReLU", {2, 32}, 1), 8).size(), 7u); // at most 2 pieces in front
  EXPECT_EQ(candidates(test::pointwise("ReLU", {6, 6}, 1), 6).size(), 9u);  // 1, 2, 3, 6 in two places
  for (const Pieces &pieces : all) {
    EXPECT_EQ(8 % devicesUsed(pieces), 0);
    EXPECT_EQ(std::get<Pieces>(piecesOfStrategy(test::matMul(64, 8, 32), inStrategy(product.rule, pieces), 8)), pieces);
  }
}

} // namespace
