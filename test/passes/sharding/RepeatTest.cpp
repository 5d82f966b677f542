// Strategies of repeats: one decision per operator of the body, whatever the number of rounds.
#include "Builders.h"
#include "dialects/net/Repeat.h"
#include "passes/sharding/Convert.h"
#include "passes/sharding/Passes.h"
#include "test/frontend/Reading.h"

#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

#include <map>

using namespace msc;
using namespace msc::passes;
using namespace msc::test;
using net::Strategy;

namespace {

std::string transformer(int64_t layers, const std::string &cut) {
  return R"(import "nn.mir"
mesh (data: 2, model: 4)
network transformer(%x: f32[8, 6, 12], %label: f32[8, 6, 5]) {
  %in = Linear(%x, out: 16) @ "embed" {sharding: (data, None, None)}
  %h = repeat i in 0..)" +
         std::to_string(layers) + R"( with %t = %in {
    %y = TransformerBlock(%t, heads: 4, hidden: 64, norm_first: true, cut: )" +
         cut + R"() @ "layers.{i}"
    yield %y
  }
  %n = LayerNorm(%h) @ "norm"
  %out = Linear(%n, out: 5) @ "head"
  %loss = MSELoss(%out, %label)
  return loss: %loss
}
)";
}

net::NetworkOp networkIn(Reading &reading) { return *reading.module->getOps<net::NetworkOp>().begin(); }

frontend::ParseOptions folded(bool isFolded = true) { return {.devices = 8, .layerLibrary = LIBRARY_FOLDER, .keepRepeats = isFolded}; }

size_t operatorsSeen(int64_t layers) {
  Reading reading(transformer(layers, "model"), folded());
  EXPECT_TRUE(reading.module) << reading.said;
  std::vector<Members> members;
  return problemOf(networkIn(reading), 8, /*joinAlike=*/true, members).operators.size();
}

/// Strategies by instance name, after the rounds stand one after the other.
std::map<std::string, std::string> strategiesIn(const std::string &text, const std::string &mode, bool isFolded = true) {
  Reading reading(text, folded(isFolded));
  EXPECT_TRUE(reading.module) << reading.said;
  if (!isFolded) // and nothing remembers that it was
    reading.module->walk([](mlir::Operation *op) { op->removeAttr("net.alike"); });
  std::map<std::string, std::string> strategies;
  mlir::PassManager manager(&reading.context);
  AssignStrategiesPassOptions options;
  options.devices = 8;
  options.parallelMode = mode;
  options.datasetStrategy = "data_parallel";
  manager.addPass(createAssignStrategiesPass(options));
  manager.addPass(createUnrollPass());
  EXPECT_TRUE(mlir::succeeded(manager.run(*reading.module))) << reading.said;
  reading.module->walk([&](net::Operator op) {
    strategies[net::getInstanceName(op).str()] = net::strategyText(net::getInStrategy(op).value_or(Strategy{}));
  });
  return strategies;
}

TEST(Repeat, IsSeenOnceWhateverItsRounds) {
  size_t few = operatorsSeen(2);
  EXPECT_EQ(few, 24u);
  EXPECT_EQ(operatorsSeen(96), few);
  EXPECT_EQ(operatorsSeen(1000), few);
}

TEST(Repeat, GivesAllRoundsTheSameStrategies) {
  for (const char *mode : {"auto_parallel", "semi_auto_parallel", "data_parallel", "stand_alone"})
    for (const char *cut : {"auto", "model"}) {
      auto strategies = strategiesIn(transformer(5, cut), mode);
      size_t layers = 0;
      for (const auto &[name, strategy] : strategies)
        if (llvm::StringRef(name).starts_with("layers.0.")) {
          ++layers;
          for (int i = 1; i < 5; ++i)
            EXPECT_EQ(strategies["layers." + std::to_string(i) + name.substr(8)], strategy) << mode << " " << name;
        }
      EXPECT_EQ(layers, 18u);
    }
}

