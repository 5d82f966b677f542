#include "passes/sharding/DatasetStrategy.h"

#include <gtest/gtest.h>

using namespace msc;
using namespace msc::passes;

namespace {

const std::vector<InputFacts> inputs = {{"x", {16, 32}}, {"label", {16}}};

std::vector<std::string> shardings(const std::string &strategy, int64_t devices = 8, bool right = false) {
  auto made = datasetShardings(inputs, strategy, devices, right);
  if (auto *error = std::get_if<StrategyError>(&made))
    return {error->text};
  std::vector<std::string> texts;
  for (const Sharding &sharding : std::get<std::vector<Sharding>>(made))
    texts.push_back(sharding.str());
  return texts;
}

TEST(DatasetStrategy, DataParallelCutsTheFirstDimensionOverAllDevices) {
  EXPECT_EQ(shardings("data_parallel"), (std::vector<std::string>{"(8) [0, -]", "(8) [0]"}));
  EXPECT_EQ(shardings("data_parallel", 3), (std::vector<std::string>{"(3) [0, -]", "(3) [0]"}));    // uneven
  EXPECT_EQ(shardings("data_parallel", 24), (std::vector<std::string>{"(24) [0, -]", "(24) [0]"})); // empty ranks
}

TEST(DatasetStrategy, FullBatchRepeats) {
  EXPECT_EQ(shardings("full_batch"), (std::vector<std::string>{"(8) [-, -]", "(8) [-]"}));
}

TEST(DatasetStrategy, GivenPiecesRepeatOnTheLeftUnlessAskedRight) {
  EXPECT_EQ(shardings("((2, 1), (2))"), (std::vector<std::string>{"(4, 2) [1, -]", "(4, 2) [1]"}));
  EXPECT_EQ(shardings("((2,1),(2))", 8, true), (std::vector<std::string>{"(2, 4) [0, -]", "(2, 4) [0]"}));
  EXPECT_EQ(shardings("((2, 4), (8,))"), (std::vector<std::string>{"(2, 4) [0, 1]", "(8) [0]"}));
}

TEST(DatasetStrategy, MistakesAreNamed) {
  EXPECT_EQ(shardings("((2, 1))")[0], "dataset_strategy has 1 tuple, the network has 2 inputs");
  EXPECT_EQ(shardings("((3, 1), (2))")[0], "dataset_strategy ((3, 1)) needs 3 devices, which does not divide 8");
  EXPECT_EQ(shardings("batch")[0], "cannot read dataset_strategy 'batch'");
  EXPECT_EQ(shardings("((2, 0), (2))")[0], "dataset_strategy cuts dimension 1 of 'x' into 0 pieces");
  EXPECT_EQ(shardings("((2, 1), (2)")[0], "cannot read dataset_strategy '((2, 1), (2)'");
}

} // namespace
