#include "passes/partition/Inherit.h"
#include "test/passes/sharding/Builders.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::passes;

namespace {

std::vector<std::string> shardings(const OperatorFacts &facts, const std::vector<ShardingHint> &hints,
                                   int64_t devices) {
  net::Assignment assignment = inheritAssignment(facts, hints, devices);
  std::vector<std::string> texts;
  for (size_t i = 0; i < facts.rule.operands.size(); ++i)
    texts.push_back(operandSharding(facts.rule, assignment, i).canonical().str());
  texts.push_back(resultSharding(facts.rule, assignment, 0).canonical().str());
  return texts;
}

Sharding rows(int64_t n) {
  return {{n}, {{0}, {}}, {}};
}

TEST(Inherit, FactorsTakeTheAxesOfTheirOperands) {
  // The gradient of a weight: x (2, 4) [0, 1] transposed times dy (2, 4) [0, -].
  OperatorFacts facts = test::matMul(32, 16, 16);
  facts.rule.operands[0] = {{1}, {0}};
  facts.operandShapes[0] = {16, 32};
  EXPECT_EQ(shardings(facts, {{false, 0, {{2, 4}, {{0}, {1}}, {}}}, {false, 1, {{2, 4}, {{0}, {}}, {}}}}, 8),
            (std::vector<std::string>{"(2, 4) [0, 1]", "(2, 4) [0, -]", "(2, 4) [1, -] partial(sum: 0)"}));
}

TEST(Inherit, TheFirstOfTwoConflictingHintsWins) {
  OperatorFacts add = test::pointwise("Add", {8, 8}, 2);
  Sharding columns{{8}, {{}, {0}}, {}};
  EXPECT_EQ(shardings(add, {{false, 0, rows(8)}, {false, 1, columns}}, 8)[1], "(8) [0, -]");
  EXPECT_EQ(shardings(add, {{false, 1, columns}, {false, 0, rows(8)}}, 8)[0], "(8) [-, 0]");
}

TEST(Inherit, AWholeOperandLeavesTheChoiceToTheNext) {
  OperatorFacts add = test::pointwise("Add", {8, 8}, 2);
  EXPECT_EQ(shardings(add, {{false, 0, Sharding::replicated(8, 2)}, {false, 1, rows(8)}}, 8)[0], "(8) [0, -]");
}

TEST(Inherit, DifferentFactorisationsMeetInACommonRefinement) {
  // m by the major 2 of (2, 4), n by the minor 2 of (4, 2): over (2, 2, 2).
  OperatorFacts facts = test::matMul(8, 8, 8);
  EXPECT_EQ(shardings(facts, {{false, 0, {{2, 4}, {{0}, {}}, {}}}, {false, 1, {{4, 2}, {{}, {1}}, {}}}}, 8)[2],
            "(2, 2, 2) [0, 2]");
}

TEST(Inherit, WithoutACommonRefinementTheLaterHintIsDropped) {
  OperatorFacts facts = test::matMul(6, 6, 6);
  EXPECT_EQ(shardings(facts, {{false, 0, {{2, 3}, {{0}, {}}, {}}}, {false, 1, {{3, 2}, {{}, {0}}, {}}}}, 6)[2],
            "(2, 3) [0, -]");
}

TEST(Inherit, CutsThatDoNotPassAReshapeAreLeftOut) {
  OperatorFacts reshape = test::mergingReshape(6, 5);
  EXPECT_EQ(shardings(reshape, {{false, 0, {{2}, {{0}, {}}, {}}}}, 2)[1], "(2) [0]");
  EXPECT_EQ(shardings(reshape, {{false, 0, {{4}, {{0}, {}}, {}}}}, 4)[1], "(4) [-]");
  EXPECT_EQ(shardings(reshape, {{false, 0, {{2, 2}, {{0, 1}, {}}, {}}}}, 4)[1], "(4) [-]");
}

TEST(Inherit, ResultsHintWhereOperandsAreSilent) {
  OperatorFacts broadcast{
      .op = "BroadcastTo", .operandNames = {"x"}, .operandShapes = {{1, 8}}, .resultShapes = {{8, 8}}};
  broadcast.rule.add({.name = "a", .size = 8});
  broadcast.rule.add({.name = "b", .size = 8});
  broadcast.rule.operands = {{{}, {1}}};
  broadcast.rule.results = {{{0}, {1}}};
  EXPECT_EQ(shardings(broadcast, {{false, 0, Sharding::replicated(8, 2)}, {true, 0, rows(8)}}, 8)[1], "(8) [0, -]");
}

} // namespace