TEST(Repeat, DecidesAsTheUnrolledNetworkWhereThatDecidesAllLayersAlike) {
  for (const char *mode : {"semi_auto_parallel", "data_parallel", "stand_alone"})
    for (const char *cut : {"auto", "model"})
      EXPECT_EQ(strategiesIn(transformer(4, cut), mode), strategiesIn(transformer(4, cut), mode, /*isFolded=*/false))
          << mode << " " << cut;
  // By propagation: inner layers are as they would be unrolled; the first follows what is in front of it, the last what is behind it.
  auto folds = strategiesIn(transformer(5, "model"), "auto_parallel"),
       rounds = strategiesIn(transformer(5, "model"), "auto_parallel", /*isFolded=*/false);
  EXPECT_EQ(folds.size(), rounds.size());
  for (const auto &[name, strategy] : rounds)
    if (!llvm::StringRef(name).starts_with("layers.0.") && !llvm::StringRef(name).starts_with("layers.4."))
      EXPECT_EQ(folds[name], strategy) << name;
  // Nothing configured: from the inputs through all layers.
  EXPECT_EQ(strategiesIn(transformer(5, "auto"), "auto_parallel"),
            strategiesIn(transformer(5, "auto"), "auto_parallel", /*isFolded=*/false));
}

/// h = repeat(rounds) { h = relu(tanh(h)) }, an operator in front and one behind.
struct Loop {
  Problem problem{.devices = 8};
  explicit Loop(int64_t rounds, std::optional<Strategy> before, std::optional<Strategy> within = {}) {
    int32_t x = tensor(problem, "x", {16, 32}), argument, yielded, result;
    int32_t in = add(problem, "before", pointwise("Exp", {16, 32}, 1), {x}, std::move(before));
    argument = tensor(problem, "argument", {16, 32});
    int32_t t = add(problem, "tanh.{i}", pointwise("Tanh", {16, 32}, 1), {argument}, std::move(within));
    yielded = add(problem, "relu.{i}", pointwise("ReLU", {16, 32}, 1), {t});
    result = tensor(problem, "result", {16, 32});
    add(problem, "behind", pointwise("Neg", {16, 32}, 1), {result});
    problem.repeats.push_back({"i", 0, rounds - 1});
    for (size_t body : {1, 2}) {
      problem.operators[body].repeats = {0};
      problem.operators[body].rounds = rounds;
    }
    problem.handovers = {{in, argument, 1, true}, {yielded, argument, rounds - 1, false}, {yielded, result, 1, true}};
  }
  std::string run() {
    std::string text;
    Choices choices = propagate(problem);
    for (size_t i = 0; i < choices.size(); ++i)
      text += (i ? "; " : "") + net::strategyText(inStrategy(problem.operators[i].facts.rule, choices[i].pieces)) + " " +
              choices[i].origin;
    return text;
  }
};

TEST(Repeat, CarriesStrategiesInFromRoundToRoundAndOut) {
  EXPECT_EQ(Loop(3, Strategy{{2, 4}}).run(),
            "((2, 4)) user; ((2, 4)) propagated from 'before'; ((2, 4)) propagated from 'tanh.{i}'; "
            "((2, 4)) propagated from 'relu.2'");
  EXPECT_EQ(Loop(3, std::nullopt, Strategy{{8, 1}}).run(),
            "((8, 1)) propagated from 'tanh.0'; ((8, 1)) user; ((8, 1)) propagated from 'tanh.{i}'; "
            "((8, 1)) propagated from 'relu.2'");
}

TEST(Repeat, IsDecidedByItsOwnRoundsBeforeWhatIsAround) {
  // 'before' is nearer to 'tanh', but three rounds would be redistributed instead of one value.
  EXPECT_EQ(Loop(3, Strategy{{2, 4}}, Strategy{{1, 8}}).run(),
            "((2, 4)) user; ((1, 8)) user; ((1, 8)) propagated from 'tanh.{i}'; ((1, 8)) propagated from 'relu.2'");
}

TEST(ValueFlow, ReachesThroughCarriedValues) {
  Loop loop(5, std::nullopt);
  ValueFlow flow(loop.problem);
  auto text = [](const std::vector<Handover> &list) {
    std::string all;
    for (const Handover &handover : list)
      all += std::to_string(handover.tensor) + (handover.crossesBorder ? "!" : "") +
             (handover.times > 1000 ? "" : "x" + std::to_string(handover.times)) + " ";
    return all;
  };
  // Tensors: x 0, before 1, argument 2, tanh 3, relu 4, result 5, behind 6.
  EXPECT_EQ(text(flow.sourcesOf(2)), "2 1!x1 4x4 ");
  EXPECT_EQ(text(flow.sourcesOf(5)), "5 4!x1 ");
  EXPECT_EQ(text(flow.readersOf(1)), "1 2!x1 ");
  EXPECT_EQ(text(flow.readersOf(4)), "4 2x4 5!x1 ");
  EXPECT_EQ(text(flow.sourcesOf(3)), "3 ");
}

} // namespace
