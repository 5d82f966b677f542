// The quickstart network on 8 devices: strategies, collectives with their groups, local shapes and numbers.
#include "passes/partition/Passes.h"
#include "dialects/net/NetOps.h"
#include "passes/sharding/Convert.h"
#include "test/passes/partition/RankInterpreter.h"
#include "test/passes/partition/TrainStep.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace msc;
using namespace msc::test;

namespace {

struct Quickstart {
  NetContext context;
  TestNetwork net{context};
  Value w, w2;

  explicit Quickstart(std::optional<net::Strategy> strategy = net::Strategy{{2, 4}, {4, 1}}) {
    loadDist(context);
    Value x = net.input("x", "16x32xf64"), label = net.input("label", "16x16xf64");
    w = net.param("w", "32x16xf64");
    w2 = net.param("w2", "16x16xf64");
    auto named = [&](Operation *op, StringRef name) {
      net::setInstanceName(op, name);
      net::setScope(op, ("Default/network-WithLossCell/" + name).str());
      return op->getResult(0);
    };
    Operation *first = net.op("MatMul", {x, w}, "", "h");
    if (strategy)
      net::setInStrategy(first, *strategy);
    Value h = named(first, "matmul");
    Value a = named(net.op("ReLU", {h}, "", "a"), "relu");
    Value out = named(net.op("MatMul", {a, w2}, "", "out"), "matmul2");
    Value loss = named(net.op("MSELoss", {out, label}, "", "loss"), "loss");
    net.results({loss, out}, {"loss", "out"});
  }

  /// "AllReduce 0-1-2-3 forward", one per collective, in order, for rank 0.
  std::vector<std::string> collectives() {
    std::vector<std::string> list;
    net.network.walk([&](dist::CollectiveOp op) {
      std::string group;
      for (int64_t rank :
           groupOf(std::vector<int64_t>(op.getGroupMatrix()), std::vector<int32_t>(op.getGroupAxes()), 0))
        group += (group.empty() ? "" : "-") + std::to_string(rank);
      list.push_back(
          (dist::stringifyCollectiveKind(op.getKind()) + " " + group + " " + net::phaseName(net::getPhase(op))).str());
    });
    return list;
  }

  std::map<std::string, int64_t> counts() {
    std::map<std::string, int64_t> counted;
    for (const std::string &text : collectives())
      ++counted[text];
    return counted;
  }

