// Rounds of a repeat that take different strategies: the folded search against the same network with its rounds one after the other.
#include "dialects/dist/DistDialect.h"
#include "dialects/net/Repeat.h"
#include "passes/sharding/Decisions.h"
#include "passes/sharding/Passes.h"
#include "runtime/machine/MachineFile.h"
#include "test/Campaign.h"
#include "test/frontend/Reading.h"
#include "test/passes/sharding/Machines.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

using namespace msc;
using namespace msc::passes;
using namespace msc::test;

namespace {

net::NetworkOp networkIn(Reading &reading) { return *reading.module->getOps<net::NetworkOp>().begin(); }

frontend::ParseOptions options(bool isFolded) { return {.devices = 8, .layerLibrary = LIBRARY_FOLDER, .keepRepeats = isFolded}; }

struct Found {
  double us = 0, boundUs = 0, bytes = 0;
  bool isOptimal = false;
  size_t repeats = 0;                             ///< before their rounds stand one after the other
  std::map<std::string, std::string> strategies; ///< by instance name
};

/// `limit`: bytes that a rank may need; 0: any.
Found search(const std::string &text, bool isFolded, const MachineModel &machine, int64_t limit = 0) {
  Reading reading(text, options(isFolded));
  EXPECT_TRUE(reading.module) << reading.said;
  reading.context.getOrLoadDialect<dist::DistDialect>()->setMachine(machine);
  if (!isFolded) // and nothing remembers that it was
    reading.module->walk([](mlir::Operation *op) { op->removeAttr("net.alike"); });
  mlir::PassManager manager(&reading.context);
  AssignStrategiesPassOptions assign;
  assign.devices = 8;
  assign.parallelMode = "auto_parallel";
  assign.searchMode = "optimal";
  assign.datasetStrategy = "data_parallel";
  assign.minimize = "loss";
  assign.optimizerStates = 1;
  assign.memoryBytes = limit;
  assign.tellsMemory = true;
  manager.addPass(createAssignStrategiesPass(assign));
  EXPECT_TRUE(mlir::succeeded(manager.run(*reading.module))) << reading.said;
  Found found;
  if (auto facts = takeSearchFacts(networkIn(reading)))
    found = {facts->us, facts->boundUs, facts->arenaBytes, facts->isOptimal, 0, {}};
  reading.module->walk([&](net::RepeatOp) { ++found.repeats; });
  net::unrollAll(networkIn(reading));
  reading.module->walk([&](net::Operator op) {
    found.strategies[net::getInstanceName(op).str()] = net::strategyText(net::getInStrategy(op).value_or(net::Strategy{}));
  });
  return found;
}

std::string sizes(int64_t rows, int64_t columns) { return "f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "]"; }

/// What layers read beside their own weight and what the one in front of them made.
enum class Reads { Nothing, OwnWeightTwice, ValueOfAll, ParameterOfAll };

/// Layers between a product in front, or the input, of which nobody wants a gradient, and a product behind, with or without a sum
/// around each.
std::string layers(std::mt19937_64 &draw, Reads reads, bool startsAtInput = false) {
  auto size = [&] { return int64_t(1) << (2 + draw() % 10); };
  const int64_t batch = size(), hidden = size(), in = startsAtInput ? hidden : size(), out = size(), rounds = 2 + static_cast<int64_t>(draw() % 5);
  const bool isResidual = draw() % 2, hasFront = startsAtInput && draw() % 2;
  std::string text = "network n(%x: " + sizes(batch, in) + ", %label: " + sizes(batch, out) + ") {\n" +
                     "  param %w9: " + sizes(hidden, out) + " = Normal(0.02)\n";
  if (!startsAtInput)
    text += "  param %w0: " + sizes(in, hidden) + " = Normal(0.02)\n";
  if (reads == Reads::ParameterOfAll)
    text += "  param %g: " + sizes(hidden, hidden) + " = Normal(0.02)\n";
  if (reads == Reads::ValueOfAll)
    text += "  param %b0: " + sizes(in, hidden) + " = Normal(0.02)\n  %b = MatMul(%x, %b0) @ \"bias\"\n";
  if (!startsAtInput)
    text += "  %h0 = MatMul(%x, %w0) @ \"first\"\n";
  text += "  %h = repeat i in 0.." + std::to_string(rounds) + " with %t = " + (startsAtInput ? "%x" : "%h0") + " {\n";
  if (hasFront)
    text += "    %f = Sigmoid(%t) @ \"front.{i}\"\n";
  text += "    param %w: " + sizes(hidden, hidden) + " = Normal(0.02)\n    %m = MatMul(" + (hasFront ? "%f" : "%t") + ", %w) @ \"mm.{i}\"\n";
  switch (reads) {
  case Reads::Nothing: text += "    %s = Abs(%m) @ \"abs.{i}\"\n"; break;
  case Reads::OwnWeightTwice: text += "    %s = MatMul(%m, %w, transpose_b: true) @ \"again.{i}\"\n"; break;
  case Reads::ValueOfAll: text += "    %s = Add(%m, %b) @ \"add.{i}\"\n"; break;
  case Reads::ParameterOfAll: text += "    %s = MatMul(%m, %g) @ \"shared.{i}\"\n"; break;
  }
  text += "    %y = ReLU(%s) @ \"relu.{i}\"\n";
  text += isResidual ? "    %r = Add(%t, %y) @ \"sum.{i}\"\n    yield %r\n  }\n" : "    yield %y\n  }\n";
  return text + "  %o = MatMul(%h, %w9) @ \"last\"\n  %loss = MSELoss(%o, %label) @ \"loss\"\n  return loss: %loss\n}\n" +
         "train {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss}\n";
}

TEST(Rounds, AreAsFastAsInTheUnrolledNetwork) {
  int64_t different = 0, all = 0;
  for (uint64_t seed = 1; seed <= campaignCases(60, 10); ++seed) {
    std::mt19937_64 draw(seed);
    const MachineModel machine = seed % 2 ? MachineModel::cpuLocal() : quick();
    const std::string text = layers(draw, seed % 3 ? Reads::Nothing : Reads::OwnWeightTwice, /*startsAtInput=*/seed % 4 > 1);
    Found folded = search(text, true, machine), unrolled = search(text, false, machine);
    ASSERT_TRUE(folded.isOptimal && unrolled.isOptimal) << text;
    ASSERT_NEAR(folded.us, unrolled.us, 1e-9 * unrolled.us) << "seed " << seed << "\n" << text;
    ASSERT_EQ(folded.strategies.size(), unrolled.strategies.size());
    different += folded.repeats > 1;
    ++all;
  }
  std::printf("rounds differ in %ld of %ld networks\n", static_cast<long>(different), static_cast<long>(all));
  EXPECT_GE(different, 5) << "layers that differ are what this is about";
}

/// What all rounds read they ask for alike: no search of the unrolled network is slower.
TEST(Rounds, AskAlikeForWhatIsThereForAll) {
  int64_t differ = 0;
  for (uint64_t seed = 1; seed <= campaignCases(12, 10); ++seed) {
    std::mt19937_64 draw(seed);
    const std::string text = layers(draw, seed % 2 ? Reads::ValueOfAll : Reads::ParameterOfAll);
    Found folded = search(text, true, quick()), unrolled = search(text, false, quick());
    ASSERT_TRUE(folded.isOptimal);
    differ += folded.repeats > 1;
    ASSERT_GE(folded.us, unrolled.us * (1 - 1e-9)) << "seed " << seed << "\n" << text;
    ASSERT_LE(folded.us, unrolled.us * 1.3) << "seed " << seed << "\n" << text;
  }
  std::printf("rounds that share something differ in %ld networks\n", static_cast<long>(differ));
}

TEST(Rounds, AlternateWhereThatSavesACollective) {
  // Columns, then rows, then columns: one sum for two layers.
  Found found = search(R"(
network n(%x: f32[256, 256], %label: f32[256, 16]) {
  param %w0: f32[256, 2048] = Normal(0.02)
  param %w9: f32[2048, 16] = Normal(0.02)
  %h0 = MatMul(%x, %w0) @ "first"
  %h = repeat i in 0..6 with %t = %h0 {
    param %w: f32[2048, 2048] = Normal(0.02)
    %m = MatMul(%t, %w) @ "mm.{i}"
    %y = ReLU(%m) @ "relu.{i}"
    yield %y
  }
  %o = MatMul(%h, %w9) @ "last"
  %loss = MSELoss(%o, %label) @ "loss"
  return loss: %loss
}
train {optimizer: Momentum(learning_rate: 0.01, momentum: 0.9), minimize: loss}
)",
                       true, *readMachine("h100x8"));
  std::set<std::string> strategies;
  for (int round = 1; round < 5; ++round)
    strategies.insert(found.strategies["mm." + std::to_string(round)]);
  EXPECT_EQ(strategies, (std::set<std::string>{"((1, 1), (1, 8))", "((1, 8), (8, 1))"}));
  EXPECT_EQ(found.strategies["mm.1"], found.strategies["mm.3"]);
  EXPECT_NE(found.strategies["mm.1"], found.strategies["mm.2"]);
}

