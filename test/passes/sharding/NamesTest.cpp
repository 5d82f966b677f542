// Strategies depend on what a network computes: not on what its operators are called, nor on the order in which independent ones stand.
#include "compiler/Phases.h"
#include "dialects/dist/DistDialect.h"
#include "passes/sharding/Decisions.h"
#include "test/Campaign.h"
#include "test/e2e/Case.h"
#include "test/frontend/Reading.h"

#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>

using namespace msc;
using namespace msc::passes;
using namespace msc::test;

namespace {

class Assigned {
public:
  Assigned(const e2e::Case &test, const std::string &mode, int64_t candidates, std::optional<uint64_t> shuffled)
      : reading(test.text, {.devices = test.devices, .layerLibrary = SOURCE_FOLDER "/frontend", .keepRepeats = true}) {
    int64_t count = 0;
    mlir::Builder builder(&reading.context);
    reading.module->walk([&](net::Operator op) { op->setAttr("test.number", builder.getI64IntegerAttr(count++)); });
    if (shuffled) {
      draw.seed(*shuffled);
      rename();
      shuffle(networkIn().getBody().front());
      networkIn().walk([&](net::RepeatOp repeat) { shuffle(repeat.getBody().front()); });
    }
    auto config = net::readConfig(*reading.module);
    config->devices = test.devices;
    config->context.parallelMode = "auto_parallel";
    config->context.searchMode = mode;
    for (const compiler::Phase &phase : compiler::strategyPhases(*config, {.candidates = candidates})) {
      mlir::PassManager manager(&reading.context);
      phase.build(manager);
      EXPECT_TRUE(succeeded(manager.run(*reading.module))) << phase.name << "\n" << reading.said;
    }
    if (auto facts = takeSearchFacts(networkIn()))
      us = facts->us;
    reading.module->walk([&](net::Operator op) {
      if (auto number = op->getAttrOfType<mlir::IntegerAttr>("test.number"))
        strategies[number.getInt()] = net::strategyText(net::getInStrategy(op).value_or(net::Strategy{}));
    });
  }

  std::map<int64_t, std::string> strategies; ///< by the place of the operator in the text
  double us = 0;                             ///< 0: nothing was searched

private:
  Reading reading;
  std::mt19937_64 draw;

  net::NetworkOp networkIn() { return *reading.module->getOps<net::NetworkOp>().begin(); }

  void rename() {
    std::vector<int64_t> numbers;
    reading.module->walk([&](net::Operator) { numbers.push_back(static_cast<int64_t>(numbers.size())); });
    std::shuffle(numbers.begin(), numbers.end(), draw);
    reading.module->walk([&](net::Operator op) {
      net::setInstanceName(op, "op" + std::to_string(numbers.back()));
      numbers.pop_back();
    });
  }

  /// A random order in which every operation stands behind those that it takes values of.
  void shuffle(mlir::Block &block) {
    std::vector<mlir::Operation *> waiting, order;
    for (mlir::Operation &op : block.without_terminator())
      waiting.push_back(&op);
    llvm::DenseSet<mlir::Operation *> open(waiting.begin(), waiting.end());
    while (!waiting.empty()) {
      std::vector<size_t> ready;
      for (size_t i = 0; i < waiting.size(); ++i)
        if (!waiting[i]->walk([&](mlir::Operation *inner) {
               for (mlir::Value operand : inner->getOperands())
                 if (open.contains(operand.getDefiningOp()))
                   return mlir::WalkResult::interrupt();
               return mlir::WalkResult::advance();
             }).wasInterrupted())
          ready.push_back(i);
      size_t taken = ready[draw() % ready.size()];
      order.push_back(waiting[taken]);
      open.erase(waiting[taken]);
      waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(taken));
    }
    for (mlir::Operation *op : order)
      op->moveBefore(block.getTerminator());
  }
};

void compare(const std::string &mode, int64_t candidates = 1, int cases = 200) {
  int64_t compared = 0;
  for (uint64_t seed = 1; compared < static_cast<int64_t>(campaignCases(cases, 10)) && seed < 100000; ++seed) {
    auto test = e2e::makeCase(seed);
    ASSERT_TRUE(test) << test.error().message;
    if (test->devices == 1 || test->mode == "hybrid_parallel")
      continue;
    Assigned plain(*test, mode, candidates, std::nullopt), other(*test, mode, candidates, seed);
    ++compared;
    ASSERT_NEAR(plain.us, other.us, 1e-9 * plain.us) << "seed " << seed << "\n" << test->text;
    ASSERT_EQ(plain.strategies, other.strategies) << "seed " << seed << "\n" << test->text;
  }
  EXPECT_GE(compared, cases);
}

TEST(Names, DoNotChangeWhatPropagationDecides) { compare("sharding_propagation"); }

TEST(Names, DoNotChangeWhatASearchFinds) { compare("optimal"); }

TEST(Names, DoNotChangeWhichAssignmentIsFastestAsAPlan) { compare("optimal", 4, 40); }

TEST(Names, DoNotChangeWhatDividingTheDevicesFinds) { compare("recursive_programming"); }

TEST(Names, DoNotChangeStrategiesOfExamples) {
  for (const char *name : {"quickstart", "mlp", "transformer", "gpt2", "bert", "llama", "wide_and_deep", "vgg16", "moe"})
    for (const char *mode : {"optimal", "recursive_programming"}) {
      std::ifstream file(std::string(SOURCE_FOLDER "/examples/") + name + "/net.mir");
      e2e::Case test{.devices = 8, .text = {std::istreambuf_iterator<char>(file), {}}};
      Assigned plain(test, mode, 1, std::nullopt), other(test, mode, 1, 7);
      EXPECT_EQ(plain.us, other.us) << name << " " << mode;
      EXPECT_EQ(plain.strategies, other.strategies) << name << " " << mode;
    }
}

} // namespace
