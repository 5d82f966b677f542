// What networks mean: constants, cells, conditions, repeats, dumps, configs.
#include "Reading.h"

#include "dialects/net/Documentation.h"
#include "dialects/net/Network.h"
#include "frontend/ForeignNames.h"
#include "frontend/Printer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

using namespace msc;
using namespace mlir;
using test::Reading;

namespace {

std::string fileText(const std::string &path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> parametersOf(ModuleOp module) {
  std::vector<std::string> names;
  module.walk([&](net::ParamOp param) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << param.getName() << ' ' << param.getValue().getType();
    names.push_back(text);
  });
  return names;
}

Operation *findOperator(ModuleOp module, StringRef instance) {
  Operation *found = nullptr;
  module.walk([&](net::Operator op) {
    if (net::getInstanceName(op) == instance)
      found = op;
  });
  return found;
}

/// The value of `const a = ...` as the size of a dimension.
int64_t sizeOf(const std::string &expression, frontend::ParseOptions options = {}) {
  Reading reading("const a = " + expression + "\nnetwork n(%x: f32[a]) { return out: %x }", options);
  if (!reading.module) {
    ADD_FAILURE() << reading.said;
    return 0;
  }
  auto network = *reading.module->getOps<net::NetworkOp>().begin();
  return cast<RankedTensorType>(network.getBody().getArgument(0).getType()).getDimSize(0);
}

TEST(ForeignNames, AreNoneOfOursAndMeanOperatorsOfOurs) {
  std::string library = fileText(FRONTEND_LIBRARY "/nn.mir");
  for (const frontend::ForeignName &foreign : frontend::foreignNames()) {
    EXPECT_FALSE(net::documentationOf(foreign.name)) << foreign.name.str();
    llvm::SmallVector<llvm::StringRef> operators;
    foreign.ours.split(operators, " + ", -1, /*KeepEmpty=*/false);
    for (llvm::StringRef name : operators)
      EXPECT_TRUE(net::documentationOf(name)) << foreign.name.str() << " -> " << name.str();
    EXPECT_TRUE(foreign.layer.empty() || library.find("\ncell " + foreign.layer.str() + "(") != std::string::npos)
        << foreign.name.str() << " -> " << foreign.layer.str();
  }
}

TEST(ForeignNames, SomeAreWhatTheTrainBlockDoes) {
  EXPECT_EQ(frontend::helpForOperator("ClipByGlobalNorm", {"Abs"}), "gradients are clipped by 'clip_global_norm: 1.0' in the train block");
  EXPECT_EQ(frontend::helpForOperator("clip_by_value", {"Abs"}), "gradients are clipped by 'clip_value: 1.0' in the train block; tensors by Minimum and Maximum");
  EXPECT_EQ(frontend::helpForOperator("LAMB", {"LambNextMV"}),
            "it is an optimizer: write 'optimizer: Lamb(learning_rate: 0.001)' in the train block; see 'msc ops Lamb'");
}

TEST(Constants, Arithmetic) {
  EXPECT_EQ(sizeOf("2 + 3 * 4 - 5"), 9);
  EXPECT_EQ(sizeOf("(7 - 1) / 2 % 4"), 3);
  EXPECT_EQ(sizeOf("-7 / 2 + 10"), 6); // rounds down
  EXPECT_EQ(sizeOf("-7 % 4 + 1"), 2);
  EXPECT_EQ(sizeOf("((((8))))"), 8);
}

TEST(Constants, DevicesAreTheFlagElseTheContextElseTheMeshElseOne) {
  EXPECT_EQ(sizeOf("devices", {.devices = 6}), 6);
  EXPECT_EQ(sizeOf("devices\ncontext {device_num: 2 * 3}"), 6);
  EXPECT_EQ(sizeOf("devices\nmesh (data: 3)\ncontext {device_num: 3}"), 3);
  EXPECT_EQ(sizeOf("devices\nmesh (data: 2, model: 3)"), 6);
  EXPECT_EQ(sizeOf("devices"), 1);
  Reading clash("mesh (data: 2, model: 3)\nnetwork n(%x: f32[2]) { return out: %x }", {.devices = 8});
  EXPECT_EQ(clash.said, "net.mir:1:1: error: mesh (data: 2, model: 3) needs 6 devices, but --devices is 8\n"
                        "    1 | mesh (data: 2, model: 3)\n"
                        "      | ^~~~\n"
                        "help: pass --devices 6\n");
  // A mesh that speaks of devices has another size for another number of them: the nearest for which it is right.
  auto helpOf = [](const std::string &mesh, int64_t devices) {
    std::string said = Reading("mesh (" + mesh + ")\nnetwork n(%x: f32[2]) { return out: %x }", {.devices = devices}).said;
    return said.substr(said.find("help: "));
  };
  EXPECT_EQ(helpOf("data: devices / 4, model: 4", 3), "help: pass --devices 4\n");
  EXPECT_EQ(helpOf("data: devices / 4, model: 4", 6), "help: pass --devices 8\n");
  EXPECT_EQ(helpOf("data: devices / 4, model: 4", 9), "help: pass --devices 8\n");
  EXPECT_EQ(helpOf("data: devices / 4, model: 8", 8), "help: no number of devices fits: the product of the axes has to be 'devices'\n");
  Reading other("network n(%x: f32[2]) { return out: %x }\ncontext {device_num: 4}", {.devices = 8});
  EXPECT_EQ(other.said, "net.mir:2:22: error: 'device_num' is 4, but --devices is 8\n"
                        "    2 | context {device_num: 4}\n"
                        "      |                      ^\n"
                        "help: pass --devices 4, or write device_num: 8\n");
  Reading both("mesh (data: 2)\nnetwork n(%x: f32[2]) { return out: %x }\ncontext {device_num: 4}");
  EXPECT_EQ(both.said, "net.mir:1:1: error: mesh (data: 2) needs 2 devices, but 'device_num' is 4\n"
                       "    1 | mesh (data: 2)\n"
                       "      | ^~~~\n"
                       "help: write device_num: 2\n");
  Reading far("mesh (data: 4294967296, model: 4294967296)\nnetwork n(%x: f32[2]) { return out: %x }");
  EXPECT_EQ(far.said, "net.mir:1:1: error: the sizes of the axes multiply to more than fits into 64 bits\n"
                      "    1 | mesh (data: 4294967296, model: 4294967296)\n"
                      "      | ^~~~\n"
                      "help: sizes of axes are at least 1, and multiply to the number of devices\n");
}

TEST(Text, MayBeginWithAByteOrderMark) {
  Reading reading("\xEF\xBB\xBFnetwork n(%x: f32[3]) { return out: %x }");
  EXPECT_TRUE(reading.module) << reading.said;
}

TEST(Constants, AreOverriddenByDefines) {
  EXPECT_EQ(sizeOf("3", {.defines = {{"a", "2 * devices + 5"}}}), 7);
  Reading unknown("const batch = 3\nnetwork n(%x: f32[batch]) { return out: %x }", {.defines = {{"bach", "4"}}});
  EXPECT_EQ(unknown.said, "msc: error: -D bach: the network has no const 'bach'\nhelp: did you mean 'batch'?\n");
  Reading far("const batch = 3\nconst width = 4\nnetwork n(%x: f32[batch]) { return out: %x }", {.defines = {{"nosuch", "4"}}});
  EXPECT_EQ(far.said, "msc: error: -D nosuch: the network has no const 'nosuch'\nhelp: expected one of batch, width\n");
  Reading none("network n(%x: f32[3]) { return out: %x }", {.defines = {{"nosuch", "4"}}});
  EXPECT_EQ(none.said, "msc: error: -D nosuch: the network has no const 'nosuch'\nhelp: write const nosuch = 4 into the network's file\n");
  Reading nothing("const batch = 3\nnetwork n(%x: f32[batch]) { return out: %x }", {.defines = {{"batch", "1 / 0"}}});
  EXPECT_EQ(nothing.said, "msc: error: -D batch: division of 1 by 0\n");
  Reading broken("const batch = 3\nnetwork n(%x: f32[batch]) { return out: %x }", {.defines = {{"batch", "4 +"}}});
  EXPECT_EQ(broken.said, "msc: error: -D batch: cannot read '4 +': expected an expression before the end of the file\n");
  Reading word("const batch = 3\nnetwork n(%x: f32[batch]) { return out: %x }", {.defines = {{"batch", "abc"}}});
  EXPECT_EQ(word.said, "msc: error: -D batch: 'abc' is no number\n"
                       "net.mir:1:7: note: the network has 'batch' = 3\n"
                       "    1 | const batch = 3\n"
                       "      |       ^~~~~\n"
                       "help: write a number: -D batch=3\n");
  EXPECT_TRUE(Reading("const rate = 1\nnetwork n(%x: f32[3]) { return out: %x }", {.defines = {{"rate", "0.5"}}}).module);
}

TEST(Cells, AreExpandedWithTheirPaths) {
  Reading reading(fileText(FRONTEND_TEST_DATA "/cells.mir"), {.devices = 8});
  ASSERT_TRUE(reading.module && reading.config) << reading.said;
  EXPECT_EQ(parametersOf(*reading.module),
            (std::vector<std::string>{
                "block.first.short.weight tensor<32x16xf32>", "block.first.fc.weight tensor<32x16xf32>",
                "block.first.fc.bias tensor<16xf32>", "block.0.fc.weight tensor<16x16xf32>",
                "block.0.fc.bias tensor<16xf32>", "block.1.fc.weight tensor<16x16xf32>", "block.1.fc.bias tensor<16xf32>",
                "block.2.fc.weight tensor<16x16xf32>", "block.2.fc.bias tensor<16xf32>"}));
  Operation *matmul = findOperator(*reading.module, "block.1.fc.matmul");
  ASSERT_TRUE(matmul);
  EXPECT_EQ(net::getScope(matmul), "Default/network-WithLossCell/_backbone-tower/block.1/fc");
  EXPECT_EQ(net::getValueName(matmul->getResult(0)), "block.1.fc.m");
  EXPECT_EQ(reading.config->devices, 8);
  EXPECT_EQ(reading.config->mesh->sizes, (std::vector<int64_t>{4, 2}));
  Operation *loss = findOperator(*reading.module, "loss");
  EXPECT_EQ(net::getScope(loss), "Default/network-WithLossCell/_loss_fn-MSELoss");
}

TEST(Cells, PrintFlatAndReadBack) {
  Reading reading(fileText(FRONTEND_TEST_DATA "/cells.mir"), {.devices = 8});
  std::string text;
  llvm::raw_string_ostream os(text);
  frontend::printNetwork(*reading.module, os);
  Reading again(text, {.devices = 8});
  ASSERT_TRUE(again.module) << again.said << text;
  EXPECT_EQ(parametersOf(*again.module), parametersOf(*reading.module));
}

TEST(Cells, ExponentialGrowthIsAnErrorNotAHang) {
  std::string text = "cell C0(%x) { %y = ReLU(%x) return %y }\n";
  for (int i = 1; i <= 40; ++i) {
    std::string below = "C" + std::to_string(i - 1);
    text += "cell C" + std::to_string(i) + "(%x) { %a = " + below + "(%x) %b = " + below + "(%a) return %b }\n";
  }
  Reading reading(text + "network n(%x: f32[2]) { %y = C40(%x) return out: %y }");
  EXPECT_FALSE(reading.module);
  EXPECT_EQ(reading.diagnostics->errors(), 1u);
  EXPECT_NE(reading.said.find("the network has more than 1000000 statements after expansion"), std::string::npos) << reading.said;
}

TEST(Repeat, OfNoRoundsIsItsInitialValue) {
  Reading reading("network n(%x: f32[2]) { %y = repeat i in 3..3 with %h = %x { %z = ReLU(%h) yield %z } return out: %y }");
  ASSERT_TRUE(reading.module) << reading.said;
  EXPECT_TRUE(isa<BlockArgument>(net::getReturn(*reading.module->getOps<net::NetworkOp>().begin()).getValues()[0]));
}

TEST(Operands, MayBeNumbers) {
  Reading reading("network n(%x: f32[2]) { %y = Mul(%x, 2) return out: %y }");
  ASSERT_TRUE(reading.module) << reading.said;
  reading.module->walk([](net::ConstantOp constant) { EXPECT_EQ(constant.getSplat().convertToDouble(), 2.0); });
}

TEST(Dumps, OfMindSporeAreRead) {
  Reading reading(fileText(FRONTEND_TEST_DATA "/mindspore.ir"), {.devices = 8}, "begin.ir");
  ASSERT_TRUE(reading.module) << reading.said;
  EXPECT_EQ(reading.said, "");
  Operation *second = findOperator(*reading.module, "second");
  ASSERT_TRUE(second);
  EXPECT_EQ(cast<net::ParamOp>(second->getOperand(1).getDefiningOp()).getName(), "second.weight");
  EXPECT_EQ(net::getInStrategy(second), (net::Strategy{{4, 2}, {2, 1}}));
  FileLineColLoc place = frontend::findFileLocation(findOperator(*reading.module, "first")->getLoc());
  EXPECT_EQ(place.getFilename().getValue(), "/home/user/train/net.py");
  EXPECT_EQ(place.getLine(), 32u);
}

TEST(Config, OfTheQuickstart) {
  Reading reading(test::quickstart, {.devices = 8});
  ASSERT_TRUE(reading.config) << reading.said;
  const net::Config &config = *reading.config;
  EXPECT_EQ(config.devices, 8);
  ASSERT_EQ(config.datasets.size(), 1u);
  EXPECT_EQ(config.datasets[0].source, "Random");
  EXPECT_EQ(config.datasets[0].steps, 4u);
  EXPECT_TRUE(config.datasets[0].sameBatch);
  ASSERT_EQ(config.datasets[0].columns.size(), 2u);
  EXPECT_EQ(config.datasets[0].columns[1].name, "x");
  EXPECT_EQ(config.datasets[0].columns[1].values, (std::vector<double>{0, 1}));
  ASSERT_TRUE(config.train);
  EXPECT_EQ(config.train->minimize, "loss");
  EXPECT_EQ(config.train->epochs, 5u);
  EXPECT_EQ(config.train->seed, 1u);
  EXPECT_EQ(config.train->optimizer.learningRate.values, std::vector<double>{0.2});
  EXPECT_EQ(config.train->optimizer.number("momentum"), 0.1);
  ASSERT_TRUE(config.checkpoint);
  EXPECT_EQ(config.checkpoint->directory, "ckpt");
  EXPECT_EQ(config.checkpoint->keep, 5u);
  EXPECT_EQ(config.context.parallelMode, "auto_parallel");
  EXPECT_EQ(config.context.searchMode, "sharding_propagation");
}

Reading withFlags(std::vector<net::ConfigOverride> flags) {
  return Reading(test::quickstart, {.devices = 8}, "net.mir", true, std::move(flags));
}

TEST(Config, FlagsWinOverSynonymsInTheFile) {
  using Kind = net::DatasetStrategy::Kind;
  auto kindOf = [](const std::string &written, std::vector<net::ConfigOverride> flags) {
    Reading reading("network n(%x: f32[8]) { return out: %x }\ncontext {" + written + "}", {.devices = 8}, "net.mir", true,
                    std::move(flags));
    EXPECT_TRUE(reading.config) << reading.said;
    return reading.config ? std::optional(reading.config->context.datasetStrategy.kind) : std::nullopt;
  };
  EXPECT_EQ(kindOf("dataset_strategy: ((8,),)", {{"full_batch", "true"}}), Kind::FullBatch);
  EXPECT_EQ(kindOf("dataset_strategy: full_batch", {{"full_batch", "false"}}), Kind::DataParallel);
  EXPECT_EQ(kindOf("full_batch: true", {{"dataset_strategy", "data_parallel"}}), Kind::DataParallel);
  EXPECT_EQ(kindOf("full_batch: true", {{"dataset_strategy", "((8,),)"}}), Kind::Given);
  EXPECT_EQ(kindOf("search_mode: optimal", {{"auto_parallel_search_mode", "sharding_propagation"}}), Kind::DataParallel);
  EXPECT_EQ(kindOf("auto_parallel_search_mode: optimal", {{"search_mode", "sharding_propagation"}}), Kind::DataParallel);
  Reading both("network n(%x: f32[8]) { return out: %x }", {.devices = 8}, "net.mir", true,
               {{"full_batch", "true"}, {"dataset_strategy", "data_parallel"}});
  EXPECT_NE(both.said.find("clashes"), std::string::npos) << both.said; // two flags
}

TEST(Config, FlagsWinOverTheFile) {
  Reading reading = withFlags({{"parallel-mode", "data_parallel"}, {"save_graphs", "2"}, {"save-graphs-path", "a b"},
                               {"dataset-strategy", "((8, 1), (8,1))"}, {"device-target", "CPU"}});
  ASSERT_TRUE(reading.config) << reading.said;
  EXPECT_EQ(reading.config->context.parallelMode, "data_parallel");
  EXPECT_EQ(reading.config->context.saveGraphs, 2);
  EXPECT_EQ(reading.config->context.saveGraphsPath, "a b");
  EXPECT_EQ(reading.config->context.deviceTarget, "cpu");
  EXPECT_EQ(reading.config->context.datasetStrategy.pieces, (net::Strategy{{8, 1}, {8, 1}}));
}

TEST(Config, MistakesOnFlagsNameTheFlag) {
  EXPECT_EQ(withFlags({{"parallel-mode", "data_paralel"}}).said,
            "msc: error: --parallel-mode: unknown parallel_mode 'data_paralel': expected stand_alone, data_parallel, "
            "semi_auto_parallel, auto_parallel, hybrid_parallel\nhelp: did you mean 'data_parallel'?\n");
  EXPECT_EQ(withFlags({{"paralel-mode", "data_parallel"}}).said,
            "msc: error: unknown option '--paralel-mode'\nhelp: did you mean 'parallel_mode'?\n");
  EXPECT_EQ(withFlags({{"dataset-strategy", "((8, 1)"}}).said, "msc: error: --dataset-strategy: cannot read '((8, 1)'\n");
  EXPECT_EQ(withFlags({{"global-rank", "3"}}).diagnostics->errors(), 1u);
  EXPECT_EQ(withFlags({{"search-mode", "optima"}}).said,
            "msc: error: --search-mode: unknown search_mode 'optima': expected sharding_propagation, dynamic_programming, "
            "recursive_programming, optimal\nhelp: did you mean 'optimal'?\n");
  EXPECT_EQ(withFlags({{"device-num", "4"}}).said,
            "msc: error: --device-num: 'device_num' is 4, but --devices is 8\nhelp: pass --devices 4\n");
}

TEST(Config, FlagsOfAModeDoNotBlameTheOptionsOfTheFile) {
  EXPECT_EQ(withFlags({{"parallel-mode", "data_parallel"}}).said, "");
  EXPECT_EQ(withFlags({{"parallel-mode", "data_parallel"}, {"dataset-strategy", "full_batch"}}).said,
            "msc: warning: --dataset-strategy: 'dataset_strategy' has nothing to do: in data_parallel mode every rank gets "
            "its own rows\n");
}

TEST(Config, GradientsMeanFalseSaysHowToReproduceTheSum) {
  Reading reading = withFlags({{"gradients-mean", "false"}, {"parallel-mode", "data_parallel"}});
  EXPECT_TRUE(reading.config);
  EXPECT_EQ(reading.said, "msc: warning: --gradients-mean: 'gradients_mean: false' has nothing to do: losses are global means and "
                          "gradients exact in every mode\n"
                          "help: for MindSpore's sum over 8 ranks multiply the learning rate by 8\n");
  EXPECT_EQ(reading.config->context.gradientsMean, false);
}

TEST(Config, EveryOptionOfMindSporeIsUnderstood) {
  for (StringRef option : net::contextOptionNames()) {
    Reading reading = withFlags({{option.str(), "surely_not_this"}});
    EXPECT_EQ(reading.said.find("unknown option"), std::string::npos) << option.str();
    EXPECT_FALSE(reading.said.empty()) << option.str();
  }
}

TEST(Config, DefaultsDependOnTheDevices) {
  const char *net = "network n(%x: f32[2]) { return out: %x }";
  EXPECT_EQ(Reading(net).config->context.parallelMode, "stand_alone");
  EXPECT_EQ(Reading(net, {.devices = 2}).config->context.parallelMode, "auto_parallel");
}

TEST(Config, FilesOfADatasetMayComeFromTheEnvironment) {
  Reading reading("network n(%x: f32[2], %y: f32[2]) { return out: %x }\n"
                  "dataset evaluate {source: Npy(), columns: {x: \"x.npy\", y: env(\"DATA\")}, shuffle: true, batch: 2}");
  ASSERT_TRUE(reading.config) << reading.said;
  EXPECT_EQ(reading.config->datasets[0].name, "evaluate");
  EXPECT_EQ(reading.config->datasets[0].columns[0].path, "x.npy");
  EXPECT_EQ(reading.config->datasets[0].columns[1].path, "${DATA}");
  EXPECT_EQ(reading.config->datasets[0].batch, 2);
}

} // namespace
