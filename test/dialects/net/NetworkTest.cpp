// Rules and assignments as plain data, attributes that every operator may carry, and verifiers of whole networks.
#include "dialects/dist/DistDialect.h"
#include "test/dialects/net/TestNetwork.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace msc;
using namespace msc::net;
using namespace msc::test;

namespace {

TEST(ShardingRule, PrintsEveryKindOfFactor) {
  ShardingRule rule;
  rule.add({.name = "n", .size = 4});
  rule.add({.name = "h", .size = 8, .halo = true});
  rule.add({.name = "c", .size = 8, .kind = FactorKind::Replicated, .reason = "no"});
  rule.add({.name = "m", .size = 8, .kind = FactorKind::Reduction, .reduce = ReduceKind::Max});
  rule.add({.name = "d", .size = 64, .kind = FactorKind::Blocked, .block = 16});
  rule.operands = {{{0}, {1, 4}, {}}, {}};
  rule.results = {{{0}, {2}}, {{3}}};
  EXPECT_EQ(rule.str(), "(n h.d 1, ()) -> (n c, m), halo h, whole c, max m, d by 16");
}

TEST(ShardingRule, MakesShardingsOfOperandsAndResults) {
  // MatMul ((2, 4), (4, 1)) on 8 devices.
  ShardingRule rule;
  rule.add({.name = "m", .size = 16});
  rule.add({.name = "k", .size = 32, .kind = FactorKind::Reduction});
  rule.add({.name = "n", .size = 16});
  rule.operands = {{{0}, {1}}, {{1}, {2}}};
  rule.results = {{{0}, {2}}};
  Assignment assignment{{2, 4}, {{0}, {1}, {}}};
  EXPECT_EQ(operandSharding(rule, assignment, 0).str(), "(2, 4) [0, 1]");
  EXPECT_EQ(operandSharding(rule, assignment, 1).str(), "(2, 4) [1, -]");
  EXPECT_EQ(resultSharding(rule, assignment, 0).str(), "(2, 4) [0, -] partial(sum: 1)");
}

TEST(ShardingRule, OrdersPartialAxesAndJoinsAxesOfOneFactor) {
  ShardingRule rule;
  rule.add({.name = "a", .size = 8, .kind = FactorKind::Reduction});
  rule.add({.name = "b", .size = 8, .kind = FactorKind::Reduction});
  rule.operands = {{{0}, {1}}};
  rule.results = {{}};
  Assignment assignment{{2, 2, 2}, {{2, 0}, {1}}};
  EXPECT_EQ(operandSharding(rule, assignment, 0).str(), "(2, 2, 2) [2.0, 1]");
  EXPECT_EQ(resultSharding(rule, assignment, 0).str(), "(2, 2, 2) [] partial(sum: 0, sum: 1, sum: 2)");
}

TEST(ShardingRule, WritesStrategiesAsTuples) {
  EXPECT_EQ(strategyText({{2, 4}, {4, 1}}), "((2, 4), (4, 1))");
  EXPECT_EQ(strategyText({{8}, {}}), "((8), ())");
}

TEST(Attributes, ComeBackAsTheyWereSet) {
  NetContext context;
  TestNetwork network(context);
  Operation *op = network.op("ReLU", {network.input("x", "4x4xf32")});
  EXPECT_EQ(getPhase(op), Phase::Forward);
  EXPECT_FALSE(getInStrategy(op) || getForwardId(op) || getId(op));
  EXPECT_EQ(getInstanceName(op), "");
  StringRef names[] = {"h"};
  setValueNames(op, names);
  EXPECT_EQ(getInstanceName(op), "h"); // default: the name of the value
  setInstanceName(op, "relu");
  setPhase(op, Phase::Backward);
  setScope(op, "Default/net");
  setInStrategy(op, {{2, 4}});
  setOutStrategy(op, {{8, 1}});
  setStrategyOrigin(op, "user");
  setForwardId(op, 3);
  setId(op, 4);
  EXPECT_EQ(getInstanceName(op), "relu");
  EXPECT_EQ(getPhase(op), Phase::Backward);
  EXPECT_EQ(getScope(op), "Default/net");
  EXPECT_EQ(getInStrategy(op), (Strategy{{2, 4}}));
  EXPECT_EQ(getOutStrategy(op), (Strategy{{8, 1}}));
  EXPECT_EQ(getStrategyOrigin(op), "user");
  EXPECT_EQ(getForwardId(op), 3);
  EXPECT_EQ(getId(op), 4);
  setPhase(op, Phase::Forward);
  EXPECT_FALSE(op->hasAttr("net.phase"));
}

TEST(Attributes, NameInputsParametersAndResults) {
  NetContext context;
  TestNetwork network(context);
  Value x = network.input("x", "4xf32"), w = network.param("layer1.weight", "4xf32");
  EXPECT_EQ(getValueName(x), "x");
  EXPECT_EQ(getValueName(w), "layer1.weight");
  EXPECT_EQ(getValueName(network.value("Add", {x, w}, "", "sum")), "sum");
  EXPECT_EQ(getValueName(network.value("Add", {x, w})), "");
}

/// Parses a module; the diagnostics say what the verifiers found.
std::vector<std::string> verified(StringRef text) {
  NetContext context;
  context.get()->loadDialect<dist::DistDialect>();
  parseSourceString<ModuleOp>(text, context.get());
  return context.diagnostics;
}

TEST(Network, PrintsAndParses) {
  const char *text = R"(module {
  net.network @n inputs ["x"] {
  ^bb0(%arg0: tensor<4x4xf32>):
    %0 = net.param "w" = {a = 1.000000e-02 : f64, kind = "normal"} : tensor<4x4xf32>
    %1 = net.scalar "learning_rate" = {kind = "constant", values = [2.000000e-01]} : tensor<f32>
    %2 = net.constant 1.000000e+00 : tensor<f32>
    %3 = net.MatMul %arg0, %0 {transpose_b = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    net.update %0, %3 : tensor<4x4xf32>, tensor<4x4xf32>
    net.return %3 names ["out"] : tensor<4x4xf32>
  }
  net.config "train" "" {epochs = 5 : i64} at {}
}
)";
  NetContext context;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
  ASSERT_TRUE(module);
  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  EXPECT_EQ(printed + "\n", text);
}

