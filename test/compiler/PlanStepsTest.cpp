// What the steps of a plan are: which operators a library call takes along, which kernels a launch runs.
#include "compiler/Compiler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <unistd.h>

using namespace msc;

namespace {

/// The plan of a network with the given inputs, operators and result.
plan::Plan planOf(const std::string &inputs, const std::string &operators, const std::string &result) {
  compiler::CompileOptions options;
  options.input = testing::TempDir() + "steps." + std::to_string(getpid()) + ".mir";
  std::ofstream(options.input) << "network steps(" << inputs << ") {\n" << operators << "  return out: " << result << "\n}\n";
  auto outcome = compiler::compile(options);
  unlink(options.input.c_str());
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? outcome->plan : plan::Plan();
}

/// "matmul", "matmul bias relu", "launch": one entry per step.
std::vector<std::string> kindsOf(const plan::Plan &plan) {
  std::vector<std::string> kinds;
  for (const plan::Step &step : plan.programs(0).variants(0).steps())
    if (step.has_matmul())
      kinds.push_back(std::string("matmul") + (step.matmul().bias() ? " bias" : "") +
                      (step.matmul().activation().empty() ? "" : " " + step.matmul().activation()));
    else
      kinds.push_back(step.has_launch() ? "launch" : "other");
  return kinds;
}

using Kinds = std::vector<std::string>;

TEST(PlanSteps, ProductsOfTheLibraryTakeBiasAndReLUAlong) {
  std::string inputs = "%x: f32[4, 5], %w: f32[5, 6], %b: f32[6]", product = "  %p = MatMul(%x, %w)\n";
  auto kinds = [&](const std::string &rest, const std::string &result) { return kindsOf(planOf(inputs, product + rest, result)); };
  EXPECT_EQ(kinds("", "%p"), (Kinds{"matmul"}));
  EXPECT_EQ(kinds("  %r = ReLU(%p)\n", "%r"), (Kinds{"matmul relu"}));
  EXPECT_EQ(kinds("  %a = BiasAdd(%p, %b)\n  %r = ReLU(%a)\n", "%r"), (Kinds{"matmul bias relu"}));
  EXPECT_EQ(kinds("  %r = ReLU(%p)\n  %a = BiasAdd(%r, %b)\n", "%a"), (Kinds{"matmul relu", "launch"}));
  EXPECT_EQ(kinds("  %a = BiasAdd(%p, %b)\n  %s = Sigmoid(%a)\n", "%s"), (Kinds{"matmul bias", "launch"}));
  EXPECT_EQ(kinds("  %a = BiasAdd(%p, %b)\n  %s = Add(%a, %p)\n", "%s"), (Kinds{"matmul", "launch"})); // used twice
}

TEST(PlanSteps, ABiasJoinsWhereItLiesAlongTheLastDimension) {
  std::string inputs = "%x: f32[2, 6, 3, 5], %w: f32[5, 6], %b: f32[6]", product = "  %p = MatMul(%x, %w)\n";
  EXPECT_EQ(kindsOf(planOf(inputs, product + "  %a = BiasAdd(%p, %b, data_format: NHWC)\n", "%a")), (Kinds{"matmul bias"}));
  EXPECT_EQ(kindsOf(planOf(inputs, product + "  %a = BiasAdd(%p, %b)\n", "%a")), (Kinds{"matmul", "launch"}));
}

TEST(PlanSteps, ProductsOfOtherTypesAreKernels) {
  EXPECT_EQ(kindsOf(planOf("%x: f64[3, 1, 4, 5], %w: f64[1, 2, 5, 6]", "  %p = MatMul(%x, %w)\n  %r = ReLU(%p)\n", "%r")),
            (Kinds{"launch", "launch"}));
}

// Flat kernels serve every size, except that large results go around the caches.
TEST(PlanSteps, LargeResultsHaveTheirOwnKernel) {
  auto symbol = [](const std::string &rows) {
    return planOf("%x: f32[" + rows + ", 1024]", "  %y = Exp(%x)\n", "%y").kernels(0).variants(0).symbol();
  };
  std::string small = symbol("8");
  EXPECT_EQ(symbol("6016"), small); // 23.5 MiB in, 23.5 MiB out
  EXPECT_NE(symbol("6144"), small); // 24 MiB in, 24 MiB out
  EXPECT_EQ(symbol("6144"), symbol("9000"));
}

} // namespace
