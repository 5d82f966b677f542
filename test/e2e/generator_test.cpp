// The generator of random networks: legal, reproducible, of the promised size.
#include "test/e2e/ReferenceStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace msc::e2e;

TEST(NetworkGenerator, aSeedGivesTheSameCaseAgain) {
  for (uint64_t seed : {1, 7, 42}) {
    auto first = makeCase(seed), second = makeCase(seed);
    ASSERT_TRUE(first.isOk()) << first.error().message;
    EXPECT_EQ(first->text, second->text);
    EXPECT_EQ(first->devices, second->devices);
  }
}

TEST(NetworkGenerator, networksAreLegalTameAndHaveFiveToFortyOperators) {
  int withoutDerivative = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    auto test = makeCase(seed);
    ASSERT_TRUE(test.isOk()) << test.error().message;
    auto step = computeReference(*test);
    if (!step && step.error().code == msc::ExitCode::Failed) { // no derivative to compare with, e.g. Maximum(x, x)
      EXPECT_LE(++withoutDerivative, 4) << test->text;
      continue;
    }
    ASSERT_TRUE(step.isOk()) << step.error().message << "\n" << test->text;
    EXPECT_GE(step->forwardNodes, 5) << test->text;
    EXPECT_LE(step->forwardNodes, 40) << test->text;
    for (const auto &[name, tensor] : step->outputs)
      EXPECT_TRUE(std::all_of(tensor.values.begin(), tensor.values.end(),
                              [](double value) { return std::abs(value) < 0x1p32; })) // RandomBits gives words
          << "seed " << seed << ": " << name << "\n" << test->text;
  }
}