TEST(Network, AcceptsTypesWithShardings) {
  EXPECT_TRUE(verified(R"(
    net.network @n inputs ["x"] {
    ^bb0(%x: tensor<4x4xf32, #dist.sharding<"(2) [0, -]">>):
      %y = net.ReLU %x : (tensor<4x4xf32, #dist.sharding<"(2) [0, -]">>) -> tensor<4x4xf32, #dist.sharding<"(2) [0, -]">>
      net.return %y names ["y"] : tensor<4x4xf32, #dist.sharding<"(2) [0, -]">>
    })")
                  .empty());
}

TEST(Network, RefusesWrongResultTypes) {
  std::vector<std::string> said = verified(R"(
    net.network @n inputs ["x"] {
    ^bb0(%x: tensor<4x4xf32>):
      %y = net.ReLU %x : (tensor<4x4xf32>) -> tensor<4x5xf32>
      net.return %y names ["y"] : tensor<4x5xf32>
    })");
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find("are incompatible with return type(s) of operation"), std::string::npos) << said[0];
}

TEST(Network, RefusesWrongStructure) {
  EXPECT_EQ(verified(R"(net.network @n inputs [] { net.return names [] })"), std::vector<std::string>{});
  EXPECT_EQ(verified(R"(net.network @n inputs ["x"] { net.return names [] })").front(),
            "error: 'net.network' op has 0 inputs, but 1 names");
  EXPECT_EQ(verified(R"(net.network @n inputs [] { %0 = net.constant 1.0 : tensor<f32> })").front(),
            "error: 'net.network' op does not end in net.return");
  EXPECT_EQ(verified(R"(net.network @n inputs [] {
      %0 = net.constant 1.0 : tensor<f32>
      net.return %0, %0 names ["a", "a"] : tensor<f32>, tensor<f32>
    })")
                .front(),
            "error: result 'a' is named twice");
  EXPECT_EQ(verified(R"(net.network @n inputs [] {
      %0 = net.param "w" = {kind = "zeros"} : tensor<2xf32>
      %1 = net.param "w" = {kind = "ones"} : tensor<2xf32>
      net.return names []
    })"),
            (std::vector<std::string>{"error: parameter 'w' is declared twice", "note: first declared here"}));
  EXPECT_EQ(verified(R"(net.network @n inputs [] {
      %0 = net.constant 1.0 : tensor<f32>
      net.update %0, %0 : tensor<f32>, tensor<f32>
      net.return names []
    })")
                .front(),
            "error: 'net.update' op writes a value that is not a parameter");
}

TEST(Repeat, RefusesWrongStructure) {
  auto repeat = [](const std::string &rounds, const std::string &body) {
    std::vector<std::string> said = verified("net.network @n inputs [\"x\"] {\n^bb0(%x: tensor<2xf32>):\n  %y = net.repeat \"i\" " +
                                             rounds + " (%x) : (tensor<2xf32>) -> tensor<2xf32> {\n  ^bb0(%t: tensor<2xf32>):\n" +
                                             body + "  }\n  net.return %y names [\"y\"] : tensor<2xf32>\n}\n");
    return said.empty() ? "" : said.front();
  };
  const std::string yield = "    net.yield %t : tensor<2xf32>\n";
  EXPECT_EQ(repeat("from -2 to 1", yield), "");
  EXPECT_EQ(repeat("from 1 to -2", yield), "error: 'net.repeat' op has no round: it goes from 1 to -2");
  EXPECT_EQ(repeat("from 0 to 2", "    net.constant 1.0 : tensor<f32>\n"), "error: 'net.repeat' op does not end in net.yield");
  EXPECT_EQ(repeat("from 0 to 2", "    net.yield %t, %t : tensor<2xf32>, tensor<2xf32>\n"),
            "error: 'net.repeat' op has initial values, block arguments, yielded values and results of different types");
  EXPECT_EQ(repeat("from 0 to 2", R"(    net.repeat "i" from 0 to 2 () : () -> () {
      net.yield
    }
)" + yield),
            "error: 'net.repeat' op has the variable 'i' of a repeat around it");
}

} // namespace