/// Memory may be saved in some rounds only.
TEST(Rounds, KeepWithinALimitAsTheUnrolledNetworkDoes) {
  int64_t tight = 0, close = 0;
  for (uint64_t seed = 1; seed <= campaignCases(8, 25); ++seed) {
    std::mt19937_64 draw(seed);
    const std::string text = layers(draw, Reads::Nothing);
    Found free = search(text, true, quick());
    const auto limit = static_cast<int64_t>(free.bytes * 0.85);
    Found folded = search(text, true, quick(), limit), unrolled = search(text, false, quick(), limit);
    if (unrolled.bytes > static_cast<double>(limit)) // nothing fits
      continue;
    ++tight;
    ASSERT_LE(folded.bytes, static_cast<double>(limit) * (1 + 1e-9)) << "seed " << seed;
    // Both are within their certified gaps of the same optimum.
    ASSERT_LE(folded.boundUs, unrolled.us * (1 + 1e-9)) << "seed " << seed << "\n" << text;
    ASSERT_LE(unrolled.boundUs, folded.us * (1 + 1e-9)) << "seed " << seed << "\n" << text;
    close += folded.us <= folded.boundUs * 1.01;
  }
  std::printf("%ld networks, %ld certified within 1 %%\n", static_cast<long>(tight), static_cast<long>(close));
  EXPECT_GE(tight, 5);
}

TEST(Rounds, AreTheSameAfterARepeatIsSplit) {
  auto unrolledText = [](std::initializer_list<int64_t> splits) {
    std::mt19937_64 draw(7);
    Reading reading(layers(draw, Reads::Nothing), options(true));
    net::NetworkOp network = networkIn(reading);
    net::RepeatOp repeat = *network.getOps<net::RepeatOp>().begin();
    for (int64_t round : splits)
      if (round < repeat.endRound()) {
        mlir::IRMapping mapping;
        net::splitBefore(repeat, round, mapping);
      }
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*reading.module)));
    net::unrollAll(network);
    reading.module->walk([](mlir::Operation *op) { op->removeAttr("net.alike"); }); // numbers repeats
    std::string text;
    llvm::raw_string_ostream stream(text);
    reading.module->print(stream);
    return text;
  };
  const std::string whole = unrolledText({});
  EXPECT_NE(whole.find("mm.1"), std::string::npos);
  EXPECT_EQ(unrolledText({1}), whole);
  EXPECT_EQ(unrolledText({2, 1}), whole);
}

} // namespace