  std::string strategyOf(StringRef name) {
    std::string text;
    net.network.walk([&](Operation *op) {
      if (net::getPhase(op) == net::Phase::Forward && net::getInstanceName(op) == name)
        if (auto strategy = net::getInStrategy(op))
          text = net::strategyText(*strategy);
    });
    return text;
  }
};

passes::AssignStrategiesPassOptions onDevices(int64_t devices, std::string mode = "auto_parallel") {
  passes::AssignStrategiesPassOptions options;
  options.devices = devices;
  options.parallelMode = std::move(mode);
  return options;
}

TEST(QuickstartPartition, StrategiesFollowFromOne) {
  Quickstart q;
  ASSERT_TRUE(assignStrategies(q.net, onDevices(8)));
  EXPECT_EQ(q.strategyOf("matmul"), "((2, 4), (4, 1))");
  EXPECT_EQ(q.strategyOf("relu"), "((2, 4))");
  EXPECT_EQ(q.strategyOf("matmul2"), "((2, 4), (4, 1))");
  EXPECT_EQ(q.strategyOf("loss"), "((2, 4), (2, 4))");
}

TEST(QuickstartPartition, CollectivesOfRankZero) {
  Quickstart q;
  ASSERT_TRUE(partitionNetwork(q.net, onDevices(8))) << (q.context.diagnostics.empty() ? "" : q.context.diagnostics[0]);
  std::map<std::string, int64_t> wanted = {{"AlltoAll 0-1-2-3 forward", 2},          // x, label
                                           {"AllReduce 0-1-2-3 forward", 2},         // matmul, matmul2
                                           {"AllReduce 0-1-2-3-4-5-6-7 forward", 1}, // loss
                                           {"AllGather 0-1-2-3 backward", 2},        // gradients of out and h
                                           {"AllReduce 0-4 backward", 2}};           // gradients of w and w2
  EXPECT_EQ(q.counts(), wanted);
}

TEST(QuickstartPartition, LocalShapes) {
  Quickstart q;
  ASSERT_TRUE(partitionNetwork(q.net, onDevices(8)));
  auto local = [](Value value) { return dist::shardingOf(value).localShape(passes::shapeOf(value), 0); };
  EXPECT_EQ(local(q.w), (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(local(q.w2), (std::vector<int64_t>{4, 16}));
  q.net.network.walk([&](net::ReLUOp relu) { EXPECT_EQ(local(relu->getResult(0)), (std::vector<int64_t>{8, 4})); });
  q.net.network.walk([&](net::ParamOp param) {
    EXPECT_EQ(local(param.getValue())[1], 16) << param.getName().str(); // moments are stored like their parameters
  });
}

TEST(QuickstartPartition, MovesHaveNamesReasonsAndScopes) {
  Quickstart q;
  ASSERT_TRUE(partitionNetwork(q.net, onDevices(8)));
  std::vector<std::string> reasons;
  std::set<std::string> names;
  q.net.network.walk([&](Operation *op) {
    if (!isa<dist::CollectiveOp, dist::SliceOp>(op))
      return;
    std::string name = net::getInstanceName(op).str();
    EXPECT_TRUE(names.insert(name).second) << name;
    auto collective = dyn_cast<dist::CollectiveOp>(op);
    StringRef move = collective ? collective.getMove() : cast<dist::SliceOp>(op).getMove();
    EXPECT_TRUE(StringRef(name).starts_with(move == "completion" ? "forward_op_" : "redistribution_op_")) << name;
    if (!collective)
      EXPECT_TRUE(StringRef(name).ends_with("StridedSlice")) << name;
    reasons.push_back((collective ? collective.getReason() : cast<dist::SliceOp>(op).getReason()).str());
    EXPECT_EQ(net::getScope(op).starts_with("Gradients/"), net::getPhase(op) == net::Phase::Backward) << name;
  });
  auto has = [&](const char *text) { return std::find(reasons.begin(), reasons.end(), text) != reasons.end(); };
  EXPECT_TRUE(has("MatMul 'matmul' sums over 4 pieces of its contracted dimension"));
  EXPECT_TRUE(has("'relu' wants dimension 1 of 'h' cut into 4"));
  EXPECT_TRUE(has("MSELoss 'loss' sums over 2 x 4 pieces of its reduced dimensions"));
  EXPECT_TRUE(has("'matmul' wants dimension 0 of 'x' cut into 2, dimension 1 cut into 4"));
  EXPECT_TRUE(has("gradient of 'w2' (matmul2) sums over 2 pieces of its contracted dimension"));
  EXPECT_TRUE(has("gradient of 'w' (matmul) wants dimension 1 of the gradient of 'h' whole"));
  for (const std::string &reason : reasons)
    EXPECT_EQ(reason.find("grad_"), std::string::npos) << reason; // such names are nowhere else
  if (HasFailure())
    for (const std::string &reason : reasons)
      std::cerr << reason << "\n";
}

TEST(QuickstartPartition, CompilesToTheSameTextTwice) {
  std::string texts[2];
  for (std::string &text : texts) {
    Quickstart q;
    ASSERT_TRUE(partitionNetwork(q.net, onDevices(8)));
    llvm::raw_string_ostream stream(text);
    q.net.module->print(stream);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(QuickstartPartition, DataParallelReducesOnlyLossAndGradients) {
  Quickstart q(std::nullopt);
  ASSERT_TRUE(partitionNetwork(q.net, onDevices(8, "data_parallel")));
  std::map<std::string, int64_t> wanted = {{"AllReduce 0-1-2-3-4-5-6-7 forward", 1},
                                           {"AllReduce 0-1-2-3-4-5-6-7 backward", 2}};
  EXPECT_EQ(q.counts(), wanted);
}

TEST(QuickstartPartition, StandAloneAndOneDeviceDoNotCommunicate) {
  for (auto options : {onDevices(8, "stand_alone"), onDevices(1)}) {
    Quickstart q;
    ASSERT_TRUE(partitionNetwork(q.net, options));
    EXPECT_TRUE(q.counts().empty());
    ASSERT_EQ(q.context.diagnostics.size(), 1u);
    EXPECT_EQ(q.context.diagnostics[0], options.devices == 1 ? "remark: 1 strategy is ignored on one device"
                                                             : "remark: 1 strategy is ignored in stand_alone mode");
  }
}

TEST(Partition, PartialContributionsToOneGradientAreCompletedOnce) {
  // Both products use w under one sharding, so both gradients of w are partial over the batch axis.
  NetContext context;
  loadDist(context);
  TestNetwork net(context);
  Value x = net.input("x", "16x8xf64"), w = net.param("w", "8x8xf64");
  Value h = net.value("MatMul", {x, w}, "", "h"), out = net.value("MatMul", {h, w}, "", "out");
  net.results({net.value("MSELoss", {out, x}, "", "loss")}, {"loss"});
  ASSERT_TRUE(partitionNetwork(net, onDevices(8, "data_parallel")));
  std::vector<std::string> reduced;
  net.network.walk([&](dist::CollectiveOp op) {
    if (op.getKind() == dist::CollectiveKind::AllReduce)
      reduced.push_back(op.getSource().getDefiningOp()->getName().stripDialect().str());
  });
  EXPECT_EQ(reduced, (std::vector<std::string>{"MSELoss", "Add"}));
}

TEST(Partition, APartialValueThatReachesAnOperatorIsFound) {
  Quickstart q;
  ASSERT_TRUE(partitionNetwork(q.net, onDevices(8)));
  ASSERT_TRUE(succeeded(passes::verifyPartition(q.net.network)));
  q.net.network.walk([](dist::CollectiveOp op) {
    if (op.getKind() != dist::CollectiveKind::AllReduce || net::getPhase(op) != net::Phase::Forward)
      return;
    op.getResult().replaceAllUsesWith(op.getSource());
    op.erase();
  });
  EXPECT_TRUE(failed(passes::verifyPartition(q.net.network)));
  EXPECT_FALSE(q.context.diagnostics.empty());
}

TEST(AssignStrategies, MistakesPointAtOperatorAndOperand) {
  Quickstart q(net::Strategy{{2, 4}, {2, 1}});
  EXPECT_FALSE(assignStrategies(q.net, onDevices(8)));
  EXPECT_EQ(q.context.diagnostics,
            (std::vector<std::string>{
                "error: in_strategy cuts dimensions of 'MatMul' that belong together into different numbers of pieces "
                "(dimension 1 of 'x' is cut into 4, dimension 0 of 'w' into 2)",
                "note: 'w' declared here", "note: help: write the same number in both places"}));
}

TEST(AssignStrategies, StrictRefusesAParameterUnderTwoShardings) {
  for (bool strict : {false, true}) {
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value x = net.input("x", "8x8xf64"), w = net.param("w", "8x8xf64");
    Operation *first = net.op("MatMul", {x, w}, "", "h"),
              *second = net.op("MatMul", {first->getResult(0), w}, "", "out");
    net::setInStrategy(first, {{1, 8}, {8, 1}});
    net::setInStrategy(second, {{8, 1}, {1, 1}});
    net.results({net.value("MSELoss", {second->getResult(0), x}, "", "loss")}, {"loss"});
    auto options = onDevices(8);
    options.strict = strict;
    EXPECT_EQ(partitionNetwork(net, options), !strict);
    if (strict)
      EXPECT_EQ(context.diagnostics[0],
                "error: parameter 'w' is used under two shardings: 'h' wants (8) [0, -], 'out' wants "
                "(8) [-, -]");
    else // in the fewer bytes of both
      EXPECT_EQ(dist::shardingOf(w).str(), "(8) [0, -]");
  }
}

} // namespace
