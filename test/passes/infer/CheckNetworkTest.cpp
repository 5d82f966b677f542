// What the check of whole networks says.
#include "passes/infer/Passes.h"
#include "test/dialects/net/TestNetwork.h"

#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

using namespace msc;
using namespace msc::test;

namespace {

bool check(TestNetwork &network, const std::string &loss) {
  mlir::PassManager manager(network.context.get());
  manager.addPass(infer::createCheckNetwork({loss}));
  return succeeded(manager.run(*network.module));
}

TEST(CheckNetwork, AcceptsAScalarLoss) {
  NetContext context;
  TestNetwork network(context);
  mlir::Value loss = network.value("ReduceSum", {network.param("w", "3xf32")}, "", "loss");
  network.results(loss, {"loss"});
  EXPECT_TRUE(check(network, "loss"));
  EXPECT_TRUE(check(network, "")); // nothing to minimise: a network for predictions
  EXPECT_TRUE(context.diagnostics.empty());
}

TEST(CheckNetwork, RefusesALossThatIsMissingOrNoScalar) {
  NetContext context;
  TestNetwork network(context);
  mlir::Value flags = network.value("Equal", {network.param("w", "3xf32"), network.input("x", "3xf32")}, "", "same");
  network.results(flags, {"same"});
  EXPECT_FALSE(check(network, "loss"));
  EXPECT_FALSE(check(network, "same"));
  EXPECT_EQ(context.diagnostics,
            (std::vector<std::string>{"error: network 'test' has no result 'loss' to minimise; its results are same",
                                      "error: result 'same' cannot be minimised: it is bool 3, not a float scalar",
                                      "note: computed here"}));
}

TEST(CheckNetwork, WarnsOfWhatNoResultUses) {
  NetContext context;
  TestNetwork network(context);
  mlir::Value w = network.param("w", "3xf32"), idle = network.param("idle", "3xf32");
  network.input("spare", "3xf32");
  network.value("Exp", {idle});
  network.results(network.value("ReduceSum", {w}, "", "loss"), {"loss"});
  EXPECT_TRUE(check(network, "loss"));
  EXPECT_EQ(context.diagnostics, (std::vector<std::string>{"warning: input 'spare' is not used by any result",
                                                           "warning: parameter 'idle' is not used by any result"}));
}

TEST(CheckNetwork, WarnsOnceOfOperatorsThatNobodyUses) {
  auto warnings = [](std::vector<std::string> keep) {
    NetContext context;
    TestNetwork network(context);
    mlir::Value w = network.param("w", "3xf32");
    mlir::Value dead = network.value("Exp", {network.value("Neg", {w})}, "", "dead");
    net::setInstanceName(dead.getDefiningOp(), "last");
    network.results(network.value("ReduceSum", {w}, "", "loss"), {"loss"});
    mlir::PassManager manager(context.get());
    infer::CheckNetworkOptions options;
    options.loss = "loss";
    options.keep = keep;
    manager.addPass(infer::createCheckNetwork(options));
    EXPECT_TRUE(succeeded(manager.run(*network.module)));
    return context.diagnostics;
  };
  EXPECT_EQ(warnings({}), (std::vector<std::string>{"warning: 'last' is not used by any result"}));
  EXPECT_TRUE(warnings({"%dead"}).empty());
}

} // namespace
